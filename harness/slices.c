#include "slices.h"

#include <math.h>
#include <time.h>

enum {
    PARTS = 4,
    RATES_KEPT_MAX = 1 << 16,  /* parts remembered one by one: a minute's worth */
    MIN_CLEAN_SLICES = 3,      /* fewer say nothing about the undisturbed rate … */
    MIN_CLEAN_SLICES_TEAM = 1, /* … unless each is a problem from its beginning to its end */
};

static const double CLOCK_INTERVAL_S = 0.024; /* reading it costs some 40 µs: 0.2 % of the time */
static const double CLEAN_CPU_RATIO = 0.97;
static const double SHORTEST_SLICE_S = 1e-3; /* the counters between two cost some 4 µs */
static const double PART_STEPS = 100;        /* a part of fewer steps of the clock tells no rate */
static const double SHORT_PART_RATIO = 0.5;  /* a last part shorter than this says nothing */
/* The fastest rate seen aims the next slice, since a disturbance only slows down; it fades, since
 * a core that has lost its turbo, or got company on its SMT sibling, stays slower. */
static const double RATE_FADES = 0.98;

static double number(const struct run *run, const char *param)
{
    return options_get(&run->options, param)->number;
}

/* Threads on the busiest CPU. */
static double sharing(const struct run *run)
{
    return ceil((double)run->threads / run->cpus);
}

/* Where threads share a CPU no slice is ever clean for its length alone; shorter ones keep the
 * samples from coming in bursts of threads x slice. */
static double slice_target_s(const struct run *run)
{
    double shortest_s = fmax(SHORTEST_SLICE_S, PARTS * PART_STEPS * run->clock.resolution_s);
    return fmax(number(run, "slice_s") / sharing(run), shortest_s);
}

/* Rates of parts to remember: all there may be of a short run. */
static size_t rates_kept(const struct run *run)
{
    const struct value *duration = options_get(&run->options, "duration_s");
    double expected = 2 * PARTS * duration->number / slice_target_s(run) + 16;
    return duration->set && expected < RATES_KEPT_MAX ? (size_t)expected : RATES_KEPT_MAX;
}

size_t slices_bytes(const struct run *run)
{
    size_t kept = rates_kept(run);
    return (kept + 2 * (kept / PARTS)) * sizeof(double);
}

int slices_allocate(struct worker *worker)
{
    const struct run *run = worker->thread.run;
    worker->slice_s = slice_target_s(run);
    worker->step_s = worker->slice_s / (run->workload->team ? 1 : PARTS);
    size_t kept = rates_kept(run), clocks = kept / PARTS;
    return reservoir_init(&worker->rates, kept) || reservoir_init(&worker->clocks, clocks) ||
                   reservoir_init(&worker->ratios, clocks)
               ? -1
               : 0;
}

void slices_free(struct worker *worker)
{
    reservoir_free(&worker->rates);
    reservoir_free(&worker->clocks);
    reservoir_free(&worker->ratios);
}

/* Only a batch of a quarter of the time or more tells its rate: below, the call itself and the
 * clock weigh in, and a preempted one would look slow for good. */
void slices_adapt_batch(struct worker *worker, double taken_s)
{
    double batch = 2.0 * (double)worker->batch;
    if (taken_s >= worker->step_s / 4) {
        double rate = (double)worker->batch / taken_s;
        worker->units_per_s = fmax(rate, RATE_FADES * worker->units_per_s);
        batch = worker->units_per_s * worker->step_s;
    }
    worker->batch = (uint64_t)fmax(1, fmin(batch, (double)worker->thread.run->batch_max));
}

/* One call of step(), noted for verify(). */
static int take_step(struct worker *worker, uint64_t batch)
{
    worker->requested += batch;
    return worker->thread.run->workload->step(&worker->thread, batch);
}

int slices_warm_up(struct worker *worker)
{
    struct run *run = worker->thread.run;
    double end_s = now_s() + number(run, "warmup_s");
    worker->batch = 1;
    for (double now = now_s(); !run_stopping(run);) {
        bool largest = worker->batch == run->batch_max;
        int failure = take_step(worker, worker->batch);
        double taken_s = now_s() - now;
        if (failure)
            return failure;
        slices_adapt_batch(worker, taken_s);
        now += taken_s;
        if (now >= end_s && (largest || worker->units_per_s > 0))
            break;
    }
    return EXIT_OK;
}

static bool is_clean(const struct thread_usage *before, const struct thread_usage *after,
                     double wall_s)
{
    return wall_s > 0 && after->involuntary_switches == before->involuntary_switches &&
           !(after->wait_s > before->wait_s) && /* also when unknown */
           after->cpu_s - before->cpu_s >= CLEAN_CPU_RATIO * wall_s;
}

/* One slice. It is timed in parts: a timer tick costs a virtual machine some tens of microseconds,
 * there is one in most slices and in few parts, and reading the clock needs no system call. */
struct slice {
    uint64_t operations;
    double start_s, stop_s;
    double rates[PARTS];
    unsigned parts;     /* long enough to tell a rate */
    double last_rate;   /* of the part right before the clock was measured; 0: too short */
    double clock_hertz; /* NaN: not measured */
    bool clean;
};

static void record_parts(struct worker *worker, const struct slice *slice)
{
    for (unsigned i = 0; i < slice->parts; i++) {
        reservoir_add(&worker->rates, slice->rates[i]);
        worker->best_rate = fmax(worker->best_rate, slice->rates[i]);
    }
    if (isfinite(slice->clock_hertz) && slice->last_rate > 0)
        reservoir_add(&worker->ratios, slice->last_rate / slice->clock_hertz);
}

static void record(struct worker *worker, const struct slice *slice)
{
    if (slice->clean)
        record_parts(worker, slice);
    if (isfinite(slice->clock_hertz))
        reservoir_add(&worker->clocks, slice->clock_hertz);
    pthread_mutex_lock(&worker->lock);
    worker->progress.at_s = slice->stop_s;
    worker->progress.operations += slice->operations;
    worker->progress.slices++;
    worker->progress.clean_slices += slice->clean;
    if (isfinite(slice->clock_hertz) && slice->clean)
        worker->progress.clocks[worker->progress.clocks_seen++ % CLOCKS_SHOWN] = slice->clock_hertz;
    pthread_mutex_unlock(&worker->lock);
}

static int run_part(struct worker *worker, struct slice *slice, uint64_t batch)
{
    struct run *run = worker->thread.run;
    double start_s = slice->stop_s;
    int failure = take_step(worker, batch);
    slice->stop_s = now_s();
    double taken_s = slice->stop_s - start_s;
    uint64_t operations = batch * run->unit_operations;
    bool whole = taken_s > 0 && (double)batch >= SHORT_PART_RATIO * (double)worker->batch;
    slice->operations += operations;
    slice->last_rate = whole ? (double)operations / taken_s : 0;
    if (whole)
        slice->rates[slice->parts++] = slice->last_rate;
    if (batch == worker->batch)
        slices_adapt_batch(worker, taken_s);
    return failure;
}

double slices_clock_hertz(struct worker *worker)
{
    const struct run *run = worker->thread.run;
    return run_clock_coarse(run) ? NAN : run->workload->clock_hertz(&worker->thread);
}

/* One slice of at most `left` units and, if requested, the clock right behind it. No system call
 * may come between the two: a core leaves its AVX-512 clock within microseconds, and coming back
 * to it costs more of them. */
static int run_slice(struct worker *worker, uint64_t *left, bool with_clock,
                     struct thread_usage *usage)
{
    struct slice slice = {.clock_hertz = NAN};
    int failure = EXIT_OK;
    double cpu_s = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    slice.start_s = slice.stop_s = now_s();
    /* A part of one unit may take longer than a slice: then it is one. */
    double end_s = slice.start_s + worker->slice_s;
    for (unsigned i = 0; i < PARTS && *left > 0 && slice.stop_s < end_s && !failure; i++) {
        uint64_t batch = *left < worker->batch ? *left : worker->batch;
        failure = run_part(worker, &slice, batch);
        if (*left != UINT64_MAX)
            *left -= batch;
    }
    if (with_clock)
        slice.clock_hertz = slices_clock_hertz(worker);
    double counted_s = now_s();
    struct thread_usage after = thread_usage_read(worker->schedstat);
    slice.clean = is_clean(usage, &after, counted_s - slice.start_s);
    worker->step_cpu_s += after.cpu_s - cpu_s - (counted_s - slice.stop_s);
    *usage = after;
    record(worker, &slice);
    return failure;
}

uint64_t slices_units_of_work(const struct run *run)
{
    const struct value *work = options_get(&run->options, "work");
    return work->set ? (work->count - 1) / run->unit_operations + 1 : UINT64_MAX;
}

uint64_t slices_share_of_work(const struct worker *worker)
{
    const struct run *run = worker->thread.run;
    uint64_t units = slices_units_of_work(run);
    if (units == UINT64_MAX)
        return units;
    unsigned measured = worker->trial->measured;
    return units / measured + (worker->rank < units % measured);
}

struct thread_usage slices_begin(struct worker *worker)
{
    worker->start_s = now_s();
    pthread_mutex_lock(&worker->lock);
    worker->progress.start_s = worker->progress.at_s = worker->start_s;
    pthread_mutex_unlock(&worker->lock);
    worker->counted = counters_read(&worker->counters);
    return thread_usage_read(worker->schedstat);
}

void slices_end(struct worker *worker, const struct thread_usage *before)
{
    struct thread_usage after = thread_usage_read(worker->schedstat);
    struct counts counted = counters_read(&worker->counters);
    worker->used = thread_usage_between(before, &after);
    worker->counted = counts_between(&worker->counted, &counted);
    worker->stop_s = now_s();
    worker->measured_s = worker->watched_s = worker->stop_s - worker->start_s;
}

int slices_run(struct worker *worker)
{
    struct run *run = worker->thread.run;
    const struct value *duration = options_get(&run->options, "duration_s");
    uint64_t left = slices_share_of_work(worker);
    int failure = EXIT_OK;
    const struct thread_usage before = slices_begin(worker);
    struct thread_usage usage = before;
    double now = worker->start_s, clock_s = now, clock_interval_s = CLOCK_INTERVAL_S * sharing(run);
    double end_s = duration->set ? now + duration->number : INFINITY;
    while (!failure && left > 0 && now < end_s && !run_stopping(run)) {
        bool with_clock = run->workload->clock_hertz && now >= clock_s;
        if (with_clock)
            clock_s = now + clock_interval_s;
        failure = run_slice(worker, &left, with_clock, &usage);
        now = now_s();
    }
    slices_end(worker, &before);
    return failure;
}

/* No slices: how much load there was is all that anybody asks. */
int slices_run_background(struct worker *worker)
{
    struct run *run = worker->thread.run;
    int failure = EXIT_OK;
    const struct thread_usage before = slices_begin(worker);
    double now = worker->start_s;
    while (!failure && atomic_load(&worker->trial->measuring) > 0 && !run_stopping(run)) {
        uint64_t batch = worker->batch;
        failure = take_step(worker, batch);
        double taken_s = now_s() - now;
        worker->progress.operations += batch * run->unit_operations;
        slices_adapt_batch(worker, taken_s);
        now += taken_s;
    }
    slices_end(worker, &before);
    return failure;
}

/* Behind slices that were interrupted chains may have been, too. Those of a team are confirmed. */
static double clock_of(const struct worker *worker, bool clean)
{
    const struct reservoir *clocks = &worker->clocks;
    if (!clocks->kept)
        return NAN;
    return clean || worker->thread.run->workload->team
               ? median(clocks->values, clocks->kept)
               : confirmed_highest(clocks->values, clocks->kept);
}

struct thread_figures slices_figures(struct worker *worker)
{
    const struct progress *progress = &worker->progress;
    struct thread_figures figures = {NAN, NAN, NAN, NAN, NAN};
    unsigned least = worker->thread.run->workload->team ? MIN_CLEAN_SLICES_TEAM : MIN_CLEAN_SLICES;
    if (progress->slices > 0)
        figures.rate_whole = (double)progress->operations / worker->measured_s;
    if (worker->best_rate > 0)
        figures.rate_best = worker->best_rate;
    if (progress->clean_slices >= least && worker->rates.kept > 0)
        figures.rate_clean = median(worker->rates.values, worker->rates.kept);
    figures.clock_hertz = clock_of(worker, worker->ratios.kept >= least);
    if (worker->ratios.kept < least)
        return figures;
    figures.operations_per_cycle = median(worker->ratios.values, worker->ratios.kept);
    /* The clock that belongs to the rate: a core that changes its clock during the trial has two
     * medians, and they need not be of the same moments. */
    if (isfinite(figures.rate_clean))
        figures.clock_hertz = figures.rate_clean / figures.operations_per_cycle;
    return figures;
}
