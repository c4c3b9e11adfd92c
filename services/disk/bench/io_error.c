#define _GNU_SOURCE
#include "io_error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct cause {
    int error;
    int exit_code;
    const char *text; /* what it means, and the remedy */
};

static const struct cause causes[] = {
    {ENOSPC, EXIT_RESOURCE,
     "no space is left on the file system: free some, or use a smaller --file-bytes"},
    {EDQUOT, EXIT_RESOURCE,
     "this user's disk quota is used up: raise it, or use a smaller --file-bytes"},
    {EFBIG, EXIT_RESOURCE,
     "files must not become that large here (the file system's limit, or ulimit -f): use a smaller "
     "--file-bytes"},
    {EROFS, EXIT_RESOURCE,
     "the file system is read-only: it may have been switched after an error, check the kernel's "
     "log (dmesg)"},
    {ENOMEM, EXIT_RESOURCE,
     "the kernel does not have enough memory for it: use fewer --threads or less depth"},
    {EIO, EXIT_FAILED,
     "the device failed: check the kernel's log (dmesg) and the disk's health (smartctl)"},
    {EINVAL, EXIT_FAILED,
     "the file system refuses this size or offset: use a --block-bytes that is a multiple of 4096, "
     "or --cache-mode buffered"},
};

/* Where nothing more is known than the errno. */
static const struct cause other = {0, EXIT_FAILED, "check the kernel's log (dmesg)"};

static const struct cause *cause_of(int error)
{
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++)
        if (causes[i].error == error)
            return &causes[i];
    return &other;
}

/* Since glibc 2.32, and a program may run on an older one. */
#pragma weak strerrorname_np

static const char *name_of(int error)
{
    const char *name = strerrorname_np ? strerrorname_np(error) : NULL;
    return name ? name : "error";
}

static int short_transfer(struct run *run, const char *doing, uint64_t offset, size_t requested,
                          ssize_t got)
{
    run_reason(run,
               "%s %zu bytes at offset %" PRIu64
               ": only %zd were transferred and no more came: another program truncated the "
               "scratch file, or the device failed (dmesg)",
               doing, requested, offset, got);
    return EXIT_FAILED;
}

int io_error(struct run *run, enum op op, int error, uint64_t offset, size_t requested, ssize_t got)
{
    const char *doing = op == OP_READ ? "reading" : "writing";
    if (error == 0)
        return short_transfer(run, doing, offset, requested, got);
    const struct cause *cause = cause_of(error);
    run_reason(run, "%s %zu bytes at offset %" PRIu64 ": %s (%s): %s", doing, requested, offset,
               name_of(error), strerror(error), cause->text);
    return cause->exit_code;
}

int io_error_of(struct run *run, const char *what, int error)
{
    const struct cause *cause = cause_of(error);
    run_reason(run, "%s of the scratch file: %s (%s): %s", what, name_of(error), strerror(error),
               cause->text);
    return cause->exit_code;
}
