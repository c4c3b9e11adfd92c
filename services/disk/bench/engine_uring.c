/* io_uring, by the system calls themselves. Each request is handed to the kernel by a call of its
 * own, as fio does by default: batches would make another queue of it. The last one is
 * handed over by the very call that waits. */
#define _GNU_SOURCE
#include "engine.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Headers of Linux 5.15, which distributions still build with, lack these; kernels that do answer
 * EINVAL. */
enum {
    SETUP_COOP_TASKRUN = 1 << 8,   /* 5.19 */
    SETUP_SINGLE_ISSUER = 1 << 12, /* 6.0 */
    SETUP_DEFER_TASKRUN = 1 << 13, /* 6.1 */
    ENTER_REGISTERED_RING = 1 << 4,
    REGISTER_RING_FDS = 20, /* 5.18 */
};

struct ring {
    int fd;
    int enter_fd; /* what io_uring_enter() takes: fd, or its number among the registered ones */
    unsigned enter_flags;
    bool fixed;       /* buffers are registered */
    unsigned pending; /* requests written down and not yet handed over: mostly 1 at most */
    unsigned sq_tail, sq_mask;
    _Atomic unsigned *shared_sq_tail;
    struct io_uring_sqe *sqes;
    unsigned cq_mask;
    _Atomic unsigned *cq_head, *cq_tail;
    struct io_uring_cqe *cqes;
    void *rings;
    size_t rings_bytes, sqes_bytes;
};

/* ---- setting up ----------------------------------------------------------------------------- */

/* The cheapest kind of ring the kernel has: completions are worked through when they are requested,
 * and interrupt no thread. A descriptor, or -1 with errno. */
static int setup(unsigned depth, struct io_uring_params *params)
{
    static const unsigned kinds[] = {
        SETUP_COOP_TASKRUN | SETUP_SINGLE_ISSUER | SETUP_DEFER_TASKRUN,
        SETUP_COOP_TASKRUN,
        0,
    };
    int fd = -1;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && fd < 0; i++) {
        *params = (struct io_uring_params){.flags = kinds[i]};
        fd = (int)syscall(SYS_io_uring_setup, depth, params);
        if (fd < 0 && errno != EINVAL)
            break;
    }
    return fd;
}

/* 0: allowed to all; 1: to some; 2: to none; -1: the kernel (before 6.6) has no such switch. */
static int disabled_switch(void)
{
    int value = -1;
    FILE *file = fopen("/proc/sys/kernel/io_uring_disabled", "r");
    if (!file)
        return -1;
    if (fscanf(file, "%d", &value) != 1)
        value = -1;
    fclose(file);
    return value;
}

static const char *why_not(int error)
{
    static _Thread_local char text[200];
    int disabled = disabled_switch();
    if (error == ENOSYS)
        return "this kernel has no io_uring";
    if (error == EPERM && disabled > 0)
        snprintf(text, sizeof text, "kernel.io_uring_disabled is %d: sysctl allows it with 0",
                 disabled);
    else if (error == EPERM)
        return "forbidden by a seccomp profile, as Docker's own does since version 25";
    else
        snprintf(text, sizeof text, "io_uring_setup: %s", strerror(error));
    return text;
}

static const char *unsupported(const struct disk_job *job)
{
    struct io_uring_params params;
    int fd = setup(job->depth, &params);
    if (fd < 0)
        return why_not(errno);
    close(fd);
    return params.features & IORING_FEAT_EXT_ARG
               ? NULL
               : "the io_uring of kernels before 5.11 cannot wait with a time limit";
}

static bool may_lock_any_memory(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (syscall(SYS_capget, &header, sets) != 0)
        return false;
    return sets[CAP_IPC_LOCK / 32].effective >> CAP_IPC_LOCK % 32 & 1;
}

static const char *lock_limit(double needed_bytes)
{
    static _Thread_local char text[240];
    struct rlimit limit;
    getrlimit(RLIMIT_MEMLOCK, &limit);
    snprintf(
        text, sizeof text,
        "registered buffers of %.0f bytes are more than the %.0f bytes that may be locked in "
        "memory (ulimit -l): use a smaller block, depth or number of threads, or engine io_uring",
        needed_bytes, (double)limit.rlim_cur);
    return text;
}

/* Only arithmetic: the sum of all threads counts, and one alone would pass a trial. */
static const char *fixed_unsupported(const struct disk_job *job)
{
    struct rlimit limit;
    const char *reason = unsupported(job);
    if (reason)
        return reason;
    double needed_bytes = (double)engine_buffer_bytes(job) * job->depth * job->threads;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        needed_bytes <= (double)limit.rlim_cur || may_lock_any_memory())
        return NULL;
    return lock_limit(needed_bytes);
}

static bool map_rings(struct ring *ring, const struct io_uring_params *params)
{
    size_t sq_bytes = params->sq_off.array + params->sq_entries * sizeof(unsigned);
    size_t cq_bytes = params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe);
    int protection = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
    ring->rings_bytes = sq_bytes > cq_bytes ? sq_bytes : cq_bytes;
    ring->sqes_bytes = params->sq_entries * sizeof(struct io_uring_sqe);
    /* One mapping for both rings: kernels that have it are older than EXT_ARG. */
    ring->rings = mmap(NULL, ring->rings_bytes, protection, flags, ring->fd, IORING_OFF_SQ_RING);
    ring->sqes = mmap(NULL, ring->sqes_bytes, protection, flags, ring->fd, IORING_OFF_SQES);
    return ring->rings != MAP_FAILED && ring->sqes != MAP_FAILED;
}

static void find_in_rings(struct ring *ring, const struct io_uring_params *params)
{
    uint8_t *base = ring->rings;
    unsigned *array = (unsigned *)(base + params->sq_off.array);
    ring->shared_sq_tail = (_Atomic unsigned *)(base + params->sq_off.tail);
    ring->sq_mask = params->sq_entries - 1;
    ring->cq_head = (_Atomic unsigned *)(base + params->cq_off.head);
    ring->cq_tail = (_Atomic unsigned *)(base + params->cq_off.tail);
    ring->cq_mask = params->cq_entries - 1;
    ring->cqes = (struct io_uring_cqe *)(base + params->cq_off.cqes);
    for (unsigned i = 0; i < params->sq_entries; i++)
        array[i] = i;
}

/* Spares each call the look-up of the descriptor. Kernels that cannot do it answer an error, and
 * nothing is lost. */
static void register_ring(struct ring *ring)
{
    struct io_uring_rsrc_update update = {.offset = (unsigned)-1, .data = (unsigned)ring->fd};
    if (syscall(SYS_io_uring_register, ring->fd, REGISTER_RING_FDS, &update, 1) != 1)
        return;
    ring->enter_fd = (int)update.offset;
    ring->enter_flags = ENTER_REGISTERED_RING;
}

static void ring_free(struct ring *ring)
{
    if (ring->sqes && ring->sqes != MAP_FAILED)
        munmap(ring->sqes, ring->sqes_bytes);
    if (ring->rings && ring->rings != MAP_FAILED)
        munmap(ring->rings, ring->rings_bytes);
    if (ring->fd >= 0)
        close(ring->fd);
    free(ring);
}

static int ring_open(struct engine_state *state)
{
    struct io_uring_params params;
    struct ring *ring = calloc(1, sizeof *ring);
    if (!ring) {
        run_reason(state->run,
                   "not enough memory for a ring of %u requests: use a smaller --queue-depth",
                   state->job->depth);
        return EXIT_RESOURCE;
    }
    ring->fd = ring->enter_fd = setup(state->job->depth, &params);
    if (ring->fd < 0 || !map_rings(ring, &params)) {
        run_reason(state->run,
                   "a ring of %u requests for each of %u threads: %s; use fewer threads or a "
                   "smaller --queue-depth, or --engine psync",
                   state->job->depth, state->job->threads, strerror(errno));
        ring_free(ring);
        return EXIT_RESOURCE;
    }
    find_in_rings(ring, &params);
    register_ring(ring);
    state->own = ring;
    return EXIT_OK;
}

static int register_buffers(struct engine_state *state)
{
    struct ring *ring = state->own;
    unsigned depth = state->job->depth;
    size_t stride = engine_buffer_bytes(state->job);
    struct iovec *buffers = calloc(depth, sizeof *buffers);
    for (unsigned i = 0; buffers && i < depth; i++)
        buffers[i] = (struct iovec){state->buffers + i * stride, state->job->block_bytes};
    long failed = -1;
    if (buffers)
        failed = syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_BUFFERS, buffers, depth);
    int error = errno;
    free(buffers);
    if (!failed)
        return EXIT_OK;
    double all_bytes = (double)stride * depth * state->job->threads;
    run_reason(state->run, "--engine io_uring_fixed: %s: %s", strerror(error),
               lock_limit(all_bytes));
    return EXIT_RESOURCE;
}

static int fixed_open(struct engine_state *state)
{
    int failure = ring_open(state);
    if (failure)
        return failure;
    failure = register_buffers(state);
    if (failure)
        ring_free(state->own);
    else
        ((struct ring *)state->own)->fixed = true;
    return failure;
}

static void ring_close(struct engine_state *state)
{
    ring_free(state->own);
}

/* ---- requests ------------------------------------------------------------------------------- */

static unsigned ready(const struct ring *ring)
{
    return atomic_load_explicit(ring->cq_tail, memory_order_acquire) -
           atomic_load_explicit(ring->cq_head, memory_order_relaxed);
}

static long enter_and_wait(struct ring *ring, double wait_s, unsigned flags)
{
    struct __kernel_timespec limit = {(int64_t)wait_s, (int64_t)((wait_s - (int64_t)wait_s) * 1e9)};
    struct io_uring_getevents_arg argument = {.ts = (uintptr_t)&limit};
    return syscall(SYS_io_uring_enter, ring->enter_fd, ring->pending, 1,
                   flags | IORING_ENTER_EXT_ARG, &argument, sizeof argument);
}

/* Hands over what is pending, and waits for a completion unless `wait_s` is 0. 0 or a negative
 * errno; what was not taken stays pending. */
static int enter(struct ring *ring, double wait_s)
{
    unsigned flags = ring->enter_flags | IORING_ENTER_GETEVENTS, least = wait_s > 0 ? 1 : 0;
    long taken = least && wait_s < FOREVER_S ? enter_and_wait(ring, wait_s, flags)
                                             : syscall(SYS_io_uring_enter, ring->enter_fd,
                                                       ring->pending, least, flags, NULL, 0);
    if (taken >= 0) {
        ring->pending -= (unsigned)taken;
        return 0;
    }
    /* EAGAIN and EBUSY: the kernel lacks the means at the moment; the next call tries again. */
    return errno == ETIME || errno == EINTR || errno == EAGAIN || errno == EBUSY ? 0 : -errno;
}

static int hand_over(struct engine_state *state)
{
    struct ring *ring = state->own;
    return ring->pending ? enter(ring, 0) : 0;
}

static int submit(struct engine_state *state, struct request *request)
{
    struct ring *ring = state->own;
    int error = hand_over(state);
    if (error)
        return error;
    struct io_uring_sqe *sqe = &ring->sqes[ring->sq_tail & ring->sq_mask];
    bool read = request->op == OP_READ;
    memset(sqe, 0, sizeof *sqe);
    if (ring->fixed)
        sqe->opcode = read ? IORING_OP_READ_FIXED : IORING_OP_WRITE_FIXED;
    else
        sqe->opcode = read ? IORING_OP_READ : IORING_OP_WRITE;
    sqe->fd = state->fd;
    sqe->off = request_offset(request);
    sqe->addr = (uintptr_t)request_at(request);
    sqe->len = (uint32_t)(state->job->block_bytes - request->moved);
    sqe->buf_index = (uint16_t)request->slot; /* looked at where buffers are registered */
    sqe->user_data = (uintptr_t)request;
    atomic_store_explicit(ring->shared_sq_tail, ++ring->sq_tail, memory_order_release);
    ring->pending++;
    return 0;
}

static int reap(struct engine_state *state, struct request **done, unsigned most, double wait_s)
{
    struct ring *ring = state->own;
    unsigned count = ready(ring);
    if (ring->pending || count == 0) {
        int error = enter(ring, count > 0 ? 0 : wait_s);
        if (error)
            return error;
        count = ready(ring);
    }
    count = count < most ? count : most;
    unsigned head = atomic_load_explicit(ring->cq_head, memory_order_relaxed);
    for (unsigned i = 0; i < count; i++) {
        const struct io_uring_cqe *cqe = &ring->cqes[(head + i) & ring->cq_mask];
        done[i] = (struct request *)(uintptr_t)cqe->user_data;
        done[i]->result = cqe->res;
    }
    atomic_store_explicit(ring->cq_head, head + count, memory_order_release);
    return (int)count;
}

const struct engine uring_engine = {
    .name = "io_uring",
    .queues = true,
    .unsupported = unsupported,
    .open = ring_open,
    .submit = submit,
    .hand_over = hand_over,
    .reap = reap,
    .close = ring_close,
};

const struct engine uring_fixed_engine = {
    .name = "io_uring_fixed",
    .queues = true,
    .unsupported = fixed_unsupported,
    .open = fixed_open,
    .submit = submit,
    .hand_over = hand_over,
    .reap = reap,
    .close = ring_close,
};
