/* smt_yield: what the second thread of a core adds. One thread alone, then two on the siblings of one
 * core, then two on two cores, in turn. */
#include "cpu_features.h"
#include "crew.h"
#include "loops.h"
#include "monotonic.h"
#include "partner.h"
#include "statistics.h"
#include "vector_kernel.h"

#include <inttypes.h>
#include <math.h>

enum {
    TIMES_KEPT = 256,   /* of passes, of one phase and thread */
    ROUNDS_KEPT = 4096, /* a minute and a half of them */
    NO_PARTNER = 0,     /* the first thread, which is never one */
};

/* The first passes of a phase: the other thread has to wake up, and clocks change. */
static const double SETTLE_S = 2e-3;
static const double PHASE_S = 6e-3;
/* The samples take whole numbers. */
static const double SCALE = 1e6;
static const char NO_OTHER_CORE[] = "all threads of this trial run on one core";
static const char NOT_ALONE[] =
    "the yield belongs to two threads together; the first thread reports it";
static const char TOO_SHORT[] =
    "no phase had a complete pass of each thread: other processes used the CPUs";

enum phase { ALONE, SIBLINGS, CORES, PHASES };

/* Of one thread. */
struct player {
    uint64_t batch;
    uint64_t begun; /* where the next chain begins */
    double times_s[TIMES_KEPT];
    unsigned time_count;
    uint64_t passes;       /* all that were timed */
    _Atomic uint64_t done; /* passes, also those that do not count */
};

struct smt {
    const struct kernel *kernel; /* NULL: the chain */
    uint64_t unit_operations;
    unsigned partners[PHASES];
    atomic_bool is_timed;              /* the passes of this moment count */
    struct reservoir rates[PHASES];    /* operation/s, both threads together */
    struct reservoir yields, controls; /* over the rate alone of the same round */
};

/* ---- who works ------------------------------------------------------------------------------ */

/* The first other thread that is, or is not, on the sibling of the first thread's CPU. */
static unsigned find_partner(const struct run *run, bool sibling)
{
    for (unsigned i = 1; i < run_threads(run); i++)
        if (run_siblings(run, 0, i) == sibling && run_cpu(run, i) != run_cpu(run, 0))
            return i;
    return NO_PARTNER;
}

static const char *unsupported(const struct run *run)
{
    (void)run;
    return run_siblings_visible()
               ? NULL
               : "no two CPUs that this process may use are SMT siblings: SMT is "
                 "off, or a hypervisor or a cpuset hides them";
}

static int check(struct run *run)
{
    if (run_clock_coarse(run))
        run_reason(run, "CLOCK_MONOTONIC moves in steps that are too coarse to time passes of 100 "
                        "µs: use another clock source of the kernel");
    else if (find_partner(run, true) == NO_PARTNER)
        run_reason(run,
                   "no other thread of this trial is on the SMT sibling of CPU %d, where the first "
                   "one runs: name both in --cpus",
                   run_cpu(run, 0));
    else
        return EXIT_OK;
    return EXIT_UNSUPPORTED;
}

/* ---- life ----------------------------------------------------------------------------------- */

/* The widest row of a type that this CPU has; every CPU has one of both workloads. */
static const struct kernel *widest(const struct kernel *rows, const char *dtype)
{
    const struct kernel *best = NULL;
    for (; rows->dtype; rows++)
        if (!strcmp(rows->dtype, dtype) && !rows->vendor && !features_missing(rows->features))
            best = rows;
    return best;
}

static int choose_kernel(struct run *run, struct smt *smt)
{
    bool is_chain = !strcmp(run_choice(run, "kernel"), "chain");
    bool is_fma = !strcmp(run_choice(run, "kernel"), "fma");
    smt->unit_operations = CHAIN_CYCLES;
    if (is_chain)
        return EXIT_OK;
    smt->kernel = is_fma ? widest(fma_kernels, "fp64") : widest(int_add_kernels, "int64");
    if (!smt->kernel) {
        run_reason(run, "this CPU has no fused multiply-add: use --kernel int_add or chain");
        return EXIT_UNSUPPORTED;
    }
    smt->unit_operations = kernel_operations(smt->kernel);
    run_fact(run, "isa", smt->kernel->isa);
    return EXIT_OK;
}

static bool reserve(struct smt *smt)
{
    for (int i = 0; i < PHASES; i++)
        if (reservoir_init(&smt->rates[i], ROUNDS_KEPT))
            return false;
    return !reservoir_init(&smt->yields, ROUNDS_KEPT) &&
           !reservoir_init(&smt->controls, ROUNDS_KEPT);
}

static int open_smt(struct run *run)
{
    int failure = crew_open(run, sizeof(struct smt), sizeof(struct player));
    struct smt *smt = crew_state(run);
    if (failure)
        return failure;
    if (!reserve(smt))
        return partner_lacks(run, "memory");
    smt->partners[SIBLINGS] = find_partner(run, true);
    smt->partners[CORES] = find_partner(run, false);
    run_set_unit(run, 1, 1);
    return choose_kernel(run, smt);
}

static void close_smt(struct run *run)
{
    struct smt *smt = crew_state(run);
    if (smt) {
        for (int i = 0; i < PHASES; i++)
            reservoir_free(&smt->rates[i]);
        reservoir_free(&smt->yields);
        reservoir_free(&smt->controls);
    }
    crew_close(run);
}

static const char *unconfirmed(const struct run *run)
{
    const struct smt *smt = crew_state(run);
    return smt->kernel ? kernel_row_unconfirmed(smt->kernel) : NULL;
}

static struct player *player_of(const struct thread *thread)
{
    return crew_member(thread->run, thread->index);
}

/* One addition waits for the one before. */
static int chain_step(struct thread *thread, uint64_t batch)
{
    struct player *player = player_of(thread);
    uint64_t begun = player->begun++;
    uint64_t sum = loop_sum_chain(batch, begun);
    uint64_t expected = begun + SUM_CHAIN_ADDEND * CHAIN_CYCLES * batch;
    if (sum == expected)
        return EXIT_OK;
    run_reason(thread->run,
               "the sum of a chain is %#" PRIx64 " instead of %#" PRIx64
               " on CPU %d: this CPU or this build computes incorrectly; do not trust its figures",
               sum, expected, thread->cpu);
    return EXIT_WRONG;
}

static int step(struct thread *thread, uint64_t batch)
{
    const struct smt *smt = crew_state(thread->run);
    return smt->kernel ? kernel_step(thread, batch) : chain_step(thread, batch);
}

static int setup(struct thread *thread)
{
    const struct smt *smt = crew_state(thread->run);
    int failure = smt->kernel ? kernel_begin(thread, smt->kernel) : EXIT_OK;
    if (failure)
        return failure;
    failure = crew_find_batch(thread, step, &player_of(thread)->batch);
    if (failure) /* the harness tears down what is set up */
        kernel_teardown(thread);
    return failure;
}

/* ---- a phase -------------------------------------------------------------------------------- */

/* A pass counts if the other thread has finished one meanwhile: if something else has that thread's
 * CPU, this one works alone. `other`: NULL where it is to. */
static int pass(struct thread *thread, const struct smt *smt, const struct player *other)
{
    struct player *player = player_of(thread);
    bool is_timed = atomic_load(&smt->is_timed);
    uint64_t seen = other ? atomic_load(&other->done) : 0;
    double start_s = now_s();
    int failure = step(thread, player->batch);
    double taken_s = now_s() - start_s;
    atomic_fetch_add(&player->done, 1);
    bool as_wanted = !other || atomic_load(&other->done) != seen;
    if (as_wanted && is_timed && atomic_load(&smt->is_timed) && player->time_count < TIMES_KEPT)
        player->times_s[player->time_count++] = taken_s;
    return failure;
}

/* Operations a second in the usual pass of the phase: ticks, and others on the CPU for a while,
 * lengthen a few. NaN: there was none. */
static double rate_of(const struct smt *smt, struct player *player)
{
    if (player->time_count == 0)
        return NAN;
    double usual_s = median(player->times_s, player->time_count);
    return (double)(player->batch * smt->unit_operations) / usual_s;
}

static int work_until(struct thread *thread, const struct smt *smt, const struct player *other,
                      double until_s)
{
    int failure = EXIT_OK;
    while (!failure && now_s() < until_s && !run_stopping(thread->run))
        failure = pass(thread, smt, other);
    return failure;
}

/* By the first thread. `rate`: of all that work in this phase, NaN without one. */
static int play(struct thread *thread, struct smt *smt, enum phase phase, double *rate)
{
    unsigned partner = smt->partners[phase];
    struct player *first = player_of(thread);
    struct player *other = partner == NO_PARTNER ? NULL : crew_member(thread->run, partner);
    first->time_count = 0;
    *rate = NAN;
    if (other) {
        other->time_count = 0;
        crew_call(thread->run, partner);
    }
    int failure = work_until(thread, smt, other, now_s() + SETTLE_S);
    atomic_store(&smt->is_timed, true);
    if (!failure)
        failure = work_until(thread, smt, other, now_s() + PHASE_S);
    atomic_store(&smt->is_timed, false);
    if (other) {
        crew_dismiss(thread->run, partner);
        if (!crew_join(thread->run, partner))
            return failure;
    }
    *rate = rate_of(smt, first);
    if (other)
        *rate += rate_of(smt, other);
    if (run_loop_timed(thread)) {
        first->passes += first->time_count;
        if (other)
            other->passes += other->time_count;
    }
    return failure;
}

/* For the samples a round counts like SCALE seconds: their rate is then the mean of the yields. */
static void note_round(const struct run *run, struct smt *smt, const double rates[PHASES])
{
    double yield = rates[SIBLINGS] / rates[ALONE], control = rates[CORES] / rates[ALONE];
    for (int i = 0; i < PHASES; i++)
        if (isfinite(rates[i]))
            reservoir_add(&smt->rates[i], rates[i]);
    if (isfinite(control))
        reservoir_add(&smt->controls, control);
    if (!isfinite(yield))
        return;
    reservoir_add(&smt->yields, yield);
    crew_note(run, (uint64_t)(yield * SCALE), SCALE);
}

/* Rounds are whole, so that what is compared was measured within some hundredths of a second. */
static int lead(struct thread *thread, struct smt *smt)
{
    int failure = EXIT_OK;
    do {
        double rates[PHASES] = {NAN, NAN, NAN};
        for (int i = 0; i < PHASES && !failure; i++)
            if (i == ALONE || smt->partners[i] != NO_PARTNER)
                failure = play(thread, smt, i, &rates[i]);
        if (run_loop_timed(thread))
            note_round(thread->run, smt, rates);
    } while (!failure && !run_loop_over(thread, 0, now_s()));
    crew_end(thread->run);
    return failure;
}

static int loop(struct thread *thread)
{
    struct smt *smt = crew_state(thread->run);
    int failure = EXIT_OK;
    if (thread->index == 0)
        return lead(thread, smt);
    while (!failure && crew_wait(thread))
        while (!failure && crew_wanted(thread))
            failure = pass(thread, smt, crew_member(thread->run, 0));
    return failure;
}

/* ---- figures -------------------------------------------------------------------------------- */

static double median_of(struct reservoir *found)
{
    return found->kept ? median(found->values, found->kept) : NAN;
}

static int verify(struct thread *thread, uint64_t units)
{
    struct smt *smt = crew_state(thread->run);
    const struct player *player = player_of(thread);
    (void)units; /* every pass was checked */
    if (thread->index > 0)
        run_bulk_none(thread, player->passes, NOT_ALONE);
    else if (smt->yields.kept)
        run_bulk_done(thread, player->passes, median_of(&smt->yields));
    else
        run_bulk_none(thread, player->passes, TOO_SHORT);
    return EXIT_OK;
}

static void add_figure(struct run *run, const char *name, struct reservoir *found, const char *why)
{
    if (found->kept)
        run_metric(run, name, median_of(found));
    else
        run_no_metric(run, name, why);
}

static void finish(struct thread *thread)
{
    struct run *run = thread->run;
    struct smt *smt = crew_state(run);
    const char *no_cores = smt->partners[CORES] == NO_PARTNER ? NO_OTHER_CORE : TOO_SHORT;
    run_bulk_rate(run, median_of(&smt->yields));
    add_figure(run, "operations_per_second_alone", &smt->rates[ALONE], TOO_SHORT);
    add_figure(run, "operations_per_second_siblings", &smt->rates[SIBLINGS], TOO_SHORT);
    add_figure(run, "operations_per_second_cores", &smt->rates[CORES], no_cores);
    add_figure(run, "cores_ratio", &smt->controls, no_cores);
}

/* ---- table ---------------------------------------------------------------------------------- */

static const char *const kernels[] = {"fma", "int_add", "chain", NULL};

static const struct param params[] = {
    {.name = "kernel",
     .type = PARAM_CHOICE,
     .initial = "fma",
     .choices = kernels,
     .roles = ROLE_AXIS | ROLE_TAG,
     .help = "Work of both threads. fma: the widest fp64 fused multiply-adds, int_add: the widest "
             "int64 additions; both use independent registers, so one thread alone keeps the "
             "execution units busy. chain: additions that wait for one another and leave the "
             "execution units mostly idle."},
    {.name = NULL},
};

static const struct metric metrics[] = {
    {"operations_per_second_alone", "operation/s", HIGHER_IS_BETTER,
     "Operations per second of the first thread alone."},
    {"operations_per_second_siblings", "operation/s", HIGHER_IS_BETTER,
     "Operations per second of two threads together on the two CPUs of one core."},
    {"operations_per_second_cores", "operation/s", HIGHER_IS_BETTER,
     "Operations per second of two threads together on two cores."},
    {"cores_ratio", "1", HIGHER_IS_BETTER,
     "Combined rate of two threads on two cores, divided by the rate of one thread alone. Expected "
     "is 2, less the drop of the core clock; a much lower value means that the two CPUs share a "
     "core although the host reports two."},
    {.name = NULL},
};

static const char *const excludes[] = {"work", NULL};

WORKLOAD(smt_yield) = {
    .name = "smt_yield",
    .description = "Compares one thread alone, two threads on the SMT siblings of one core and two "
                   "threads on two cores: shows what the second thread of a core adds.",
    .rate = {.name = "yield_ratio",
             .unit = "1",
             .description = "Combined rate of two threads on the SMT siblings of one core, divided "
                            "by the rate of one thread alone; 1 means that the second thread adds "
                            "nothing. Median over the rounds.",
             .combine = COMBINE_MEDIAN},
    .params = params,
    .excludes = excludes,
    .metrics = metrics,
    .unsupported = unsupported,
    .unconfirmed = unconfirmed,
    .check = check,
    .open = open_smt,
    .close = close_smt,
    .setup = setup,
    .loop = loop,
    .prepare = crew_prepare,
    .moved = crew_moved,
    .verify = verify,
    .finish = finish,
    .teardown = kernel_teardown,
};
