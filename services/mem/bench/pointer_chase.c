/* pointer_chase: the time of one load that depends on the one before. */
#include "chase.h"
#include "mem_workloads.h"
#include "working_set.h"

#include <stdlib.h>

static const uint64_t NODES_MOST = (uint64_t)1 << 32;

static const struct demand demand = {
    .arrays = 1, .granule = sizeof(struct node), .granule_name = "node"};

static int check(struct run *run)
{
    int failure = working_set_check(run, &demand);
    if (failure || working_set_array_bytes(run, &demand) / sizeof(struct node) <= NODES_MOST)
        return failure;
    run_reason(run,
               "a thread's part of the working set has more than %llu nodes of 64 bytes: use more "
               "threads or a smaller --size-bytes",
               (unsigned long long)NODES_MOST);
    return EXIT_USAGE;
}

static int open_chases(struct run *run)
{
    struct working_set *set = calloc(1, sizeof *set);
    if (!set) {
        run_reason(run, "no memory for %u threads: use fewer", run_threads(run));
        return EXIT_RESOURCE;
    }
    run_set_shared(run, set);
    run_set_unit(run, CHASE_UNROLLED, UINT64_MAX / CHASE_UNROLLED);
    return working_set_reserve(run, set, &demand);
}

static void close_chases(struct run *run)
{
    struct working_set *set = run_shared(run);
    if (set)
        working_set_release(set);
    free(set);
}

static int setup(struct thread *thread)
{
    const struct working_set *set = run_shared(thread->run);
    int failure = working_set_touch(thread, set);
    if (failure || run_stopping(thread->run))
        return failure;
    thread->state = aligned_alloc(128, 128);
    if (!thread->state) {
        run_reason(thread->run, "no memory for thread %u: use fewer threads", thread->index);
        return EXIT_RESOURCE;
    }
    chase_begin(thread->state, working_set_array(set, thread->index, 0), set->array_bytes,
                thread->index);
    return EXIT_OK;
}

static int calibrate(struct thread *thread)
{
    if (thread->index == 0)
        working_set_inspect(thread->run, run_shared(thread->run));
    return EXIT_OK;
}

static int step(struct thread *thread, uint64_t batch)
{
    chase_units(thread->state, batch);
    return EXIT_OK;
}

static int verify(struct thread *thread, uint64_t units)
{
    return chase_verify(thread, thread->state, units);
}

static void finish(struct thread *thread)
{
    const struct working_set *set = run_shared(thread->run);
    run_metric(thread->run, "huge_page_ratio", set->huge_page_ratio);
}

static void teardown(struct thread *thread)
{
    free(thread->state);
}

static const struct param params[] = {PARAMS_WORKING_SET, {.name = NULL}};
static const struct metric metrics[] = {METRIC_HUGE_PAGE_RATIO, {.name = NULL}};

const struct workload pointer_chase_workload = {
    .name = "pointer_chase",
    .description = "Follows pointers through nodes of 64 bytes in random order: the latency of one "
                   "dependent load.",
    .rate = {.name = "access_time_s",
             .unit = "s",
             .description = "Time of one access that depends on the one before: median over the "
                            "threads of the median of their clean slices.",
             .combine = COMBINE_MEDIAN,
             .time = true},
    .params = params,
    .metrics = metrics,
    .setup_s = 0.5,
    .setup_s_per_byte = 4.5e-10,
    .unsupported = working_set_unsupported,
    .check = check,
    .open = open_chases,
    .close = close_chases,
    .setup = setup,
    .calibrate = calibrate,
    .step = step,
    .verify = verify,
    .finish = finish,
    .teardown = teardown,
};
