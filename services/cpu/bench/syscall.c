/* syscall: the time of one system call. */
#define _GNU_SOURCE
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const calls[] = {"getppid", "read", "write", "stat", "open_close", NULL};

struct caller {
    int zero, null;
    long parent;
    uint64_t done;
    bool (*call)(struct caller *);
};

/* Past the C library: what it might remember is not what is measured. */
static bool call_getppid(struct caller *caller)
{
    long parent = syscall(SYS_getppid);
    /* When the parent has ended, another process has taken its place. */
    return parent >= 0 && (parent == caller->parent || parent == (caller->parent = getppid()));
}

static bool call_read(struct caller *caller)
{
    char byte = 1;
    return read(caller->zero, &byte, 1) == 1 && byte == 0;
}

static bool call_write(struct caller *caller)
{
    return write(caller->null, "", 1) == 1;
}

static bool call_stat(struct caller *caller)
{
    struct stat status;
    (void)caller;
    return stat("/dev/null", &status) == 0 && S_ISCHR(status.st_mode);
}

static bool call_open_close(struct caller *caller)
{
    (void)caller;
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fd >= 0 && close(fd) == 0;
}

static bool (*const functions[])(struct caller *) = {
    call_getppid, call_read, call_write, call_stat, call_open_close,
};

static int setup(struct thread *thread)
{
    struct caller *caller = calloc(1, sizeof *caller);
    const char *call = run_choice(thread->run, "call");
    size_t i = 0;
    while (strcmp(calls[i], call) != 0)
        i++;
    thread->state = caller;
    if (caller)
        *caller = (struct caller){.zero = open("/dev/zero", O_RDONLY | O_CLOEXEC),
                                  .null = open("/dev/null", O_WRONLY | O_CLOEXEC),
                                  .parent = getppid(),
                                  .call = functions[i]};
    if (!caller || caller->zero < 0 || caller->null < 0) {
        run_reason(thread->run, "/dev/zero and /dev/null cannot be opened (%s): provide them",
                   strerror(errno));
        return EXIT_RESOURCE;
    }
    if (thread->index == 0)
        run_set_unit(thread->run, 1, UINT64_MAX);
    return EXIT_OK;
}

static int step(struct thread *thread, uint64_t batch)
{
    struct caller *caller = thread->state;
    uint64_t done = 0;
    errno = 0;
    for (uint64_t i = 0; i < batch; i++)
        done += caller->call(caller);
    caller->done += done;
    if (done == batch)
        return EXIT_OK;
    run_reason(thread->run,
               "%" PRIu64 " of %" PRIu64 " calls of %s failed (%s): does something on this host "
               "forbid or change them?",
               batch - done, batch, run_choice(thread->run, "call"),
               errno ? strerror(errno) : "they returned wrong results");
    return EXIT_FAILED;
}

static int verify(struct thread *thread, uint64_t units)
{
    const struct caller *caller = thread->state;
    return run_check_units(thread, caller->done, units);
}

static void teardown(struct thread *thread)
{
    struct caller *caller = thread->state;
    close(caller->zero);
    close(caller->null);
    free(caller);
}

static const struct param params[] = {
    {.name = "call",
     .type = PARAM_CHOICE,
     .initial = "getppid",
     .choices = calls,
     .roles = ROLE_AXIS | ROLE_TAG,
     .title = "system call",
     .help = "getppid: does almost no work, so it shows the cost of entering and leaving the "
             "kernel; read: one byte from /dev/zero; write: one byte to /dev/null; stat: of "
             "/dev/null; open_close: open() and close() of /dev/null."},
    {.name = NULL},
};

WORKLOAD(syscall) = {
    .name = "syscall",
    .description = "Repeats one system call: the cost of entering and leaving the kernel, plus the "
                   "little work done there.",
    .rate = {.name = "call_time_s",
             .unit = "s",
             .description = "Time of one call (open_close: of both calls): median over the threads "
                            "of each thread's median clean slice.",
             .combine = COMBINE_MEDIAN,
             .time = true},
    .params = params,
    .setup = setup,
    .step = step,
    .verify = verify,
    .teardown = teardown,
};
