/* core_to_core: the time in which a cache line goes from one core to another, for each pair of
 * CPUs. */
#include "crew.h"
#include "monotonic.h"
#include "partner.h"
#include "statistics.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum {
    LINE_BYTES = 128,  /* that neighbours never share, prefetched pairs of lines included */
    LINES = 16,        /* where a line lies decides which part of the cache keeps it */
    TRIPS_TIMED = 250, /* some 10 to 100 µs: shorter than the time between two timer ticks */
    PAIRS_MOST = 2016, /* all of 64 CPUs; a round over them takes some 2 s */
    TIMES_KEPT = 256,
    LOOK_SPINS = 1 << 16,
};

/* A round trip more than is timed: it waits for the partner to arrive. */
static const uint64_t STEPS = 2 * (TRIPS_TIMED + 1);

struct line {
    _Alignas(LINE_BYTES) _Atomic uint64_t value; /* even: the first thread's turn */
};

struct pair {
    unsigned first, second; /* threads */
    struct reservoir times_s;
    double time_s; /* their median */
};

struct court {
    struct line lines[LINES];
    struct pair *pairs;
    size_t pair_count;
    _Atomic uint64_t visits; /* those that have begun, one pair at a time, those of the ramp too */
    uint64_t visits_before;  /* as the timed region began */
};

/* ---- pairs --------------------------------------------------------------------------------------- */

/* Distances from one thread to its partners: all, or as many as PAIRS_MOST allows, from the next to
 * the opposite one. CPUs of one core are mostly next to or opposite each other. */
static size_t distances(unsigned threads)
{
    size_t all = threads / 2, most = threads < PAIRS_MOST ? PAIRS_MOST / threads : 1;
    return (size_t)threads * (threads - 1) / 2 <= PAIRS_MOST ? all : most;
}

static unsigned distance(unsigned threads, size_t which)
{
    size_t count = distances(threads), last = threads / 2;
    return count < 2 ? 1 : (unsigned)(1 + which * (last - 1) / (count - 1));
}

static void list_pairs(struct court *court, unsigned threads)
{
    for (size_t which = 0; which < distances(threads); which++) {
        unsigned step = distance(threads, which);
        /* At half the circle each pair would come twice. */
        unsigned count = 2 * step == threads ? threads / 2 : threads;
        for (unsigned i = 0; i < count; i++)
            court->pairs[court->pair_count++] =
                (struct pair){.first = i, .second = (i + step) % threads};
    }
}

/* ---- life ---------------------------------------------------------------------------------------- */

static const char *unsupported(const struct run *run)
{
    return run_threads(run) == 1 ? "a cache line goes between two CPUs: this trial has one thread, "
                                   "or this process may use one CPU alone"
                                 : NULL;
}

static int check(struct run *run)
{
    if (!run_oversubscribed(run))
        return EXIT_OK;
    run_reason(run,
               "%u threads share %u CPUs: a line goes between two CPUs, use one thread per CPU",
               run_threads(run), run_cpus(run));
    return EXIT_UNSUPPORTED;
}

static int open_court(struct run *run)
{
    unsigned threads = run_threads(run);
    int failure = crew_open(run, sizeof(struct court), 0);
    struct court *court = crew_state(run);
    if (failure)
        return failure;
    court->pairs = calloc(threads * distances(threads), sizeof *court->pairs);
    if (!court->pairs)
        return partner_lacks(run, "memory");
    list_pairs(court, threads);
    for (size_t i = 0; i < court->pair_count; i++)
        if (reservoir_init(&court->pairs[i].times_s, TIMES_KEPT))
            return partner_lacks(run, "memory");
    return EXIT_OK;
}

static void close_court(struct run *run)
{
    struct court *court = crew_state(run);
    if (court) {
        for (size_t i = 0; i < court->pair_count; i++)
            reservoir_free(&court->pairs[i].times_s);
        free(court->pairs);
    }
    crew_close(run);
}

static int setup(struct thread *thread)
{
    if (thread->index == 0)
        run_set_unit(thread->run, 1, 1);
    return EXIT_OK;
}

/* ---- a visit: the line goes to and fro between two threads, all others sleep --------------------- */

/* Takes the line as soon as it has the value `seen`, and leaves the next one. false: the run is to
 * stop. */
static bool take(const struct run *run, struct line *line, uint64_t seen)
{
    for (unsigned i = 1;; i++) {
        uint64_t expected = seen;
        if (atomic_compare_exchange_strong_explicit(&line->value, &expected, seen + 1,
                                                    memory_order_acq_rel, memory_order_acquire))
            return true;
        if (i % LOOK_SPINS == 0 && run_stopping(run))
            return false;
    }
}

static void answer(const struct run *run, struct court *court, uint64_t base)
{
    for (unsigned i = 0; i < LINES; i++)
        for (uint64_t step = 1; step < STEPS; step += 2)
            if (!take(run, &court->lines[i], base + step))
                return;
}

static bool wait_for(const struct run *run, struct line *line, uint64_t value)
{
    for (unsigned i = 1; atomic_load_explicit(&line->value, memory_order_acquire) != value; i++)
        if (i % LOOK_SPINS == 0 && run_stopping(run))
            return false;
    return true;
}

/* The time of one hand-over, from round trips in a row on one line; NaN: the run is to stop. */
static double play_line(const struct run *run, struct line *line, uint64_t base)
{
    if (!take(run, line, base) || !wait_for(run, line, base + 2))
        return NAN;
    double start_s = now_s();
    for (uint64_t step = 2; step < STEPS; step += 2)
        if (!take(run, line, base + step))
            return NAN;
    if (!wait_for(run, line, base + STEPS))
        return NAN;
    return (now_s() - start_s) / (2 * TRIPS_TIMED);
}

/* Both of a pair see the same number of visits: neither begins the next one before both are called. */
static void call_pair(const struct run *run, struct court *court)
{
    const struct pair *pair = &court->pairs[court->visits % court->pair_count];
    court->visits++;
    crew_call(run, pair->second);
    crew_call(run, pair->first);
}

/* A round that has begun is played to its end, so that each pair has a figure. */
static bool is_over(struct thread *thread, const struct court *court)
{
    uint64_t done = court->visits - court->visits_before;
    bool whole = !run_loop_timed(thread) || done % court->pair_count == 0;
    return whole && run_loop_over(thread, 0, now_s());
}

static void lead(struct thread *thread, struct court *court, struct pair *pair, uint64_t base)
{
    for (unsigned i = 0; i < LINES; i++) {
        double time_s = play_line(thread->run, &court->lines[i], base);
        if (run_loop_timed(thread) && isfinite(time_s))
            reservoir_add(&pair->times_s, time_s);
    }
    if (is_over(thread, court))
        crew_end(thread->run);
    else
        call_pair(thread->run, court);
}

static int loop(struct thread *thread)
{
    const struct run *run = thread->run;
    struct court *court = crew_state(run);
    if (thread->index == 0)
        call_pair(run, court);
    while (crew_wait(thread)) {
        uint64_t visit = court->visits - 1, base = visit * STEPS;
        struct pair *pair = &court->pairs[visit % court->pair_count];
        if (thread->index == pair->first)
            lead(thread, court, pair, base);
        else
            answer(run, court, base);
    }
    return EXIT_OK;
}

static int prepare(struct thread *thread)
{
    struct court *court = crew_state(thread->run);
    if (thread->index == 0)
        court->visits_before = court->visits;
    return crew_prepare(thread);
}

static uint64_t moved(const struct thread *thread, double *at_s)
{
    const struct court *court = crew_state(thread->run);
    if (thread->index > 0)
        return 0;
    *at_s = now_s();
    return (court->visits - court->visits_before) * LINES * 2 * TRIPS_TIMED;
}

/* ---- figures ------------------------------------------------------------------------------------- */

/* Each hand-over adds 1: what stands in the lines is how many there were. */
static int check_lines(const struct thread *thread, const struct court *court)
{
    for (unsigned i = 0; i < LINES; i++) {
        int failure = run_check_units(thread, court->lines[i].value, court->visits * STEPS);
        if (failure)
            return failure;
    }
    return EXIT_OK;
}

static bool has_part(const struct thread *thread, const struct pair *pair)
{
    return pair->first == thread->index || pair->second == thread->index;
}

/* The medians of the pairs that it leads. */
static void work_out_own(const struct thread *thread, struct court *court)
{
    for (size_t i = 0; i < court->pair_count; i++) {
        struct pair *pair = &court->pairs[i];
        if (pair->first == thread->index && pair->times_s.kept > 0)
            pair->time_s = median(pair->times_s.values, pair->times_s.kept);
    }
}

static int verify(struct thread *thread, uint64_t units)
{
    struct court *court = crew_state(thread->run);
    double *times_s = calloc(court->pair_count, sizeof *times_s);
    size_t count = 0;
    uint64_t work = 0;
    (void)units;
    if (!times_s)
        return partner_lacks(thread->run, "memory");
    work_out_own(thread, court);
    run_meet(thread);
    for (size_t i = 0; i < court->pair_count; i++) {
        const struct pair *pair = &court->pairs[i];
        if (!has_part(thread, pair))
            continue;
        times_s[count++] = pair->time_s;
        work += pair->times_s.seen * TRIPS_TIMED;
    }
    run_bulk_done(thread, work, 1 / median(times_s, count));
    free(times_s);
    return thread->index == 0 ? check_lines(thread, court) : EXIT_OK;
}

static void finish(struct thread *thread)
{
    struct run *run = thread->run;
    struct court *court = crew_state(run);
    double *times_s = calloc(court->pair_count, sizeof *times_s);
    for (size_t i = 0; i < court->pair_count; i++) {
        const struct pair *pair = &court->pairs[i];
        run_pair(run, run_cpu(run, pair->first), run_cpu(run, pair->second), pair->time_s);
        if (times_s)
            times_s[i] = pair->time_s;
    }
    run_bulk_rate(run, times_s ? median(times_s, court->pair_count) : NAN);
    run_metric(run, "hand_over_time_s_nearest", times_s ? times_s[0] : NAN);
    run_metric(run, "hand_over_time_s_farthest", times_s ? times_s[court->pair_count - 1] : NAN);
    run_metric(run, "pairs_measured", (double)court->pair_count);
    free(times_s);
}

/* ---- table --------------------------------------------------------------------------------------- */

static const struct metric metrics[] = {
    {"hand_over_time_s_nearest", "s", LOWER_IS_BETTER, "The same time for the fastest pair."},
    {"hand_over_time_s_farthest", "s", LOWER_IS_BETTER, "The same time for the slowest pair."},
    {"pairs_measured", "pair", HIGHER_IS_BETTER,
     "Number of pairs of CPUs measured: all pairs or, with more than 64 CPUs, about 2000 in which "
     "each CPU occurs equally often."},
    {.name = NULL},
};

static const char *const excludes[] = {"work", NULL};

WORKLOAD(core_to_core) = {
    .name = "core_to_core",
    .description = "Two threads on two CPUs pass a cache line back and forth by compare-and-swap, "
                   "one pair of CPUs after another.",
    .rate = {.name = "hand_over_time_s",
             .unit = "s",
             .description = "Time to pass the cache line from one CPU to the other (half a round "
                            "trip): median over the pairs of CPUs of each pair's median, measured "
                            "over 250 consecutive round trips.",
             .combine = COMBINE_MEDIAN,
             .time = true},
    .excludes = excludes,
    .metrics = metrics,
    .unsupported = unsupported,
    .check = check,
    .open = open_court,
    .close = close_court,
    .setup = setup,
    .loop = loop,
    .prepare = prepare,
    .moved = moved,
    .verify = verify,
    .finish = finish,
};
