/* pointer_chase: the time of one load that depends on the one before. */
#include "chase.h"
#include "mem_workloads.h"
#include "working_set.h"

#include <inttypes.h>
#include <stdlib.h>

static const uint64_t NODES_MOST = (uint64_t)1 << 32;

/* On lines of its own, two at a time as they are prefetched. */
struct own {
    _Alignas(128) struct chase chase;
};

static unsigned chains_of(const struct run *run)
{
    return (unsigned)run_count(run, "chains");
}

static struct demand demand_of(const struct run *run)
{
    return (struct demand){
        .arrays = 1, .granule = run_count(run, "stride_bytes"), .granule_name = "stride"};
}

static int check_nodes(struct run *run, const struct demand *demand)
{
    uint64_t count = working_set_array_bytes(run, demand) / demand->granule;
    if (count > NODES_MOST) {
        run_reason(run,
                   "a thread's part of the working set has more than %" PRIu64 " nodes, one in "
                   "each %zu bytes: use more threads, a smaller --size-bytes or a larger "
                   "--stride-bytes",
                   NODES_MOST, demand->granule);
        return EXIT_USAGE;
    }
    if (count < chains_of(run)) {
        run_reason(run,
                   "--chains %u: a thread's part of the working set has %" PRIu64 " nodes, one in "
                   "each %zu bytes: use at most as many chains, or at least --size-bytes %" PRIu64,
                   chains_of(run), count, demand->granule,
                   (uint64_t)chains_of(run) * demand->granule * run_threads(run));
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

static int check(struct run *run)
{
    struct demand demand = demand_of(run);
    int failure = working_set_check_stride(run, "nodes");
    if (!failure)
        failure = working_set_check(run, &demand);
    return failure ? failure : check_nodes(run, &demand);
}

static int open_chases(struct run *run)
{
    struct demand demand = demand_of(run);
    uint64_t hops = (uint64_t)CHASE_UNROLLED * chains_of(run);
    struct working_set *set = calloc(1, sizeof *set);
    if (!set) {
        run_reason(run, "not enough memory for %u threads: use fewer", run_threads(run));
        return EXIT_RESOURCE;
    }
    run_set_shared(run, set);
    run_set_unit(run, hops, UINT64_MAX / hops);
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
    thread->state = aligned_alloc(_Alignof(struct own), sizeof(struct own));
    if (!thread->state) {
        run_reason(thread->run, "not enough memory for thread %u: use fewer threads",
                   thread->index);
        return EXIT_RESOURCE;
    }
    chase_begin(thread->state, working_set_array(set, thread->index, 0), set->array_bytes,
                run_count(thread->run, "stride_bytes"), chains_of(thread->run), thread->index);
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

static const struct param params[] = {
    {.name = "chains",
     .type = PARAM_COUNT,
     .initial = "1",
     .min = 1,
     .max = CHAINS_MOST,
     .roles = ROLE_AXIS | ROLE_TAG,
     .noun = "chain",
     .help = "Chains of pointers that each thread follows at the same time, at equal distances "
             "along the cycle: loads of different chains do not wait for one another."},
    {.name = "stride_bytes",
     .type = PARAM_COUNT,
     .unit = "byte",
     .initial = "64",
     .min = 64,
     .max = 1 << 30,
     .roles = ROLE_AXIS | ROLE_TAG,
     .help = "Bytes of the working set per node, a multiple of 64; the node occupies one of their "
             "cache lines. With 4096, each access goes to another page and few lines are used: "
             "this shows what the TLB covers."},
    PARAMS_WORKING_SET,
    {.name = NULL}};
static const struct metric metrics[] = {METRIC_HUGE_PAGE_RATIO, {.name = NULL}};

const struct workload pointer_chase_workload = {
    .name = "pointer_chase",
    .description = "Follows pointers through 64-byte nodes in random order: the latency of one "
                   "dependent load or, with several chains, how far loads overlap.",
    .rate =
        {.name = "access_time_s",
         .unit = "s",
         .description =
             "Time of one dependent access; with several chains, the time divided by the accesses "
             "of all chains. Median over the threads of each thread's median clean slice.",
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
