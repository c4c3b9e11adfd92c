/* naive_operations: operations counted in a loop without optimisation, by a clock around the whole.
 * What is counted is a part of what the loop does, and all of its time is the operations'. */
#include "cpu_features.h"
#include "monotonic.h"
#include "naive_loops.h"
#include "workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_PASSES = 1000,
    /* Sums of fp32 are exact up to 2^24. */
    MOST_PASSES = 1 << 22,
    EMPTY_PASSES = 1 << 16,
    UNIT_MAX = 1 << 30,
    /* The empty loop is short beside the reports', so one interruption would be much of it: the
     * shortest of some counts. */
    EMPTY_TIMES = 3,
};
/* Asking for the time between the pieces of a loop is to take no time. */
static const double PIECE_S = 1e-3;
static const double EMPTY_S = 20e-3;
/* … where threads share a CPU: each is to have several turns. */
static const double EMPTY_SHARED_S = 80e-3;

struct stretch {
    double begun_s, ended_s; /* by the time of day */
    uint64_t passes;
};

/* Of one thread. */
struct naive {
    struct naive_memory memory;
    struct stretch timed, empty[EMPTY_TIMES];
    uint64_t piece; /* passes */
    uint64_t pieces;
    _Atomic uint64_t moved;
    _Atomic double moved_at_s;
};

/* Of all: what thread 0 adds up. */
struct naives {
    const struct naive_loop *loop;
    struct naive **each;
};

/* As the reports read the time: of the day, in microseconds. */
static double day_s(const struct thread *thread)
{
    return (double)run_wall_us(thread->run) * 1e-6;
}

static const struct naive_loop *loop_of(const struct run *run)
{
    const char *method = run_choice(run, "method"), *dtype = run_choice(run, "dtype");
    for (const struct naive_loop *loop = naive_loops; loop->method; loop++)
        if (!strcmp(loop->method, method) && !strcmp(loop->dtype, dtype))
            return loop;
    return NULL;
}

static bool is_chosen(const struct run *run, const char *param, const char *choice)
{
    return !strcmp(run_choice(run, param), choice);
}

static const char *unsupported(const struct run *run)
{
    if (!is_chosen(run, "method", "avx"))
        return NULL;
#if defined(__x86_64__)
    return features_missing(FEATURE_AVX2);
#else
    return isa_foreign("avx2");
#endif
}

static int check(struct run *run)
{
    const char *method = run_choice(run, "method");
    if (is_chosen(run, "method", "compare") && is_chosen(run, "loop_time", "subtracted")) {
        run_reason(run, "loop_time subtracted is not for method compare, whose counter is the "
                        "loop's own: nothing would be left; give --loop-time counted");
        return EXIT_USAGE;
    }
    if (loop_of(run))
        return EXIT_OK;
    run_reason(run, "dtype %s is not for method %s; give --dtype int32, fp32 or fp64",
               run_choice(run, "dtype"), method);
    return EXIT_USAGE;
}

/* ---- open and close -------------------------------------------------------------------------- */

static int no_memory(struct run *run)
{
    run_reason(run, "not enough memory for the variables of a loop");
    return EXIT_RESOURCE;
}

static int open_all(struct run *run)
{
    struct naives *naives = calloc(1, sizeof *naives);
    if (!naives)
        return no_memory(run);
    run_set_shared(run, naives);
    naives->loop = loop_of(run);
    naives->each = calloc(run_threads(run), sizeof(struct naive *));
    run_set_unit(run, naives->loop->operations, UNIT_MAX);
    return naives->each ? EXIT_OK : no_memory(run);
}

static void close_all(struct run *run)
{
    struct naives *naives = run_shared(run);
    if (!naives)
        return;
    for (unsigned i = 0; naives->each && i < run_threads(run); i++)
        free(naives->each[i]);
    free(naives->each);
    free(naives);
}

static struct naives *naives_of(const struct thread *thread)
{
    return run_shared(thread->run);
}

static int setup(struct thread *thread)
{
    struct naive *naive = aligned_alloc(64, (sizeof *naive + 63) / 64 * 64);
    if (!naive)
        return no_memory(thread->run);
    memset(naive, 0, sizeof *naive);
    naive->piece = FIRST_PASSES;
    naives_of(thread)->each[thread->index] = naive;
    thread->state = naive;
    return EXIT_OK;
}

/* ---- a piece of a loop, and its check --------------------------------------------------------- */

static void set_element(void *array, const char *dtype, unsigned i, unsigned value)
{
    if (!strcmp(dtype, "int32"))
        ((int32_t *)array)[i] = (int32_t)value;
    else if (!strcmp(dtype, "fp32"))
        ((float *)array)[i] = (float)value;
    else
        ((double *)array)[i] = value;
}

static double element(const void *array, const char *dtype, unsigned i)
{
    if (!strcmp(dtype, "int32"))
        return ((const int32_t *)array)[i];
    return !strcmp(dtype, "fp32") ? (double)((const float *)array)[i] : ((const double *)array)[i];
}

/* Of each piece, another b. */
static unsigned addend(const struct naive *naive)
{
    return 1 + (unsigned)(naive->pieces % 1000);
}

static void fill(const struct naive_loop *loop, struct naive *naive)
{
    struct naive_memory *memory = &naive->memory;
    memset(memory->sums, 0, sizeof memory->sums);
    memory->counted = 0;
    if (strcmp(loop->method, "avx"))
        return;
    memset(memory->c, 0, sizeof memory->c);
    for (unsigned i = 0; i < loop->operations * NAIVE_VECTORS; i++) {
        set_element(memory->a, loop->dtype, i, i);
        set_element(memory->b, loop->dtype, i, addend(naive));
    }
}

/* A sum of `passes` ones in the type. */
static double ones(const char *dtype, uint64_t passes)
{
    if (!strcmp(dtype, "int8"))
        return (int8_t)passes;
    return !strcmp(dtype, "int16") ? (double)(int16_t)passes : (double)passes;
}

static bool is_right(const struct naive_loop *loop, const struct naive *naive, uint64_t passes)
{
    const struct naive_memory *memory = &naive->memory;
    if (!strcmp(loop->method, "compare"))
        return memory->counted == passes;
    if (!strcmp(loop->method, "add_sub")) {
        for (unsigned i = 0; i < NAIVE_SUMS; i++)
            if (memory->sums[i] != ones(loop->dtype, passes))
                return false;
        return true;
    }
    uint64_t vectors = passes < NAIVE_VECTORS ? passes : NAIVE_VECTORS;
    for (unsigned i = 0; i < loop->operations * vectors; i++)
        if (element(memory->c, loop->dtype, i) != i + addend(naive))
            return false;
    return true;
}

static int do_piece(struct thread *thread, uint64_t passes)
{
    struct naive *naive = thread->state;
    const struct naive_loop *loop = naives_of(thread)->loop;
    fill(loop, naive);
    loop->run(passes, &naive->memory);
    if (!is_right(loop, naive, passes)) {
        run_reason(thread->run, "%s %s left a wrong result after %llu passes on CPU %d",
                   loop->method, loop->dtype, (unsigned long long)passes, thread->cpu);
        return EXIT_WRONG;
    }
    naive->pieces++;
    return EXIT_OK;
}

/* ---- a phase --------------------------------------------------------------------------------- */

/* The next piece: no longer than what is left of a fixed work. */
static uint64_t next_piece(const struct thread *thread, uint64_t done, double at_s)
{
    const struct naive *naive = thread->state;
    uint64_t passes = naive->piece;
    while (passes > 1 && run_loop_over(thread, done + passes - 1, at_s))
        passes /= 2;
    return passes;
}

static void report_progress(struct naive *naive, uint64_t operations, double at_s)
{
    atomic_store(&naive->moved, operations);
    atomic_store(&naive->moved_at_s, at_s);
}

static uint64_t moved(const struct thread *thread, double *at_s)
{
    struct naive *naive = thread->state;
    *at_s = atomic_load(&naive->moved_at_s);
    return atomic_load(&naive->moved);
}

static int work(struct thread *thread, uint64_t *done)
{
    struct naive *naive = thread->state;
    unsigned operations = naives_of(thread)->loop->operations;
    double at_s = now_s();
    report_progress(naive, 0, at_s);
    while (!run_loop_over(thread, *done, at_s)) {
        double begun_s = at_s;
        uint64_t passes = next_piece(thread, *done, at_s);
        int failure = do_piece(thread, passes);
        if (failure)
            return failure;
        *done += passes;
        at_s = now_s();
        if (passes == naive->piece && passes < MOST_PASSES && at_s - begun_s < PIECE_S)
            naive->piece = 2 * passes < MOST_PASSES ? 2 * passes : MOST_PASSES;
        report_progress(naive, *done * operations, at_s);
    }
    return EXIT_OK;
}

static double rate(double operations, double seconds)
{
    return operations > 0 && seconds > 0 ? operations / seconds : NAN;
}

static int loop(struct thread *thread)
{
    struct naive *naive = thread->state;
    struct stretch stretch = {.begun_s = day_s(thread)};
    int failure = work(thread, &stretch.passes);
    stretch.ended_s = day_s(thread);
    if (failure || !run_loop_timed(thread))
        return failure;
    naive->timed = stretch;
    uint64_t operations = stretch.passes * naives_of(thread)->loop->operations;
    run_bulk_done(thread, operations, rate((double)operations, stretch.ended_s - stretch.begun_s));
    return EXIT_OK;
}

static void run_empty_loop(struct thread *thread, struct stretch *empty)
{
    double until_s = now_s() + (run_oversubscribed(thread->run) ? EMPTY_SHARED_S : EMPTY_S);
    empty->begun_s = day_s(thread);
    do {
        naive_empty_loop(EMPTY_PASSES);
        empty->passes += EMPTY_PASSES;
    } while (now_s() < until_s && !run_stopping(thread->run));
    empty->ended_s = day_s(thread);
}

/* The empty loop, by all threads at once as the loop itself. */
static int prepare(struct thread *thread)
{
    struct naive *naive = thread->state;
    for (unsigned time = 0; time < EMPTY_TIMES && run_meet(thread); time++)
        run_empty_loop(thread, &naive->empty[time]);
    return EXIT_OK;
}

/* ---- figures --------------------------------------------------------------------------------- */

static void join(struct stretch *all, const struct stretch *one)
{
    all->begun_s = fmin(all->begun_s, one->begun_s);
    all->ended_s = fmax(all->ended_s, one->ended_s);
    all->passes += one->passes;
}

/* Of a pass of the empty loop: the shortest of the times that it was run. */
static double empty_pass_s(const struct naives *naives, unsigned threads)
{
    double least_s = INFINITY;
    for (unsigned time = 0; time < EMPTY_TIMES; time++) {
        struct stretch all = naives->each[0]->empty[time];
        for (unsigned i = 1; i < threads; i++)
            join(&all, &naives->each[i]->empty[time]);
        least_s = fmin(least_s, (all.ended_s - all.begun_s) / (double)all.passes);
    }
    return least_s;
}

static void finish(struct thread *thread)
{
    struct run *run = thread->run;
    struct naives *naives = naives_of(thread);
    struct stretch timed = naives->each[0]->timed;
    for (unsigned i = 1; i < run_threads(run); i++)
        join(&timed, &naives->each[i]->timed);
    double passes = (double)timed.passes, elapsed_s = timed.ended_s - timed.begun_s;
    double empty_s = empty_pass_s(naives, run_threads(run)) * passes;
    double left_s = elapsed_s - (is_chosen(run, "loop_time", "subtracted") ? empty_s : 0);
    if (elapsed_s > 0 && left_s <= 0)
        run_warning(run, "nothing_left",
                    "an empty loop of as many passes took %.3g s, the loop itself %.3g s: nothing "
                    "is left to divide by, so there is no rate; give --loop-time counted",
                    empty_s, elapsed_s);
    run_bulk_rate(run, rate(passes * naives->loop->operations, left_s));
    run_metric(run, "empty_loop_s", empty_s);
    if (elapsed_s > 0)
        run_metric(run, "empty_loop_ratio", empty_s / elapsed_s);
    else
        run_no_metric(run, "empty_loop_ratio", "the loop was shorter than a step of the clock");
}

/* ---- the table ------------------------------------------------------------------------------- */

static const char *const dtypes[] = {"int8", "int16", "int32", "int64", "fp32", "fp64", NULL};
static const char *const methods[] = {"add_sub", "compare", "avx", NULL};
static const char *const loop_times[] = {"counted", "subtracted", NULL};

static const struct param params[] = {
    {.name = "dtype",
     .type = PARAM_CHOICE,
     .initial = "int32",
     .choices = dtypes,
     .roles = ROLE_TAG,
     .title = "data type",
     .help = "Type of the operands; method avx supports int32, fp32 and fp64."},
    {.name = "method",
     .type = PARAM_CHOICE,
     .initial = "add_sub",
     .choices = methods,
     .help = "What one pass of the loop does. add_sub: 30 additions and subtractions of variables "
             "in memory; compare: one comparison, counted in memory; avx: loads two vectors, adds "
             "them and stores the sum."},
    {.name = "loop_time",
     .type = PARAM_CHOICE,
     .initial = "counted",
     .choices = loop_times,
     .help = "counted: the loop's own time counts as time of the operations; subtracted: the "
             "program subtracts the time of an empty loop of as many passes, although the two "
             "overlap; not supported by method compare."},
    {.name = NULL},
};

static const struct metric metrics[] = {
    {"empty_loop_s", "s", LOWER_IS_BETTER,
     "Time of an empty loop of as many passes, measured beforehand with the same clock."},
    {"empty_loop_ratio", "1", LOWER_IS_BETTER,
     "Time of the empty loop divided by the time of the loop that was measured."},
    {.name = NULL},
};

WORKLOAD(naive_operations) = {
    .name = "naive_operations",
    .description = "Counts the operations of a loop compiled without optimisation and times it "
                   "with gettimeofday().",
    .rate = {.name = "operations_per_second",
             .unit = "operation/s",
             .description =
                 "Operations that the source code of the loop contains, divided by the time of the "
                 "loop (with loop_time subtracted: less the time of the empty loop)",
             .combine = COMBINE_SUM},
    .params = params,
    .metrics = metrics,
    .naive = true,
    .unsupported = unsupported,
    .check = check,
    .open = open_all,
    .close = close_all,
    .setup = setup,
    .loop = loop,
    .moved = moved,
    .prepare = prepare,
    .finish = finish,
};
