/* fixed_work: the same work again and again on each CPU, timed each time. What a quantum takes longer
 * than the usual one is time that the CPU was not ours: timer ticks, interrupts, other processes, the
 * hypervisor. After the benchmark FWQ of Lawrence Livermore National Laboratory, which compares with
 * the shortest one: there, a clock that varies looks like lost time. */
#include "loops.h"
#include "monotonic.h"
#include "period.h"
#include "vector_kernel.h"
#include "workload.h"

#include <math.h>
#include <stdlib.h>

enum {
    ALIGNMENT = 128,     /* no cache line of two threads */
    QUANTA_OF_A_BIN = 2, /* so that a start is at most one bin off */
    RECENT = 15          /* 1.2 ms by default: clocks change more slowly */
};

/* How much longer than the usual one a quantum is to count as interrupted: reading the clock, and
 * what the core does beside the chain, vary by less. */
static const double INTERRUPTED_RATIO = 0.02;

/* Interruptions of at least so many seconds. */
struct class {
    const char *name;
    double least_s;
};

static const struct class classes[] = {
    {"interruptions_per_second_2us", 2e-6},     {"interruptions_per_second_5us", 5e-6},
    {"interruptions_per_second_10us", 10e-6},   {"interruptions_per_second_20us", 20e-6},
    {"interruptions_per_second_50us", 50e-6},   {"interruptions_per_second_100us", 100e-6},
    {"interruptions_per_second_200us", 200e-6}, {"interruptions_per_second_500us", 500e-6},
    {"interruptions_per_second_1ms", 1e-3},     {"interruptions_per_second_2ms", 2e-3},
    {"interruptions_per_second_5ms", 5e-3},     {"interruptions_per_second_10ms", 10e-3},
};
enum { CLASSES = sizeof classes / sizeof *classes };

/* What one thread has seen in the timed region. */
struct noise {
    _Alignas(ALIGNMENT) double recent_s[RECENT]; /* the latest quanta, interrupted ones too */
    uint64_t recent_count;
    uint64_t counts[CLASSES]; /* of the longest class that an interruption is in */
    double longest_lost_s;
    float *lost_s; /* by time, in bins */
    double bin_s, start_s;
    /* For the samples, which another thread makes; `peak_s` is the most since the last one. */
    _Atomic double total_s, lost_total_s, peak_s;
};

struct fixed_work {
    uint64_t iterations; /* of one quantum */
    struct noise *noises;
    double seen_total_s, seen_lost_s; /* at the last sample */
};

/* ---- life ----------------------------------------------------------------------------------- */

static int lacks_memory(struct run *run)
{
    run_reason(run, "not enough memory for what %u threads record: use fewer", run_threads(run));
    return EXIT_RESOURCE;
}

static int open_fixed_work(struct run *run)
{
    unsigned threads = run_threads(run);
    struct fixed_work *shared = calloc(1, sizeof *shared);
    if (!shared)
        return lacks_memory(run);
    run_set_shared(run, shared);
    shared->iterations = run_count(run, "quantum_cycles") / CHAIN_CYCLES;
    run_set_unit(run, 1, UINT64_MAX);
    shared->noises = aligned_alloc(ALIGNMENT, threads * sizeof *shared->noises);
    if (!shared->noises)
        return lacks_memory(run);
    memset(shared->noises, 0, threads * sizeof *shared->noises);
    return EXIT_OK;
}

static void close_fixed_work(struct run *run)
{
    struct fixed_work *shared = run_shared(run);
    if (shared)
        free(shared->noises);
    free(shared);
}

static int setup(struct thread *thread)
{
    struct fixed_work *shared = run_shared(thread->run);
    struct noise *noise = &shared->noises[thread->index];
    noise->lost_s = malloc(PERIOD_BINS_MOST * sizeof *noise->lost_s);
    if (!noise->lost_s)
        return lacks_memory(thread->run);
    /* Touched now, so that no page fault is taken for an interruption. */
    memset(noise->lost_s, 0, PERIOD_BINS_MOST * sizeof *noise->lost_s);
    thread->state = noise;
    return EXIT_OK;
}

static void teardown(struct thread *thread)
{
    struct noise *noise = thread->state;
    if (noise)
        free(noise->lost_s);
}

/* ---- the loop ------------------------------------------------------------------------------- */

static void add(_Atomic double *sum, double value)
{
    double sum_now = atomic_load_explicit(sum, memory_order_relaxed);
    atomic_store_explicit(sum, sum_now + value, memory_order_relaxed);
}

static void record_interruption(struct noise *noise, double start_s, double lost_s)
{
    size_t bin = (size_t)((start_s - noise->start_s) / noise->bin_s);
    unsigned class = CLASSES;
    while (class > 0 && lost_s < classes[class - 1].least_s)
        class--;
    if (class > 0)
        noise->counts[class - 1]++;
    if (bin < PERIOD_BINS_MOST)
        noise->lost_s[bin] += (float)lost_s;
    noise->longest_lost_s = fmax(noise->longest_lost_s, lost_s);
    if (lost_s > atomic_load_explicit(&noise->peak_s, memory_order_relaxed))
        atomic_store_explicit(&noise->peak_s, lost_s, memory_order_relaxed);
}

static void remember(struct noise *noise, double taken_s)
{
    noise->recent_s[noise->recent_count++ % RECENT] = taken_s;
}

/* The median of the latest quanta: it follows the clock, and no interruption moves it as long as
 * most quanta have none. */
static double usual_s(const struct noise *noise)
{
    size_t count = noise->recent_count < RECENT ? noise->recent_count : RECENT;
    double sorted_s[RECENT];
    for (size_t i = 0; i < count; i++) {
        size_t place = i;
        for (; place > 0 && sorted_s[place - 1] > noise->recent_s[i]; place--)
            sorted_s[place] = sorted_s[place - 1];
        sorted_s[place] = noise->recent_s[i];
    }
    return sorted_s[(count - 1) / 2];
}

static void record(struct noise *noise, double start_s, double taken_s)
{
    remember(noise, taken_s);
    double usual = usual_s(noise), lost_s = taken_s - usual;
    add(&noise->total_s, taken_s);
    if (lost_s > INTERRUPTED_RATIO * usual) {
        add(&noise->lost_total_s, lost_s);
        record_interruption(noise, start_s, lost_s);
    }
}

/* Bins that hold the whole run where its length is known. */
static void begin_record(struct run *run, struct noise *noise, double start_s)
{
    double duration_s = run_param_set(run, "duration_s") ? run_number(run, "duration_s") : 0;
    noise->bin_s = fmax(QUANTA_OF_A_BIN * usual_s(noise), duration_s / PERIOD_BINS_MOST);
    noise->start_s = start_s;
}

static int wrong(struct thread *thread, uint64_t sum, uint64_t expected)
{
    run_reason(thread->run,
               "the sum of one quantum is %#llx instead of %#llx on CPU %d: this CPU or this build "
               "computes incorrectly; do not trust its figures",
               (unsigned long long)sum, (unsigned long long)expected, thread->cpu);
    return EXIT_WRONG;
}

/* Each quantum ends where the next begins, so no time is lost unseen between two. */
static int loop(struct thread *thread)
{
    const struct fixed_work *shared = run_shared(thread->run);
    struct noise *noise = thread->state;
    bool timed = run_loop_timed(thread);
    uint64_t additions = shared->iterations * CHAIN_CYCLES;
    double at_s = now_s();
    if (timed && noise->recent_count == 0) { /* without a warm-up */
        loop_sum_chain(shared->iterations, 0);
        remember(noise, now_s() - at_s);
        at_s = now_s();
    }
    if (timed)
        begin_record(thread->run, noise, at_s);
    for (uint64_t begun = 0; !run_loop_over(thread, begun, at_s); begun++) {
        uint64_t sum = loop_sum_chain(shared->iterations, begun);
        uint64_t expected = begun + SUM_CHAIN_ADDEND * additions;
        if (sum != expected)
            return wrong(thread, sum, expected);
        double end_s = now_s(), taken_s = end_s - at_s;
        if (timed)
            record(noise, at_s, taken_s);
        else
            remember(noise, taken_s);
        run_loop_done(thread, 0, (uint64_t)llround(taken_s * 1e9));
        at_s = end_s;
    }
    return EXIT_OK;
}

/* ---- figures -------------------------------------------------------------------------------- */

static size_t observe(struct run *run, struct observed *figures, size_t most)
{
    struct fixed_work *shared = run_shared(run);
    double total_s = 0, lost_s = 0, peak_s = 0;
    for (unsigned i = 0; i < run_threads(run); i++) {
        struct noise *noise = &shared->noises[i];
        total_s += atomic_load_explicit(&noise->total_s, memory_order_relaxed);
        lost_s += atomic_load_explicit(&noise->lost_total_s, memory_order_relaxed);
        /* One that falls in between two instructions is in no sample. */
        peak_s = fmax(peak_s, atomic_exchange_explicit(&noise->peak_s, 0, memory_order_relaxed));
    }
    const struct observed all[] = {
        {"lost_ratio", (lost_s - shared->seen_lost_s) / (total_s - shared->seen_total_s)},
        {"interruption_max_s", peak_s},
    };
    size_t count = sizeof all / sizeof *all;
    shared->seen_total_s = total_s;
    shared->seen_lost_s = lost_s;
    if (count > most)
        count = most;
    memcpy(figures, all, count * sizeof *all);
    return count;
}

static double total_of(const struct noise *noise)
{
    return atomic_load_explicit(&noise->total_s, memory_order_relaxed);
}

static double lost_of(const struct noise *noise)
{
    return atomic_load_explicit(&noise->lost_total_s, memory_order_relaxed);
}

static double bins_of(const struct noise *noise)
{
    return fmin(PERIOD_BINS_MOST, total_of(noise) / noise->bin_s);
}

static void finish_period(struct run *run, const struct noise *worst)
{
    struct period found = period_find(worst->lost_s, (size_t)bins_of(worst), worst->bin_s);
    if (found.why)
        run_no_metric(run, "interruption_period_s", found.why);
    else
        run_metric(run, "interruption_period_s", found.seconds);
}

/* A class below what counts as an interruption would miss some. */
static void finish_classes(struct run *run, const struct noise *noises, double least_s,
                           double total_s)
{
    uint64_t count = 0;
    for (unsigned class = CLASSES; class-- > 0;) {
        for (unsigned i = 0; i < run_threads(run); i++)
            count += noises[i].counts[class];
        if (classes[class].least_s < least_s)
            run_no_metric(run, classes[class].name,
                          "the program cannot see interruptions shorter than 2 % of a quantum");
        else
            run_metric(run, classes[class].name, (double)count / total_s);
    }
}

static void finish(struct thread *thread)
{
    struct run *run = thread->run;
    const struct fixed_work *shared = run_shared(run);
    const struct noise *worst = shared->noises;
    double total_s = 0, lost_s = 0, longest_s = 0, least_s = 0;
    for (unsigned i = 0; i < run_threads(run); i++) {
        const struct noise *noise = &shared->noises[i];
        total_s += total_of(noise);
        lost_s += lost_of(noise);
        longest_s = fmax(longest_s, noise->longest_lost_s);
        least_s = fmax(least_s, INTERRUPTED_RATIO * usual_s(noise));
        if (lost_of(noise) / total_of(noise) > lost_of(worst) / total_of(worst))
            worst = noise;
    }
    run_metric(run, "lost_ratio", lost_s / total_s);
    run_metric(run, "lost_ratio_most", lost_of(worst) / total_of(worst));
    run_metric(run, "interruption_max_s", longest_s);
    finish_period(run, worst);
    finish_classes(run, shared->noises, least_s, total_s);
}

/* ---- table ---------------------------------------------------------------------------------- */

static const struct param params[] = {
    {.name = "quantum_cycles",
     .type = PARAM_COUNT,
     .unit = "cycle",
     .initial = "240000",
     .min = 24000,
     .max = 24e6,
     .help = "Length of one quantum of work: a chain of dependent additions, one per core cycle, "
             "in loops of 80."},
    {.name = NULL},
};

#define METRIC_CLASS(which, length)                                                                \
    {"interruptions_per_second_" which, "Hz", LOWER_IS_BETTER,                                     \
     "Interruptions of at least " length ", per second and CPU."}

static const struct metric metrics[] = {
    {"lost_ratio", "1", LOWER_IS_BETTER,
     "Share of the time of all CPUs that was lost to interruptions: the time by which interrupted "
     "quanta exceeded the usual quantum, which is the median of the latest 15 on that CPU."},
    {"lost_ratio_most", "1", LOWER_IS_BETTER, "The same share for the CPU that lost most."},
    {"interruption_max_s", "s", LOWER_IS_BETTER,
     "Longest interruption: the most by which a quantum exceeded the usual one."},
    {"interruption_period_s", "s", HIGHER_IS_BETTER,
     "Period of the regular interruptions on the CPU that lost most. The program weights each "
     "interruption by its length; if that shows no period, it counts them all alike. Null if the "
     "interruptions are not regular."},
    METRIC_CLASS("2us", "2 µs"),
    METRIC_CLASS("5us", "5 µs"),
    METRIC_CLASS("10us", "10 µs"),
    METRIC_CLASS("20us", "20 µs"),
    METRIC_CLASS("50us", "50 µs"),
    METRIC_CLASS("100us", "100 µs"),
    METRIC_CLASS("200us", "200 µs"),
    METRIC_CLASS("500us", "500 µs"),
    METRIC_CLASS("1ms", "1 ms"),
    METRIC_CLASS("2ms", "2 ms"),
    METRIC_CLASS("5ms", "5 ms"),
    METRIC_CLASS("10ms", "10 ms"),
    {.name = NULL},
};

WORKLOAD(fixed_work) = {
    .name = "fixed_work",
    .description = "Repeats the same register work on each CPU to show how much CPU time the "
                   "kernel, other processes and the hypervisor take.",
    .rate = {.name = "quantum_time_s",
             .unit = "s",
             .description = "Median time of one quantum of work.",
             .combine = COMBINE_MEDIAN,
             .work = "quantum",
             .time = true},
    .params = params,
    .metrics = metrics,
    .open = open_fixed_work,
    .close = close_fixed_work,
    .setup = setup,
    .loop = loop,
    .observe = observe,
    .finish = finish,
    .teardown = teardown,
};
