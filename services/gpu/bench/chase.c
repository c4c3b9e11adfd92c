#include "chase.h"

#include "arrays.h"
#include "clocks.h"
#include "contents.h"
#include "cycle.h"
#include "kernel_set.h"
#include "memory.h" /* the harness's: what the host has left */
#include "windows.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    /* A cache line of NVIDIA's and AMD's GPUs: no two loads share one. */
    NODE_BYTES = 128,
    /* Half of the smallest L1 cache among the architectures that there are kernels for, and of what
     * OpenCL alone knows: AMD's GCN has 16 KiB. */
    L1_BYTES_CUDA = 16 << 10,
    L1_BYTES_OTHER = 8 << 10,
    /* OpenCL tells of one cache, on some drivers of the L1: no L2 cache is smaller. */
    L2_LEAST_BYTES = 256 << 10,
    L2_SHARE = 8, /* so small a part of the L2 cache that all of it stays there */
    GROUP_SIZE = 256,
    SEED = 20040,
    UNITS_LEAST = 16,
    UNITS_MOST = 1 << 20, /* of 16 accesses of 30 ns at least */
    FLUSHES = 3,
    NEXT_BYTES = sizeof(uint32_t), /* of the node that follows one */
};

static const uint64_t NODES_MOST = CYCLE_NODES_MOST;

struct chase {
    struct cycle cycle;
    uint64_t bytes;
    struct gpu_memory *nodes, *cursor;
    struct gpu_kernel *kernel;
};

static struct chase *chase_of(const struct gpu_job *job)
{
    return job->own;
}

/* ---- how large ------------------------------------------------------------------------------ */

static uint64_t l1_bytes(const struct gpu_device *device)
{
    return device->cc_major ? L1_BYTES_CUDA : L1_BYTES_OTHER;
}

/* A level by name; false: this device does not tell how large that one is. */
static bool level_bytes(const struct gpu_device *device, const char *level, uint64_t *bytes)
{
    uint64_t l2_bytes = device->l2_bytes;
    *bytes = arrays_bytes_wanted(device);
    if (!strcmp(level, "l1"))
        *bytes = l1_bytes(device);
    if (strcmp(level, "l2") != 0)
        return true;
    *bytes = l2_bytes / L2_SHARE / NODE_BYTES * NODE_BYTES;
    return l2_bytes >= L2_LEAST_BYTES;
}

static int settle(struct gpu_job *job)
{
    struct chase *chase = chase_of(job);
    const char *level = run_choice(job->run, "size_bytes");
    struct arrays_demand demand = {
        .arrays = 1,
        .granule = NODE_BYTES,
        .granule_name = "a node",
        /* What flushes the L2 cache, and links the nodes. */
        .beside_bytes = 2 * job->gpu.device.l2_bytes + (1 << 20),
        .beside_ratio = (double)NEXT_BYTES / NODE_BYTES,
    };
    if (level && !level_bytes(&job->gpu.device, level, &demand.wanted_bytes)) {
        run_reason(job->run,
                   "size_bytes l2: the driver does not report how large the L2 cache of %s is (it "
                   "reports a cache of %" PRIu64 " bytes, and no L2 cache has less than %d): give "
                   "a number",
                   job->gpu.device.name, job->gpu.device.l2_bytes, L2_LEAST_BYTES);
        return EXIT_UNSUPPORTED;
    }
    int failure = arrays_settle(job, &demand, &chase->bytes);
    if (failure || chase->bytes / NODE_BYTES <= NODES_MOST)
        return failure;
    run_reason(job->run,
               "size_bytes %" PRIu64 " are more than %" PRIu64 " nodes of %d bytes: use "
               "--size-bytes=%" PRIu64 " or less",
               chase->bytes, NODES_MOST, NODE_BYTES, NODES_MOST * NODE_BYTES);
    return EXIT_USAGE;
}

/* In which cache loads leave what they fetch. */
static const char *kernel_name(struct gpu_job *job)
{
    const char *cached_in = run_choice(job->run, "cached_in");
    if (!strcmp(cached_in, "auto"))
        cached_in = chase_of(job)->bytes <= l1_bytes(&job->gpu.device) ? "l1" : "l2";
    run_set_choice(job->run, "cached_in", cached_in);
    return strcmp(cached_in, "l1") ? "pointer_chase_cg" : "pointer_chase_ca";
}

/* ---- the walk ------------------------------------------------------------------------------- */

static int enqueue(struct gpu_job *job, unsigned lane, uint64_t units, struct gpu_event *begin,
                   struct gpu_event *end)
{
    const struct chase *chase = chase_of(job);
    uint32_t slot;
    (void)lane; /* there is one */
    int failure = clocks_next(job, &slot);
    const struct gpu_argument arguments[] = {
        GPU_ARG_MEMORY(chase->nodes), GPU_ARG_MEMORY(chase->cursor), GPU_ARG_U32((uint32_t)units),
        GPU_ARG_MEMORY(clocks_memory(job)), GPU_ARG_U32(slot)};
    const struct gpu_launch one = {
        .kernel = chase->kernel, .groups = 1, .group_size = 1, .arguments = arguments, .count = 5};
    return failure ? failure : job->backend->launch(job->queue, &one, begin, end);
}

/* Where all launches together have led to, held against the host's own walk. */
static int verify(struct gpu_job *job)
{
    const struct chase *chase = chase_of(job);
    uint64_t at;
    uint64_t steps = windows_total(job, 0) * KERNEL_CHASE_UNROLL;
    uint64_t wanted = (uint64_t)cycle_at(&chase->cycle, steps) * NODE_BYTES;
    int failure = gpu_download(job->queue, chase->cursor, 0, &at, sizeof at);
    if (failure || run_stopping(job->run) || at == wanted)
        return failure;
    run_reason(job->run,
               "%s: after %" PRIu64 " steps the pointers led to byte %" PRIu64
               " and not to %" PRIu64
               ", where the host's own walk ends: this device, its driver or this build does not "
               "work correctly; do not trust its figures",
               job->gpu.device.name, steps, at, wanted);
    return EXIT_WRONG;
}

static void finish(struct gpu_job *job)
{
    double cycles = clocks_hertz(job) / job->figures.rate_median;
    if (isfinite(cycles))
        run_metric(job->run, "access_cycles", cycles);
    else if (job->gpu.device.cc_major)
        run_no_metric(job->run, "access_cycles",
                      "no launch left a record of the clock, or there is no access time");
    else
        run_no_metric(job->run, "access_cycles",
                      "kernels read the device's counter of cycles in CUDA only");
}

/* ---- beginning and end ---------------------------------------------------------------------- */

static int link_nodes(struct gpu_job *job, const struct gpu_memory *next,
                      const struct gpu_kernel *kernel)
{
    const struct chase *chase = chase_of(job);
    uint32_t count = chase->cycle.count;
    const struct gpu_argument arguments[] = {GPU_ARG_MEMORY(chase->nodes), GPU_ARG_MEMORY(next),
                                             GPU_ARG_U32(NODE_BYTES), GPU_ARG_U32(count)};
    const struct gpu_launch one = {.kernel = kernel,
                                   .groups = (count + GROUP_SIZE - 1) / GROUP_SIZE,
                                   .group_size = GROUP_SIZE,
                                   .arguments = arguments,
                                   .count = 4};
    int failure = gpu_upload(job->queue, next, 0, chase->cycle.next, (uint64_t)count * NEXT_BYTES);
    if (!failure)
        failure = job->backend->launch(job->queue, &one, NULL, NULL);
    return failure ? failure : gpu_drain(job->queue);
}

static int link_all(struct gpu_job *job)
{
    struct gpu_memory *next = NULL;
    struct gpu_kernel *kernel = NULL;
    int failure =
        job->backend->memory(&job->gpu, (uint64_t)chase_of(job)->cycle.count * NEXT_BYTES, &next);
    if (!failure)
        failure = job->backend->kernel(&job->gpu, "chase_link", &kernel);
    if (!failure)
        failure = link_nodes(job, next, kernel);
    job->backend->release_kernel(kernel);
    job->backend->release_memory(next);
    return failure;
}

/* What has just been written stands in the L2 cache in part: a quarter of a set of four times its
 * size would be found there in the first round, which may take longer than the trial. */
static int flush_l2(struct gpu_job *job)
{
    struct gpu_memory *other = NULL;
    uint64_t bytes = 2 * job->gpu.device.l2_bytes / CONTENTS_WORD_BYTES * CONTENTS_WORD_BYTES;
    if (!bytes || chase_of(job)->bytes <= job->gpu.device.l2_bytes)
        return EXIT_OK;
    int failure = job->backend->memory(&job->gpu, bytes, &other);
    for (int i = 0; i < FLUSHES && !failure; i++)
        failure = job->backend->fill(job->queue, other, 0, bytes, CONTENTS_SCRUBBED);
    if (!failure)
        failure = gpu_drain(job->queue);
    job->backend->release_memory(other);
    return failure;
}

/* The host's own walk. */
static int make_cycle(struct gpu_job *job)
{
    struct chase *chase = chase_of(job);
    uint32_t count = (uint32_t)(chase->bytes / NODE_BYTES);
    double bytes = (double)count * CYCLE_BYTES_A_NODE;
    struct memory_budget budget;
    bool known = run_memory_budget(job->run, &budget);
    if ((!known || bytes <= budget.bytes) && cycle_make(&chase->cycle, count, SEED) == 0)
        return EXIT_OK;
    run_reason(job->run,
               "the order of %" PRIu32 " nodes takes %.0f bytes of the host's memory, and %.0f are "
               "left: use a smaller --size-bytes",
               count, bytes, known ? budget.bytes : 0);
    return EXIT_RESOURCE;
}

static int allocate(struct gpu_job *job)
{
    struct chase *chase = chase_of(job);
    uint64_t start = 0;
    int failure = make_cycle(job);
    if (!failure)
        failure = job->backend->memory(&job->gpu, chase->bytes, &chase->nodes);
    if (!failure)
        failure = job->backend->memory(&job->gpu, sizeof start, &chase->cursor);
    return failure ? failure : gpu_upload(job->queue, chase->cursor, 0, &start, sizeof start);
}

static int open_chase(struct gpu_job *job)
{
    struct chase *chase = chase_of(job);
    int failure = clocks_open(job, true);
    if (!failure)
        failure = settle(job);
    if (!failure)
        failure = gpu_job_kernel(job, kernel_name(job), &chase->kernel);
    if (!failure)
        failure = allocate(job);
    if (!failure)
        failure = link_all(job);
    if (!failure)
        failure = flush_l2(job);
    job->work = (struct windows_work){
        .lanes = 1,
        .enqueue = enqueue,
        .work_per_size = KERNEL_CHASE_UNROLL,
        .time = true,
        .size_min = UNITS_LEAST,
        .size_max = UNITS_MOST,
    };
    return failure;
}

static void close_chase(struct gpu_job *job)
{
    struct chase *chase = chase_of(job);
    job->backend->release_memory(chase->nodes);
    job->backend->release_memory(chase->cursor);
    job->backend->release_kernel(chase->kernel);
    cycle_free(&chase->cycle);
}

const struct gpu_kind chase_kind = {
    .name = "pointer_chase",
    .own_bytes = sizeof(struct chase),
    .open = open_chase,
    .close = close_chase,
    .verify = verify,
    .finish = finish,
};
