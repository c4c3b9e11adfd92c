/* code_chase: the time of one jump to code on another cache line. */
#include "code.h"
#include "core_clock.h"
#include "mem_workloads.h"
#include "stream.h"
#include "working_set.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct code_chase {
    struct working_set set;
    double clock_hertz; /* of the first thread's core, right after the timed region */
};

/* On lines of its own, two at a time as they are prefetched. */
struct own {
    _Alignas(128) struct code code;
};

static const char *unsupported(const struct run *run)
{
    const char *refused = code_refused();
    return refused ? refused : working_set_unsupported(run);
}

static const char *unconfirmed(const struct run *run)
{
    (void)run;
#if defined(__aarch64__)
    return "this code was not run on hardware before: its evidence is an emulator that executes it";
#else
    return NULL;
#endif
}

static struct demand demand_of(const struct run *run)
{
    return (struct demand){.arrays = 1,
                           .granule = CODE_UNIT * run_count(run, "stride_bytes"),
                           .granule_name = "loop of 32 blocks"};
}
_Static_assert(CODE_UNIT == 32, "as the name of the granule says");

static int check(struct run *run)
{
    struct demand demand = demand_of(run);
    int failure = working_set_check_stride(run, "blocks");
    return failure ? failure : working_set_check(run, &demand);
}

static int open_code(struct run *run)
{
    struct demand demand = demand_of(run);
    struct code_chase *shared = calloc(1, sizeof *shared);
    if (!shared) {
        run_reason(run, "no memory for %u threads: use fewer", run_threads(run));
        return EXIT_RESOURCE;
    }
    run_set_shared(run, shared);
    run_set_unit(run, CODE_UNIT, UINT64_MAX / CODE_UNIT);
    return working_set_reserve(run, &shared->set, &demand);
}

static void close_code(struct run *run)
{
    struct code_chase *shared = run_shared(run);
    if (shared)
        working_set_release(&shared->set);
    free(shared);
}

static int setup(struct thread *thread)
{
    const struct code_chase *shared = run_shared(thread->run);
    const struct working_set *set = &shared->set;
    int failure = working_set_touch(thread, set);
    if (failure || run_stopping(thread->run))
        return failure;
    thread->state = aligned_alloc(_Alignof(struct own), sizeof(struct own));
    if (!thread->state) {
        run_reason(thread->run, "no memory for thread %u: use fewer threads", thread->index);
        return EXIT_RESOURCE;
    }
    return code_begin(thread, thread->state, working_set_array(set, thread->index, 0),
                      set->array_bytes, set->thread_step, run_count(thread->run, "stride_bytes"),
                      !strcmp(run_choice(thread->run, "pattern"), "random"));
}

static int calibrate(struct thread *thread)
{
    struct code_chase *shared = run_shared(thread->run);
    if (thread->index == 0)
        working_set_inspect(thread->run, &shared->set);
    return EXIT_OK;
}

static int step(struct thread *thread, uint64_t batch)
{
    code_units(thread->state, batch);
    return EXIT_OK;
}

static int verify(struct thread *thread, uint64_t units)
{
    struct code_chase *shared = run_shared(thread->run);
    if (thread->index == 0)
        shared->clock_hertz = core_clock_hertz();
    return code_verify(thread, thread->state, units);
}

static void finish(struct thread *thread)
{
    const struct code_chase *shared = run_shared(thread->run);
    double jumps = core_rate_per_cycle(thread->run, "jump_cycles", shared->clock_hertz);
    if (isfinite(jumps))
        run_metric(thread->run, "jump_cycles", 1 / jumps);
    run_metric(thread->run, "huge_page_ratio", shared->set.huge_page_ratio);
}

static void teardown(struct thread *thread)
{
    free(thread->state);
}

static const struct param params[] = {
    PARAM_PATTERN_ON("random"),
    {.name = "stride_bytes",
     .type = PARAM_COUNT,
     .unit = "byte",
     .initial = "64",
     .min = 64,
     .max = CODE_STRIDE_MOST,
     .roles = ROLE_AXIS | ROLE_TAG,
     .help = "Bytes of the working set for each block, a multiple of 64; the block is on one of "
             "their lines. With 4096 each jump leads to another page: what the TLB of "
             "instructions covers."},
    PARAMS_WORKING_SET,
    {.name = NULL}};
static const struct metric metrics[] = {
    {"jump_cycles", "cycle", LOWER_IS_BETTER,
     "The time of one jump in cycles, the mean of all threads: of the core clock, that of a chain "
     "of dependent additions on the first thread's core, right after the timed region."},
    METRIC_HUGE_PAGE_RATIO,
    {.name = NULL}};

const struct workload code_chase_workload = {
    .name = "code_chase",
    .description = "Jumps through blocks of code, each on a cache line of its own, that add a "
                   "number to a register: what fetching instructions takes, by the size of the "
                   "code.",
    .rate = {.name = "jump_time_s",
             .unit = "s",
             .description = "Time of one jump and the addition before it. Median over the threads "
                            "of the median of their clean slices.",
             .combine = COMBINE_MEDIAN,
             .time = true},
    .params = params,
    .metrics = metrics,
    .setup_s = 1.5,
    .setup_s_per_byte = 2e-9,
    .unsupported = unsupported,
    .unconfirmed = unconfirmed,
    .check = check,
    .open = open_code,
    .close = close_code,
    .setup = setup,
    .calibrate = calibrate,
    .step = step,
    .verify = verify,
    .finish = finish,
    .teardown = teardown,
};
