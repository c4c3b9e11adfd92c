/* How requests reach the disk. An engine is a row of functions; each thread has a state of its own,
 * which no other thread touches. */
#ifndef DISK_BENCH_ENGINE_H
#define DISK_BENCH_ENGINE_H

#include "job.h"
#include "pages.h"
#include "workload.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { ENGINE_PAGE_BYTES = 4096 };

/* One block on its way. It goes where `offset` says; of a transfer that ended short, the rest. */
struct request {
    enum op op;
    uint32_t slot;    /* the number of its buffer */
    void *buffer;     /* of block_bytes */
    uint64_t block;   /* its number in the file */
    uint64_t offset;  /* of the block in the file, in bytes */
    size_t moved;     /* bytes that earlier transfers of this request have done */
    ssize_t result;   /* bytes that the last one did, or a negative errno */
    unsigned put_off; /* so many times one after the other the kernel had no means to do it */
    double begun_s;   /* what its latency counts from: when it was begun, or due */
    bool under_way;   /* submitted and not yet reaped for good */
};

/* What is left of it. */
static inline uint8_t *request_at(const struct request *request)
{
    return (uint8_t *)request->buffer + request->moved;
}

static inline uint64_t request_offset(const struct request *request)
{
    return request->offset + request->moved;
}

/* A wait that no timer ends: arming one for every request takes longer than a fast disk. */
#define FOREVER_S INFINITY

struct engine_state {
    const struct disk_job *job;
    struct run *run;
    int fd;           /* of the measured file: this thread's own */
    uint8_t *buffers; /* job->depth of them, engine_buffer_bytes() apart */
    void *own;        /* the engine's */
};

struct engine {
    const char *name;
    bool queues; /* takes more than one request at a time */
    /* NULL, or why it cannot be had here: tried, not guessed. The text lasts until the next call. */
    const char *(*unsupported)(const struct disk_job *);
    /* Called on the thread that will use it, which alone may. 0 or an exit_code with its reason. */
    int (*open)(struct engine_state *);
    /* Takes a request, at most job->depth at a time. It may be handed to the kernel as late as in
     * the next reap(), so that one call submits it and waits. 0 or a negative errno. */
    int (*submit)(struct engine_state *, struct request *);
    /* Gives the kernel now what submit() has kept back; NULL: it keeps nothing back. 0 or a negative
     * errno. */
    int (*hand_over)(struct engine_state *);
    /* Those that are done, at most `most`; waits for the first, but no longer than `wait_s` (0: not
     * at all; FOREVER_S). How many, or a negative errno. */
    int (*reap)(struct engine_state *, struct request **done, unsigned most, double wait_s);
    /* With no request under way: keeps no page of the file mapped. NULL: it never does. */
    void (*let_go)(struct engine_state *);
    /* Of a state that open() has opened; requests under way are given up. */
    void (*close)(struct engine_state *);
};

extern const struct engine uring_engine, uring_fixed_engine, libaio_engine, psync_engine,
    mmap_engine;
/* Not one to be chosen: a request is a write and the fdatasync() behind it. */
extern const struct engine commit_engine;

/* From one buffer to the next. Whole pages: O_DIRECT wants an address that the device can take, and
 * no device wants more. */
static inline size_t engine_buffer_bytes(const struct disk_job *job)
{
    return (job->block_bytes + ENGINE_PAGE_BYTES - 1) / ENGINE_PAGE_BYTES * ENGINE_PAGE_BYTES;
}

/* What the first buffer of a thread lies at a multiple of: a huge page where they fill half of one. */
static inline size_t engine_alignment(const struct disk_job *job)
{
    bool small = engine_buffer_bytes(job) * job->depth < HUGE_PAGE_BYTES / 2;
    return small ? ENGINE_PAGE_BYTES : HUGE_PAGE_BYTES;
}

/* What the buffers of one thread take, in bytes. */
static inline size_t engine_thread_bytes(const struct disk_job *job)
{
    size_t to = engine_alignment(job);
    return (engine_buffer_bytes(job) * job->depth + to - 1) / to * to;
}

#endif
