#include "team.h"

#include "slices.h"

#include <assert.h>
#include <math.h>

static const double CLEAN_CPU_RATIO = 0.97;
/* One thread that waits keeps all the others waiting. */
static const double CLEAN_WAIT_RATIO = 0.01;
static const double CLEAN_STEAL_RATIO = 0.01; /* as in the verdict on a whole trial */
/* Steal is counted in ticks of 10 ms, and reading it takes some 0.1 ms and more on large hosts. */
static const double STEAL_READABLE_S = 0.1;
static const double STEAL_TICK_S = 0.01;
/* A reading takes some 80 µs: behind a step, where it is not timed, and within a long one. */
static const double CLOCK_INTERVAL_S = 0.024, CLOCK_INTERVAL_WITHIN_S = 0.1;
/* A chain that was interrupted reads too slow a clock, and a step has few readings. */
enum { CLOCK_CHAINS = 3 };
static const double PROGRESS_INTERVAL_S = 0.01;

static struct worker *worker_of(struct thread *thread)
{
    return (struct worker *)thread; /* its first member */
}

bool run_meet(struct thread *thread)
{
    return barrier_wait_unless(&worker_of(thread)->trial->team.barrier, &thread->run->stopping);
}

static bool leads(const struct worker *worker)
{
    return worker->thread.index == 0;
}

/* ---- the clock ------------------------------------------------------------------------------ */

static void measure_clock(struct worker *worker)
{
    struct team_slice *slice = &worker->slice;
    double chains[CLOCK_CHAINS];
    for (unsigned i = 0; i < CLOCK_CHAINS; i++)
        chains[i] = slices_clock_hertz(worker);
    double clock_hertz = confirmed_highest(chains, CLOCK_CHAINS);
    slice->clock_read_s = now_s();
    if (isnan(clock_hertz))
        return;
    slice->clocks[slice->clocks_seen++ % CLOCKS_SHOWN] = clock_hertz;
    reservoir_add(&worker->clocks, clock_hertz);
    pthread_mutex_lock(&worker->lock);
    worker->progress.clocks[worker->progress.clocks_seen++ % CLOCKS_SHOWN] = clock_hertz;
    pthread_mutex_unlock(&worker->lock);
}

static void measure_clock_after(struct worker *worker, double interval_s)
{
    if (now_s() >= worker->slice.clock_read_s + interval_s)
        measure_clock(worker);
}

void run_checkpoint(struct thread *thread)
{
    struct worker *worker = worker_of(thread);
    if (thread->run->workload->clock_hertz)
        measure_clock_after(worker, CLOCK_INTERVAL_WITHIN_S);
}

static double slice_clock(struct worker *worker)
{
    struct team_slice *slice = &worker->slice;
    size_t seen = slice->clocks_seen < CLOCKS_SHOWN ? slice->clocks_seen : CLOCKS_SHOWN;
    return seen ? median(slice->clocks, seen) : NAN;
}

/* ---- progress ------------------------------------------------------------------------------- */

/* What the team has done in this step, counted for every thread in equal parts. Only the first thread
 * calls it: the others are in the step, or wait. */
static void show(struct trial *trial, uint64_t operations, double measured_s)
{
    const struct run *run = trial->run;
    for (unsigned i = 0; i < run->threads; i++) {
        struct worker *worker = &trial->workers[i];
        uint64_t part = operations / run->threads + (i < operations % run->threads);
        pthread_mutex_lock(&worker->lock);
        worker->progress.at_s = worker->progress.start_s + measured_s;
        worker->progress.operations = worker->finished_operations + part;
        pthread_mutex_unlock(&worker->lock);
    }
}

void run_progress(struct thread *thread, double operations)
{
    struct worker *worker = worker_of(thread);
    struct team *team = &worker->trial->team;
    double now = now_s();
    assert(leads(worker));
    /* The warm-up has no timed region to show. */
    if (!team->timed || now < team->shown_s + PROGRESS_INTERVAL_S)
        return;
    team->shown_s = now;
    show(worker->trial, (uint64_t)operations, worker->measured_s + now - team->start_s);
}

/* ---- one step ------------------------------------------------------------------------------- */

/* The step itself between two meetings; all threads take its time from the same moment on. */
static int take_step(struct worker *worker, uint64_t batch, double *step_s)
{
    struct team *team = &worker->trial->team;
    struct thread *thread = &worker->thread;
    if (!run_meet(thread))
        return EXIT_OK;
    if (leads(worker))
        team->start_s = team->shown_s = now_s();
    double start_s = now_s();
    double cpu_s = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    int failure = thread->run->workload->step(thread, batch);
    if (failure || !run_meet(thread))
        return failure;
    *step_s = now_s() - (leads(worker) ? team->start_s : start_s);
    worker->slice.step_cpu_s = seconds_of(CLOCK_THREAD_CPUTIME_ID) - cpu_s;
    return EXIT_OK;
}

static bool thread_was_undisturbed(const struct team_slice *slice)
{
    return slice->used.cpu_s >= CLEAN_CPU_RATIO * slice->window_s &&
           !(slice->used.wait_s > CLEAN_WAIT_RATIO * slice->window_s); /* also when unknown */
}

/* Unknown is not too much. */
static bool steals_too_much(const struct trial *trial, double step_s)
{
    if (step_s < STEAL_READABLE_S)
        return false;
    double stolen_s = steal_read_s(&trial->run->placement.cpus) - trial->team.steal_s;
    return stolen_s > CLEAN_STEAL_RATIO * step_s * trial->run->cpus + STEAL_TICK_S;
}

static bool is_clean(const struct trial *trial, double step_s)
{
    bool clean = !steals_too_much(trial, step_s);
    for (unsigned i = 0; i < trial->run->threads; i++)
        clean &= thread_was_undisturbed(&trial->workers[i].slice);
    return clean;
}

static void record_thread(struct worker *worker, uint64_t batch, double step_s, bool clean)
{
    const struct run *run = worker->thread.run;
    const struct team_slice *slice = &worker->slice;
    double rate = (double)batch * (double)run->unit_operations / step_s / run->threads;
    double clock_hertz = slice_clock(worker);
    if (clean) {
        reservoir_add(&worker->rates, rate);
        worker->best_rate = fmax(worker->best_rate, rate);
    }
    if (clean && isfinite(clock_hertz))
        reservoir_add(&worker->ratios, rate / clock_hertz);
    worker->measured_s += step_s;
    worker->watched_s += slice->window_s;
    worker->used.cpu_s += slice->used.cpu_s;
    worker->used.wait_s += slice->used.wait_s;
    worker->used.involuntary_switches += slice->used.involuntary_switches;
    worker->step_cpu_s += slice->step_cpu_s;
    worker->counted = counts_sum(&worker->counted, &slice->counted);
    pthread_mutex_lock(&worker->lock);
    worker->progress.slices++;
    worker->progress.clean_slices += clean;
    pthread_mutex_unlock(&worker->lock);
}

/* By the first thread, for all, which meanwhile check the result or wait for its next word. */
static void record(struct trial *trial, uint64_t batch, double step_s)
{
    uint64_t operations = batch * trial->run->unit_operations;
    bool clean = is_clean(trial, step_s);
    for (unsigned i = 0; i < trial->run->threads; i++)
        record_thread(&trial->workers[i], batch, step_s, clean);
    show(trial, operations, trial->workers[0].measured_s);
    for (unsigned i = 0; i < trial->run->threads; i++)
        trial->workers[i].finished_operations = trial->workers[i].progress.operations;
}

/* A step with its counters around it and the clock right behind it. */
static int take_slice(struct worker *worker, uint64_t batch, double *step_s)
{
    struct team_slice *slice = &worker->slice;
    struct trial *trial = worker->trial;
    slice->clocks_seen = 0;
    /* The first step may be long, the next ones are as long as the last. */
    if (leads(worker))
        trial->team.steal_s = *step_s == 0 || *step_s >= STEAL_READABLE_S
                                  ? steal_read_s(&trial->run->placement.cpus)
                                  : NAN;
    struct thread_usage before = thread_usage_read(worker->schedstat);
    struct counts counted = counters_read(&worker->counters);
    double start_s = now_s();
    int failure = take_step(worker, batch, step_s);
    if (failure || run_stopping(trial->run))
        return failure;
    if (trial->run->workload->clock_hertz)
        measure_clock_after(worker, CLOCK_INTERVAL_S);
    slice->window_s = now_s() - start_s;
    struct counts counted_after = counters_read(&worker->counters);
    struct thread_usage after = thread_usage_read(worker->schedstat);
    slice->counted = counts_between(&counted, &counted_after);
    slice->used = thread_usage_between(&before, &after);
    return EXIT_OK;
}

/* ---- warm-up and timed region --------------------------------------------------------------- */

/* One step with what belongs around it. `timed`: recorded. */
static int work_once(struct worker *worker, uint64_t batch, bool timed, double *step_s)
{
    const struct workload *workload = worker->thread.run->workload;
    struct thread *thread = &worker->thread;
    int failure = workload->prepare ? workload->prepare(thread) : EXIT_OK;
    if (!failure)
        failure = timed ? take_slice(worker, batch, step_s) : take_step(worker, batch, step_s);
    if (failure || !run_meet(thread))
        return failure;
    if (timed && leads(worker))
        record(worker->trial, batch, *step_s);
    return workload->verify ? workload->verify(thread, batch) : EXIT_OK;
}

/* All take in what the first thread has decided: false at the end. */
static bool agree(struct worker *worker)
{
    return run_meet(&worker->thread) && worker->trial->team.batch > 0;
}

static uint64_t next_to_warm_up(struct worker *worker, double end_s, double step_s)
{
    bool largest = worker->batch == worker->thread.run->batch_max;
    if (step_s > 0)
        slices_adapt_batch(worker, step_s);
    return now_s() >= end_s && (largest || worker->units_per_s > 0) ? 0 : worker->batch;
}

int team_warm_up(struct worker *worker)
{
    struct run *run = worker->thread.run;
    double end_s = now_s() + options_get(&run->options, "warmup_s")->number, step_s = 0;
    worker->batch = 1;
    if (run->batch_max == 1 && run->workload->warm_up)
        return run->workload->warm_up(&worker->thread, end_s);
    for (;;) {
        if (leads(worker))
            worker->trial->team.batch = next_to_warm_up(worker, end_s, step_s);
        if (!agree(worker))
            return EXIT_OK;
        int failure = work_once(worker, worker->trial->team.batch, false, &step_s);
        if (failure)
            return failure;
    }
}

/* At least one step is taken: a moment's absence must not use up a short duration. */
static uint64_t next_batch(const struct worker *worker, double end_s, uint64_t left)
{
    if (worker->measured_s > 0 && now_s() >= end_s)
        return 0;
    return left < worker->batch ? left : worker->batch;
}

static void begin(struct worker *worker)
{
    struct trial *trial = worker->trial;
    worker->start_s = now_s();
    pthread_mutex_lock(&worker->lock);
    worker->progress.start_s = worker->progress.at_s = worker->start_s;
    pthread_mutex_unlock(&worker->lock);
    if (leads(worker))
        trial->team.timed = true;
}

int team_run(struct worker *worker)
{
    const struct run *run = worker->thread.run;
    const struct value *duration = options_get(&run->options, "duration_s");
    uint64_t left = slices_units_of_work(run);
    int failure = EXIT_OK;
    begin(worker);
    double end_s = duration->set ? worker->start_s + duration->number : INFINITY, step_s = 0;
    while (!failure) {
        if (leads(worker))
            worker->trial->team.batch = next_batch(worker, end_s, left);
        if (!agree(worker))
            break;
        uint64_t batch = worker->trial->team.batch;
        failure = work_once(worker, batch, true, &step_s);
        if (left != UINT64_MAX)
            left -= batch;
        if (leads(worker) && batch == worker->batch)
            slices_adapt_batch(worker, step_s);
    }
    worker->stop_s = now_s();
    return failure;
}
