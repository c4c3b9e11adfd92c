/* loaded_latency: the time of a dependent load while other threads load the memory. */
#include "chase.h"
#include "isa.h"
#include "mem_workloads.h"
#include "monotonic.h"
#include "store.h"
#include "walk.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    BURST_BYTES = 1 << 16, /* of an array, between two pauses: some microseconds */
    BURST_LINES = BURST_BYTES / LINE_BYTES,
    IDLE_NS = 200000, /* at no intensity at all: a few steps in each slice of the others */
};

/* A pause behind a burst is then some milliseconds. */
static const double LEAST_INTENSITY = 0.001;

/* Of the time, for which threads that load have a CPU; below, there was less load than requested. */
static const double LOADED_CPU_RATIO = 0.97;

struct loaded {
    struct ground ground;
    struct candidates candidates;
    struct walk *walks; /* of the threads that load */
    struct chase chase; /* of the first thread */
    double intensity;
};

/* ---- parameters ----------------------------------------------------------------------------- */

static const char *const loads[] = {"read", "write", "copy", "triad", NULL};

static enum operation operation_of(const struct run *run)
{
    static const enum operation operations[] = {OPERATION_READ, OPERATION_WRITE, OPERATION_COPY,
                                                OPERATION_TRIAD};
    const char *load = run_choice(run, "load");
    size_t i = 0;
    while (strcmp(loads[i], load) != 0)
        i++;
    return operations[i];
}

static struct demand demand_of(const struct run *run)
{
    return (struct demand){.arrays = walk_arrays(operation_of(run)),
                           .granule = LINE_BYTES,
                           .granule_name = "cache line",
                           .beyond_caches = true};
}

static const char *unsupported(const struct run *run)
{
    if (run_threads(run) == 1)
        return "one thread measures the latency, others make the load: 2 threads or more are "
               "needed";
    const char *reason = isa_unsupported(run);
    return reason ? reason : working_set_unsupported(run);
}

static int check(struct run *run)
{
    struct demand demand = demand_of(run);
    double intensity = run_number(run, "intensity");
    if (intensity > 0 && intensity < LEAST_INTENSITY) {
        run_reason(run,
                   "--intensity %g: pauses would be longer than a slice; take 0 or %g and more",
                   intensity, LEAST_INTENSITY);
        return EXIT_USAGE;
    }
    return working_set_check(run, &demand);
}

/* What is stored goes past the caches: then the bytes that are counted are those on the bus. */
static bool find_kernel(const struct run *run, struct loaded *loaded)
{
    struct wish wish = {.operation = operation_of(run),
                        .isa = run_choice(run, "isa"),
                        .store = operation_of(run) == OPERATION_READ ? "plain" : "nt",
                        .streams = "8",
                        .prefetch = "none"};
    if (candidates_find(&loaded->candidates, &wish, &loaded->ground))
        return true;
    wish.streams = "1";
    return candidates_find(&loaded->candidates, &wish, &loaded->ground);
}

/* ---- life ----------------------------------------------------------------------------------- */

static int lacks_memory(struct run *run)
{
    run_reason(run, "not enough memory for %u threads: use fewer", run_threads(run));
    return EXIT_RESOURCE;
}

static int open_loaded(struct run *run)
{
    struct demand demand = demand_of(run);
    struct loaded *loaded = calloc(1, sizeof *loaded);
    if (!loaded)
        return lacks_memory(run);
    run_set_shared(run, loaded);
    loaded->intensity = run_number(run, "intensity");
    loaded->ground.operation = operation_of(run);
    ground_divide(&loaded->ground, working_set_array_bytes(run, &demand), 0);
    loaded->walks = walks_make(run_threads(run));
    if (!loaded->walks || !find_kernel(run, loaded))
        return lacks_memory(run);
    run_set_unit(run, CHASE_UNROLLED, UINT64_MAX / CHASE_UNROLLED);
    return working_set_reserve(run, &loaded->ground.set, &demand);
}

static void close_loaded(struct run *run)
{
    struct loaded *loaded = run_shared(run);
    if (!loaded)
        return;
    working_set_release(&loaded->ground.set);
    free(loaded->walks);
    free(loaded);
}

static bool makes_load(const struct thread *thread)
{
    return thread->index > 0;
}

static int setup_chase(struct thread *thread, struct loaded *loaded)
{
    const struct working_set *set = &loaded->ground.set;
    int failure = working_set_touch(thread, set);
    if (!failure && !run_stopping(thread->run))
        chase_begin(&loaded->chase, working_set_array(set, 0, 0), set->arrays * set->array_bytes,
                    sizeof(struct node), 1, 1);
    return failure;
}

static int setup(struct thread *thread)
{
    struct loaded *loaded = run_shared(thread->run);
    thread->state = &loaded->walks[thread->index];
    if (!makes_load(thread))
        return setup_chase(thread, loaded);
    return walk_begin(thread->state, &loaded->ground, thread);
}

static int calibrate(struct thread *thread)
{
    struct loaded *loaded = run_shared(thread->run);
    if (makes_load(thread)) {
        int failure = candidates_try(&loaded->candidates, thread, thread->state);
        walk_count_anew(thread->state);
        return failure;
    }
    working_set_inspect(thread->run, &loaded->ground.set);
    return EXIT_OK;
}

static void teardown(struct thread *thread)
{
    walk_end(thread->state);
}

/* ---- step ----------------------------------------------------------------------------------- */

static inline void relax(void)
{
#if defined(__x86_64__)
    __asm__ volatile("pause");
#else
    __asm__ volatile("yield");
#endif
}

/* A burst, and a pause that makes the burst the requested share of both. */
static void burst(const struct loaded *loaded, struct walk *walk)
{
    double start_s = now_s();
    walk_units(walk, BURST_LINES);
    if (loaded->intensity >= 1)
        return;
    double end_s = start_s + (now_s() - start_s) / loaded->intensity;
    while (now_s() < end_s)
        relax();
}

static void make_load(const struct loaded *loaded, struct walk *walk, uint64_t bursts)
{
    const struct timespec idle = {.tv_nsec = IDLE_NS};
    if (loaded->intensity > 0)
        for (uint64_t i = 0; i < bursts; i++)
            burst(loaded, walk);
    else
        nanosleep(&idle, NULL);
}

static int step(struct thread *thread, uint64_t batch)
{
    struct loaded *loaded = run_shared(thread->run);
    if (makes_load(thread))
        make_load(loaded, thread->state, batch);
    else
        chase_units(&loaded->chase, batch);
    return EXIT_OK;
}

static int verify(struct thread *thread, uint64_t units)
{
    struct loaded *loaded = run_shared(thread->run);
    if (!makes_load(thread))
        return chase_verify(thread, &loaded->chase, units);
    uint64_t bursts = loaded->intensity > 0 ? units : 0;
    return walk_verify(thread, thread->state, bursts * BURST_LINES);
}

/* Threads that only spin between two bursts use their CPU as well; those at no intensity sleep. */
static void warn_of_starved_load(const struct run *run, const struct loaded *loaded)
{
    double ratio = run_background_cpu_ratio(run);
    if (loaded->intensity > 0 && ratio < LOADED_CPU_RATIO)
        run_warning(run, "load_starved",
                    "the load threads had a CPU for %.0f %% of the time: the load was less than "
                    "requested; free the CPUs of other work, or use one thread per CPU",
                    100 * ratio);
}

static void finish(struct thread *thread)
{
    const struct loaded *loaded = run_shared(thread->run);
    const struct ground *ground = &loaded->ground;
    double bursts_per_s = loaded->intensity > 0 ? run_background_rate(thread->run) : 0;
    run_metric(thread->run, "load_bytes_per_second",
               bursts_per_s * BURST_BYTES * walk_arrays(ground->operation));
    run_metric(thread->run, "huge_page_ratio", ground->set.huge_page_ratio);
    warn_of_starved_load(thread->run, loaded);
}

/* ---- table ---------------------------------------------------------------------------------- */

static const struct param params[] = {
    {.name = "load",
     .type = PARAM_CHOICE,
     .initial = "read",
     .choices = loads,
     .roles = ROLE_TAG,
     .help = "What the other threads do in the meantime; their stores bypass the caches."},
    {.name = "intensity",
     .type = PARAM_NUMBER,
     .unit = "1",
     .initial = "1",
     .min = 0,
     .max = 1,
     .roles = ROLE_AXIS,
     .help = "Share of the time in which each of the other threads works, in bursts of some "
             "microseconds; at least 0.001, or 0: they sleep."},
    PARAM_ISA,
    PARAMS_WORKING_SET,
    {.name = NULL}};

static const struct metric metrics[] = {{"load_bytes_per_second", "byte/s", HIGHER_IS_BETTER,
                                         "Bytes per second that the other threads read and wrote "
                                         "in the meantime, all together, counted as STREAM does."},
                                        METRIC_HUGE_PAGE_RATIO,
                                        {.name = NULL}};

const struct workload loaded_latency_workload = {
    .name = "loaded_latency",
    .description = "Follows pointers like pointer_chase on the first thread while the other "
                   "threads load the memory.",
    .rate = {.name = "access_time_s",
             .unit = "s",
             .description =
                 "Time of one dependent access on the first thread: median of its clean slices.",
             .combine = COMBINE_MEDIAN,
             .time = true},
    .params = params,
    .metrics = metrics,
    .setup_s = 0.6,
    .setup_s_per_byte = 5.5e-10,
    .resolve = isa_resolve,
    .unsupported = unsupported,
    .unconfirmed = isa_unconfirmed,
    .check = check,
    .open = open_loaded,
    .close = close_loaded,
    .setup = setup,
    .calibrate = calibrate,
    .background = makes_load,
    .step = step,
    .verify = verify,
    .finish = finish,
    .teardown = teardown,
};
