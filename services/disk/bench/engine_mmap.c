/* Loads from and stores to a mapping of the file. A read copies out of it, a write into it; both
 * are over when the copy is, or in the modes with sync and dsync when msync() has brought it to the device. */
#define _GNU_SOURCE
#include "engine.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct mapping {
    uint8_t *base;
    size_t bytes;
    uintptr_t page_mask;
    struct request *done; /* and not yet reaped */
};

/* An error of the device has no return value here: the kernel sends SIGBUS instead. */
static _Thread_local sigjmp_buf fault;
static _Thread_local volatile sig_atomic_t copying;

static void on_fault(int signal_number)
{
    if (copying)
        siglongjmp(fault, 1);
    signal(signal_number, SIG_DFL); /* not ours: the access is repeated and ends the process */
}

static const char *always_there(const struct disk_job *job)
{
    (void)job;
    return NULL;
}

static void catch_faults(void)
{
    /* SA_NODEFER: the handler is left by a jump, which restores no mask. */
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_NODEFER};
    sigaction(SIGBUS, &action, NULL);
}

static int open_mapping(struct engine_state *state)
{
    const struct disk_job *job = state->job;
    struct mapping *mapping = calloc(1, sizeof *mapping);
    if (mapping) {
        mapping->bytes = job->blocks * job->block_bytes;
        mapping->page_mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
        mapping->base =
            mmap(NULL, mapping->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, state->fd, 0);
    }
    if (!mapping || mapping->base == MAP_FAILED) {
        run_reason(state->run,
                   "--engine mmap: no mapping of the file's %.0f bytes in each of %u threads (%s): "
                   "use a smaller --file-bytes or fewer threads",
                   (double)job->blocks * (double)job->block_bytes, job->threads, strerror(errno));
        free(mapping);
        return EXIT_RESOURCE;
    }
    madvise(mapping->base, mapping->bytes, job->sequential ? MADV_SEQUENTIAL : MADV_RANDOM);
    catch_faults();
    state->own = mapping;
    return EXIT_OK;
}

/* msync() takes whole pages. */
static int commit(const struct mapping *mapping, uint8_t *at, size_t bytes)
{
    uint8_t *page = (uint8_t *)((uintptr_t)at & ~mapping->page_mask);
    return msync(page, bytes + (size_t)(at - page), MS_SYNC) == 0 ? 0 : -errno;
}

static bool copy(void *to, const void *from, size_t bytes)
{
    if (sigsetjmp(fault, 0) != 0) {
        copying = 0;
        return false;
    }
    copying = 1;
    memcpy(to, from, bytes);
    copying = 0;
    return true;
}

static int submit(struct engine_state *state, struct request *request)
{
    struct mapping *mapping = state->own;
    size_t bytes = state->job->block_bytes;
    uint8_t *at = mapping->base + request->offset;
    bool read = request->op == OP_READ;
    bool copied = read ? copy(request->buffer, at, bytes) : copy(at, request->buffer, bytes);
    int error = copied ? 0 : -EIO;
    if (copied && !read && state->job->synced)
        error = commit(mapping, at, bytes);
    request->result = error ? error : (ssize_t)bytes;
    mapping->done = request;
    return 0;
}

static int reap(struct engine_state *state, struct request **done, unsigned most, double wait_s)
{
    struct mapping *mapping = state->own;
    (void)wait_s;
    if (!mapping->done || most == 0)
        return 0;
    done[0] = mapping->done;
    mapping->done = NULL;
    return 1;
}

/* The addresses stay; what stood behind them is read again when it is touched. */
static void let_go(struct engine_state *state)
{
    const struct mapping *mapping = state->own;
    madvise(mapping->base, mapping->bytes, MADV_DONTNEED);
}

static void close_mapping(struct engine_state *state)
{
    struct mapping *mapping = state->own;
    munmap(mapping->base, mapping->bytes);
    free(mapping);
}

const struct engine mmap_engine = {
    .name = "mmap",
    .unsupported = always_there,
    .open = open_mapping,
    .submit = submit,
    .reap = reap,
    .let_go = let_go,
    .close = close_mapping,
};
