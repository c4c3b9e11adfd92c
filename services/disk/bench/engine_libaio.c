/* The kernel's asynchronous input and output of 2002, by the system calls themselves: what libaio
 * wraps. It queues only what goes past the page cache; the rest it does inside io_submit(). */
#define _GNU_SOURCE
#include "engine.h"

#include <errno.h>
#include <linux/aio_abi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct aio {
    aio_context_t context;
    struct iocb *blocks; /* one a slot */
    struct io_event *events;
};

static const char *why_not(int error)
{
    static _Thread_local char text[160];
    if (error == EAGAIN)
        return "the system's asynchronous requests are used up: raise /proc/sys/fs/aio-max-nr";
    snprintf(text, sizeof text, "io_setup: %s: the kernel or a seccomp profile refuses it",
             strerror(error));
    return text;
}

static int context_open(aio_context_t *context, unsigned depth)
{
    *context = 0;
    return syscall(SYS_io_setup, depth, context) == 0 ? 0 : errno;
}

static const char *unsupported(const struct disk_job *job)
{
    aio_context_t context;
    int error = context_open(&context, job->depth);
    if (error)
        return why_not(error);
    syscall(SYS_io_destroy, context);
    return NULL;
}

static void aio_free(struct aio *aio)
{
    free(aio->blocks);
    free(aio->events);
    free(aio);
}

static int open_aio(struct engine_state *state)
{
    unsigned depth = state->job->depth;
    struct aio *aio = calloc(1, sizeof *aio);
    if (aio) {
        aio->blocks = calloc(depth, sizeof *aio->blocks);
        aio->events = calloc(depth, sizeof *aio->events);
    }
    if (!aio || !aio->blocks || !aio->events) {
        if (aio)
            aio_free(aio);
        run_reason(state->run, "not enough memory for a queue of %u: use a smaller --queue-depth",
                   depth);
        return EXIT_RESOURCE;
    }
    int error = context_open(&aio->context, depth);
    if (error) {
        aio_free(aio);
        run_reason(state->run, "engine libaio with %u threads and a queue depth of %u: %s",
                   state->job->threads, depth, why_not(error));
        return EXIT_RESOURCE;
    }
    state->own = aio;
    return EXIT_OK;
}

static int submit(struct engine_state *state, struct request *request)
{
    struct aio *aio = state->own;
    struct iocb *block = &aio->blocks[request->slot];
    block->aio_data = (uintptr_t)request;
    block->aio_lio_opcode = request->op == OP_READ ? IOCB_CMD_PREAD : IOCB_CMD_PWRITE;
    block->aio_fildes = (uint32_t)state->fd;
    block->aio_buf = (uintptr_t)request_at(request);
    block->aio_nbytes = state->job->block_bytes - request->moved;
    block->aio_offset = (int64_t)request_offset(request);
    for (;;) {
        if (syscall(SYS_io_submit, aio->context, 1L, &block) == 1)
            return 0;
        /* EAGAIN: the device's queue is full; it will not be for long. */
        if ((errno != EAGAIN && errno != EINTR) || run_stopping(state->run))
            return -errno;
        sched_yield();
    }
}

static int reap(struct engine_state *state, struct request **done, unsigned most, double wait_s)
{
    struct aio *aio = state->own;
    bool forever = wait_s >= FOREVER_S;
    struct timespec limit = {0};
    if (!forever)
        limit = (struct timespec){(time_t)wait_s, (long)((wait_s - (double)(time_t)wait_s) * 1e9)};
    long count = syscall(SYS_io_getevents, aio->context, wait_s > 0 ? 1L : 0L, (long)most,
                         aio->events, forever ? NULL : &limit);
    if (count < 0)
        return errno == EINTR ? 0 : -errno;
    for (long i = 0; i < count; i++) {
        done[i] = (struct request *)(uintptr_t)aio->events[i].data;
        done[i]->result = (ssize_t)aio->events[i].res;
    }
    return (int)count;
}

static void close_aio(struct engine_state *state)
{
    struct aio *aio = state->own;
    syscall(SYS_io_destroy, aio->context); /* waits for the requests under way */
    aio_free(aio);
}

const struct engine libaio_engine = {
    .name = "libaio",
    .queues = true,
    .unsupported = unsupported,
    .open = open_aio,
    .submit = submit,
    .reap = reap,
    .close = close_aio,
};
