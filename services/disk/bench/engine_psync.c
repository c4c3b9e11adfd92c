/* pread() and pwrite(): one request at a time, done when submit() returns. Also the engine of
 * commits, where fdatasync() is part of the request. */
#define _GNU_SOURCE
#include "engine.h"

#include <errno.h>
#include <unistd.h>

static const char *always_there(const struct disk_job *job)
{
    (void)job;
    return NULL;
}

static int open_one(struct engine_state *state)
{
    state->own = NULL; /* the request that is done and not yet reaped */
    return EXIT_OK;
}

static ssize_t transfer(const struct engine_state *state, const struct request *request)
{
    size_t bytes = state->job->block_bytes - request->moved;
    off_t offset = (off_t)request_offset(request);
    ssize_t moved = request->op == OP_READ ? pread(state->fd, request_at(request), bytes, offset)
                                           : pwrite(state->fd, request_at(request), bytes, offset);
    return moved < 0 ? -errno : moved;
}

static int submit_one(struct engine_state *state, struct request *request)
{
    request->result = transfer(state, request);
    state->own = request;
    return 0;
}

/* A block that went out in pieces is committed with each: seldom, and never too little. */
static int submit_commit(struct engine_state *state, struct request *request)
{
    submit_one(state, request);
    if (request->result > 0 && fdatasync(state->fd) != 0)
        request->result = -errno;
    return 0;
}

static int reap_one(struct engine_state *state, struct request **done, unsigned most, double wait_s)
{
    (void)wait_s;
    if (!state->own || most == 0)
        return 0;
    done[0] = state->own;
    state->own = NULL;
    return 1;
}

static void close_one(struct engine_state *state)
{
    state->own = NULL;
}

const struct engine psync_engine = {
    .name = "psync",
    .unsupported = always_there,
    .open = open_one,
    .submit = submit_one,
    .reap = reap_one,
    .close = close_one,
};

const struct engine commit_engine = {
    .name = "commit",
    .unsupported = always_there,
    .open = open_one,
    .submit = submit_commit,
    .reap = reap_one,
    .close = close_one,
};
