/* clock_ladder: the clock of a core by the number of cores at work, under one class of instructions.
 * After avx-turbo (Travis Downs), which runs each instruction set on 1 to n cores. */
#include "cpu_features.h"
#include "crew.h"
#include "monotonic.h"
#include "statistics.h"
#include "vector_kernel.h"

#include <math.h>

enum {
    RUNGS_MOST = 32,    /* numbers of threads; a round over them takes some 0.2 s */
    READINGS = 8,       /* of the clock, on each visit of a rung */
    ATTEMPTS = 32,      /* to get so many that count */
    READING_PASSES = 2, /* of the kernel before each of them */
};

/* Before the readings of a visit: power management looks at the cores about every millisecond, and a
 * change of the vector licence takes half of one (Intel's optimisation manual, "license"). */
static const double SETTLE_S = 3e-3;
/* Beside others who take the CPUs most visits are not confirmed: rounds go on for so long at most,
 * until each rung has a clock. */
static const double PATIENCE_S = 2;
static const char UNCONFIRMED[] = "no two readings in a row agreed within 1 %: other processes "
                                  "used the CPUs, or the trial was too short";

/* What a class of instructions executes. */
struct class {
    const char *isa;
    const struct kernel *rows;
    const char *dtype;
};

static const struct class classes[] = {
    {"scalar", fma_kernels, "fp64"}, {"avx2", fma_kernels, "fp64"}, {"avx512", fma_kernels, "fp64"},
    {"amx", dot_kernels, "bf16"},    {"neon", fma_kernels, "fp64"}, {"sve", fma_kernels, "fp64"},
};
enum { CLASSES = sizeof classes / sizeof *classes };

/* So many threads at work. */
struct rung {
    unsigned threads;
    double clock_hertz; /* the highest of all visits; NaN: none was confirmed */
};

/* Of one thread. */
struct climber {
    _Atomic uint64_t passes;
    uint64_t seen; /* passes that the first thread has seen */
    uint64_t batch;
    double readings[READINGS]; /* the latest ones */
    unsigned reading_count;
};

struct ladder {
    struct rung rungs[RUNGS_MOST];
    unsigned rung_count;
    double due_s;        /* when the time of the trial was over; 0: it is not */
    atomic_bool is_full; /* the first thread reads its clock, and all threads are at work */
    unsigned visits;     /* those that were confirmed */
};

/* ---- which kernel --------------------------------------------------------------------------- */

/* NULL: this architecture has no such class. */
static const struct kernel *kernel_of(const struct class *class)
{
    for (const struct kernel *row = class->rows; row->dtype; row++)
        if (!strcmp(row->dtype, class->dtype) && !strcmp(row->isa, class->isa))
            return row;
    return NULL;
}

static const struct kernel *kernel_of_run(const struct run *run)
{
    for (unsigned i = 0; i < CLASSES; i++)
        if (!strcmp(classes[i].isa, run_choice(run, "isa")))
            return kernel_of(&classes[i]);
    return NULL;
}

static void resolve(struct run *run)
{
    if (strcmp(run_choice(run, "isa"), "best"))
        return;
    for (unsigned i = 0; i < CLASSES; i++) {
        const struct kernel *kernel = kernel_of(&classes[i]);
        if (kernel && !features_missing(kernel->features))
            run_set_choice(run, "isa", classes[i].isa);
    }
}

static const char *unsupported(const struct run *run)
{
    const struct kernel *kernel = kernel_of_run(run);
    return kernel ? features_missing(kernel->features) : isa_foreign(run_choice(run, "isa"));
}

static const char *unconfirmed(const struct run *run)
{
    return kernel_row_unconfirmed(kernel_of_run(run));
}

/* ---- life ----------------------------------------------------------------------------------- */

static int check(struct run *run)
{
    if (run_clock_coarse(run)) {
        run_reason(run, "CLOCK_MONOTONIC moves in steps that are too coarse to time a clock chain: "
                        "use another clock source of the kernel");
        return EXIT_UNSUPPORTED;
    }
    if (!run_oversubscribed(run))
        return EXIT_OK;
    run_reason(run,
               "%u threads share %u CPUs: a step of the ladder is one more CPU at work, use one "
               "thread per CPU",
               run_threads(run), run_cpus(run));
    return EXIT_UNSUPPORTED;
}

/* Every number of threads, or RUNGS_MOST of them at equal distances, from one to all. */
static void list_rungs(struct ladder *ladder, unsigned threads)
{
    ladder->rung_count = threads < RUNGS_MOST ? threads : RUNGS_MOST;
    for (unsigned i = 0; i < ladder->rung_count; i++) {
        unsigned further = i ? i * (threads - 1) / (ladder->rung_count - 1) : 0;
        ladder->rungs[i] = (struct rung){.threads = 1 + further, .clock_hertz = NAN};
    }
}

static int open_ladder(struct run *run)
{
    int failure = crew_open(run, sizeof(struct ladder), sizeof(struct climber));
    if (failure)
        return failure;
    list_rungs(crew_state(run), run_threads(run));
    run_set_unit(run, 1, 1);
    return EXIT_OK;
}

static struct climber *climber_of(const struct thread *thread)
{
    return crew_member(thread->run, thread->index);
}

static int setup(struct thread *thread)
{
    int failure = kernel_begin(thread, kernel_of_run(thread->run));
    if (failure)
        return failure;
    failure = crew_find_batch(thread, kernel_step, &climber_of(thread)->batch);
    if (failure) /* the harness tears down what is set up */
        kernel_teardown(thread);
    return failure;
}

/* ---- a visit of a rung ---------------------------------------------------------------------- */

static int pass(struct thread *thread, struct climber *climber)
{
    int failure = kernel_step(thread, climber->batch);
    atomic_fetch_add_explicit(&climber->passes, 1, memory_order_relaxed);
    return failure;
}

static void note_reading(struct climber *climber, double clock_hertz)
{
    if (isfinite(clock_hertz) && clock_hertz > 0)
        climber->readings[climber->reading_count++ % READINGS] = clock_hertz;
}

/* The highest reading that a second one confirms: what takes the CPU for a moment, or works on the
 * other thread of its core, makes a chain longer, never shorter. NaN: none. */
static double confirmed_clock(const struct climber *climber)
{
    unsigned count = climber->reading_count < READINGS ? climber->reading_count : READINGS;
    return confirmed_highest(climber->readings, count);
}

static void note_passes(const struct run *run, unsigned threads)
{
    for (unsigned i = 1; i < threads; i++) {
        struct climber *climber = crew_member(run, i);
        climber->seen = atomic_load(&climber->passes);
    }
}

/* One that was not running is not at work for the clock either: with fewer at work it may rise. */
static bool all_have_worked(const struct run *run, unsigned threads)
{
    for (unsigned i = 1; i < threads; i++) {
        struct climber *climber = crew_member(run, i);
        if (atomic_load(&climber->passes) == climber->seen)
            return false;
    }
    return true;
}

static int read_clock(struct thread *thread, unsigned threads)
{
    struct climber *climber = climber_of(thread);
    int failure = EXIT_OK;
    note_passes(thread->run, threads);
    for (int i = 0; i < READING_PASSES && !failure; i++)
        failure = pass(thread, climber);
    double clock_hertz = kernel_clock_hertz(thread);
    if (all_have_worked(thread->run, threads))
        note_reading(climber, clock_hertz);
    return failure;
}

static int read_often(struct thread *thread, struct ladder *ladder, unsigned threads)
{
    const struct climber *climber = climber_of(thread);
    bool is_full = run_loop_timed(thread) && threads == run_threads(thread->run);
    int failure = EXIT_OK;
    atomic_store(&ladder->is_full, is_full);
    for (int i = 0; i < ATTEMPTS && climber->reading_count < READINGS && !failure; i++)
        failure = read_clock(thread, threads);
    atomic_store(&ladder->is_full, false);
    return failure;
}

/* A confirmed visit counts like a second: the rate of a sample is then the mean of the clocks. */
static void note_visit(struct thread *thread, struct ladder *ladder, struct rung *rung)
{
    double clock_hertz = confirmed_clock(climber_of(thread));
    if (isnan(clock_hertz))
        return;
    rung->clock_hertz = fmax(rung->clock_hertz, clock_hertz);
    ladder->visits++;
    crew_note(thread->run, (uint64_t)clock_hertz, 1);
}

/* By the first thread, with the others that the rung has. */
static int visit(struct thread *thread, struct ladder *ladder, struct rung *rung)
{
    struct climber *climber = climber_of(thread);
    int failure = EXIT_OK;
    climber->reading_count = 0;
    for (unsigned i = 1; i < rung->threads; i++)
        crew_call(thread->run, i);
    double ready_s = now_s() + SETTLE_S;
    while (!failure && now_s() < ready_s && !run_stopping(thread->run))
        failure = pass(thread, climber);
    if (!failure)
        failure = read_often(thread, ladder, rung->threads);
    for (unsigned i = 1; i < rung->threads; i++)
        crew_dismiss(thread->run, i);
    if (run_loop_timed(thread))
        note_visit(thread, ladder, rung);
    return failure;
}

static bool is_complete(const struct ladder *ladder)
{
    for (unsigned i = 0; i < ladder->rung_count; i++)
        if (isnan(ladder->rungs[i].clock_hertz))
            return false;
    return true;
}

/* After a visit, that of the last rung if `is_whole`. A round that has begun is finished. */
static bool is_over(const struct thread *thread, struct ladder *ladder, bool is_whole)
{
    double at_s = now_s();
    if (run_stopping(thread->run))
        return true;
    if (!run_loop_over(thread, 0, at_s))
        return false;
    if (!run_loop_timed(thread))
        return true;
    if (ladder->due_s == 0)
        ladder->due_s = at_s;
    return is_whole && (is_complete(ladder) || at_s > ladder->due_s + PATIENCE_S);
}

static int lead(struct thread *thread, struct ladder *ladder)
{
    int failure = EXIT_OK;
    unsigned next = 0;
    do {
        failure = visit(thread, ladder, &ladder->rungs[next]);
        next = (next + 1) % ladder->rung_count;
    } while (!failure && !is_over(thread, ladder, next == 0));
    crew_end(thread->run);
    return failure;
}

/* Its own clock is that of all at work. */
static int follow(struct thread *thread, struct ladder *ladder)
{
    struct climber *climber = climber_of(thread);
    int failure = EXIT_OK;
    while (!failure && crew_wanted(thread)) {
        bool is_full = atomic_load(&ladder->is_full);
        for (int i = 0; i < READING_PASSES && !failure; i++)
            failure = pass(thread, climber);
        double clock_hertz = kernel_clock_hertz(thread);
        if (is_full && atomic_load(&ladder->is_full))
            note_reading(climber, clock_hertz);
    }
    return failure;
}

static int loop(struct thread *thread)
{
    struct ladder *ladder = crew_state(thread->run);
    int failure = EXIT_OK;
    if (thread->index == 0)
        return lead(thread, ladder);
    while (!failure && crew_wait(thread))
        failure = follow(thread, ladder);
    return failure;
}

/* ---- figures -------------------------------------------------------------------------------- */

static const struct rung *last_rung(const struct ladder *ladder)
{
    return &ladder->rungs[ladder->rung_count - 1];
}

/* The rung of most threads that has a clock; the last one if none has. */
static const struct rung *highest_with_clock(const struct ladder *ladder)
{
    for (unsigned i = ladder->rung_count; i > 0; i--)
        if (!isnan(ladder->rungs[i - 1].clock_hertz))
            return &ladder->rungs[i - 1];
    return last_rung(ladder);
}

static void tell_clock(struct thread *thread, uint64_t readings, double clock_hertz)
{
    if (isnan(clock_hertz))
        run_bulk_none(thread, readings, UNCONFIRMED);
    else
        run_bulk_done(thread, readings, clock_hertz);
}

static int verify(struct thread *thread, uint64_t units)
{
    const struct ladder *ladder = crew_state(thread->run);
    const struct climber *climber = climber_of(thread);
    (void)units; /* every pass was checked */
    if (thread->index == 0)
        tell_clock(thread, ladder->visits, last_rung(ladder)->clock_hertz);
    else
        tell_clock(thread, climber->reading_count, confirmed_clock(climber));
    return EXIT_OK;
}

static void add_clock(struct run *run, const char *name, double clock_hertz)
{
    if (isnan(clock_hertz))
        run_no_metric(run, name, UNCONFIRMED);
    else
        run_metric(run, name, clock_hertz);
}

static void finish(struct thread *thread)
{
    struct run *run = thread->run;
    const struct ladder *ladder = crew_state(run);
    double lowest = NAN;
    unsigned measured = 0;
    for (unsigned i = 0; i < ladder->rung_count; i++) {
        const struct rung *rung = &ladder->rungs[i];
        if (isnan(rung->clock_hertz))
            continue;
        run_rung(run, rung->threads, rung->clock_hertz);
        lowest = fmin(lowest, rung->clock_hertz);
        measured++;
    }
    const struct rung *highest = highest_with_clock(ladder);
    if (highest != last_rung(ladder))
        run_warning(run, "top_rung_missing",
                    "the core clock with all %u threads at work is unknown: %s; clock_hertz is the "
                    "clock with %u",
                    run_threads(run), UNCONFIRMED, highest->threads);
    run_bulk_rate(run, highest->clock_hertz);
    add_clock(run, "clock_hertz_alone", ladder->rungs[0].clock_hertz);
    add_clock(run, "clock_hertz_lowest", lowest);
    run_metric(run, "rungs_measured", measured);
}

/* ---- table ---------------------------------------------------------------------------------- */

static const char *const ladder_isas[] = {"best", "scalar", "avx2", "avx512",
                                          "amx",  "neon",   "sve",  NULL};

static const struct param params[] = {
    PARAM_ISA(ladder_isas, "It selects the class of instructions: amx multiplies tiles of bf16, "
                           "the others run the fp64 fused multiply-adds of `fma`."),
    {.name = NULL},
};

static const struct metric metrics[] = {
    {"clock_hertz_alone", "Hz", HIGHER_IS_BETTER,
     "Core clock of the first thread while it works alone."},
    {"clock_hertz_lowest", "Hz", HIGHER_IS_BETTER,
     "Lowest of the clocks measured at the different numbers of working threads."},
    {"rungs_measured", "1", HIGHER_IS_BETTER,
     "How many numbers of working threads have a confirmed clock. The workload tries every number "
     "from 1 to all threads, or 32 of them if there are more than 32 threads."},
    {.name = NULL},
};

static const char *const excludes[] = {"work", NULL};

WORKLOAD(clock_ladder) = {
    .name = "clock_ladder",
    .description =
        "Measures the core clock while more and more cores run one class of instructions.",
    .rate = {.name = "clock_hertz",
             .unit = "Hz",
             .description =
                 "Core clock of the first thread while all threads work: the highest reading that "
                 "a second reading confirmed to within 1 %. If other processes kept all of them "
                 "from being confirmed, the figure is the clock at the largest number of threads "
                 "that has a confirmed one, and the warning top_rung_missing says so.",
             .combine = COMBINE_MEDIAN},
    .params = params,
    .excludes = excludes,
    .metrics = metrics,
    .resolve = resolve,
    .unsupported = unsupported,
    .unconfirmed = unconfirmed,
    .check = check,
    .open = open_ladder,
    .close = crew_close,
    .setup = setup,
    .loop = loop,
    .prepare = crew_prepare,
    .moved = crew_moved,
    .verify = verify,
    .finish = finish,
    .teardown = kernel_teardown,
};
