/* The timed region: every worker warms up, meets the others at a barrier, and runs its kernel in
 * slices of a few milliseconds, each held against the scheduler's own counters. The main thread
 * only waits, reports and listens for signals. */
#define _GNU_SOURCE
#include "events.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

enum {
    BARRIER_SPINS = 20000, /* some 100 µs: the others arrive within a slice at most */
    RATES_KEPT = 1 << 16,  /* slices a worker remembers one by one: three minutes' worth */
    CLOCKS_KEPT = 1 << 12,
    SLICES_PER_CLOCK_CHAIN = 4, /* with the chain's length: 0.25 % of the time */
    CLOCK_CHAIN_CYCLES = 96000, /* 30 µs: long against one clock reading, short against a slice */
    EMPTY_LOOP_REPEATS = 5,
};

static const double CLEAN_CPU_RATIO = 0.97;
static const double SHORT_SLICE_RATIO = 0.5; /* a last slice shorter than this says nothing */

/* ---- slices --------------------------------------------------------------------------------- */

/* Aims the next batch at one slice. Only a batch of a quarter slice or more tells its rate: below,
 * the call itself and the clock weigh in, and a preempted one would look slow for good. */
static void adapt_batch(struct worker *worker, double taken_s)
{
    const struct run *run = worker->thread.run;
    double slice_s = options_get(&run->options, "slice_s")->number;
    double most = (double)run->batch_max;
    double batch = 2.0 * (double)worker->batch;
    if (taken_s >= slice_s / 4) {
        worker->units_per_s = fmax(worker->units_per_s, (double)worker->batch / taken_s);
        batch = worker->units_per_s * slice_s;
    }
    worker->batch = (uint64_t)fmax(1, fmin(batch, most));
}

/* Runs until the warm-up is over and the batch of one slice is known. */
static int warm_up(struct worker *worker)
{
    struct run *run = worker->thread.run;
    double end_s = now_s() + options_get(&run->options, "warmup_s")->number;
    worker->batch = 1;
    for (double now = now_s(); !run_stopping(run);) {
        bool largest = worker->batch == run->batch_max;
        int failure = run->workload->step(&worker->thread, worker->batch);
        double taken_s = now_s() - now;
        if (failure)
            return failure;
        adapt_batch(worker, taken_s);
        now += taken_s;
        if (now >= end_s && (largest || worker->units_per_s > 0))
            break;
    }
    return EXIT_OK;
}

static bool is_clean(const struct thread_usage *before, const struct thread_usage *after,
                     double wall_s)
{
    return after->involuntary_switches == before->involuntary_switches &&
           !(after->wait_s > before->wait_s) && /* also when unknown */
           after->cpu_s - before->cpu_s >= CLEAN_CPU_RATIO * wall_s;
}

static void publish(struct worker *worker, double at_s, uint64_t operations, bool clean)
{
    pthread_mutex_lock(&worker->lock);
    worker->progress.at_s = at_s;
    worker->progress.operations += operations;
    worker->progress.slices++;
    worker->progress.clean_slices += clean;
    pthread_mutex_unlock(&worker->lock);
}

static void keep_clock(struct worker *worker, double clock_hertz, double clean_rate)
{
    reservoir_add(&worker->clocks, clock_hertz);
    if (clean_rate > 0)
        reservoir_add(&worker->ratios, clean_rate / clock_hertz);
    pthread_mutex_lock(&worker->lock);
    worker->progress.clock_hertz = clock_hertz;
    pthread_mutex_unlock(&worker->lock);
}

/* One slice and, if asked for, a clock chain right behind it. Nothing may come between the two,
 * least of all a system call: a core leaves its AVX-512 clock within microseconds, and coming back
 * to it costs more of them. */
static int run_slice(struct worker *worker, uint64_t batch, bool chain, struct thread_usage *usage)
{
    struct run *run = worker->thread.run;
    uint64_t cycles = 0;
    double cpu_s = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    double start_s = now_s();
    int failure = run->workload->step(&worker->thread, batch);
    double stop_s = now_s();
    if (chain)
        cycles = run->workload->clock_chain(&worker->thread, CLOCK_CHAIN_CYCLES);
    double end_s = now_s();
    struct thread_usage after = thread_usage_read(worker->schedstat);
    bool clean = is_clean(usage, &after, end_s - start_s);
    uint64_t operations = batch * run->unit_operations;
    double rate = (double)operations / (stop_s - start_s);
    *usage = after;
    worker->step_cpu_s += after.cpu_s - cpu_s - (end_s - stop_s);
    bool counts = clean && (double)batch >= SHORT_SLICE_RATIO * (double)worker->batch;
    if (counts) {
        reservoir_add(&worker->rates, rate);
        worker->best_rate = fmax(worker->best_rate, rate);
    }
    if (chain)
        keep_clock(worker, (double)cycles / (end_s - stop_s - run->clock.read_s),
                   counts ? rate : 0);
    if (batch == worker->batch)
        adapt_batch(worker, stop_s - start_s);
    publish(worker, stop_s, operations, clean);
    return failure;
}

/* Units of the fixed total work that fall to this worker; UINT64_MAX: time decides. */
static uint64_t share_of_work(const struct worker *worker)
{
    const struct run *run = worker->thread.run;
    const struct value *work = options_get(&run->options, "work");
    if (!work->set)
        return UINT64_MAX;
    uint64_t units = (work->count - 1) / run->unit_operations + 1;
    return units / run->threads + (worker->thread.index < units % run->threads);
}

static int timed_region(struct worker *worker)
{
    struct run *run = worker->thread.run;
    const struct value *duration = options_get(&run->options, "duration_s");
    uint64_t left = share_of_work(worker);
    int failure = EXIT_OK;
    double now = worker->start_s = worker->progress.at_s = now_s();
    struct thread_usage usage = worker->before = thread_usage_read(worker->schedstat);
    double end_s = duration->set ? now + duration->number : INFINITY;
    for (unsigned slice = 0; !failure && left > 0 && now < end_s && !run_stopping(run); slice++) {
        uint64_t batch = left < worker->batch ? left : worker->batch;
        bool chain = run->workload->clock_chain && slice % SLICES_PER_CLOCK_CHAIN == 0;
        failure = run_slice(worker, batch, chain, &usage);
        if (left != UINT64_MAX)
            left -= batch;
        now = now_s();
    }
    worker->after = thread_usage_read(worker->schedstat);
    worker->stop_s = now_s();
    return failure;
}

/* ---- workers -------------------------------------------------------------------------------- */

static int pin(struct run *run, int cpu)
{
    cpu_set_t *set = CPU_ALLOC(CPULIST_MAX);
    size_t size = CPU_ALLOC_SIZE(CPULIST_MAX);
    if (!set)
        abort();
    CPU_ZERO_S(size, set);
    CPU_SET_S((size_t)cpu, size, set);
    int refused = sched_setaffinity(0, size, set);
    CPU_FREE(set);
    if (!refused)
        return EXIT_OK;
    run_reason(run, "pinning a thread to CPU %d: %s; has the cpuset changed meanwhile?", cpu,
               strerror(errno));
    return EXIT_RESOURCE;
}

static int prepare(struct worker *worker)
{
    struct run *run = worker->thread.run;
    worker->schedstat = thread_usage_open();
    int failure = pin(run, worker->thread.cpu);
    if (failure)
        return failure;
    if (reservoir_init(&worker->rates, RATES_KEPT) ||
        reservoir_init(&worker->clocks, CLOCKS_KEPT) ||
        reservoir_init(&worker->ratios, CLOCKS_KEPT)) {
        run_reason(run, "no memory for the slice records of %u threads: use fewer threads",
                   run->threads);
        return EXIT_RESOURCE;
    }
    return run->workload->setup(&worker->thread);
}

static double reporter_cpu_s(const struct trial *trial)
{
    clockid_t id;
    return pthread_getcpuclockid(trial->reporter, &id) ? NAN : seconds_of(id);
}

static void measure_empty_loop(struct worker *worker)
{
    struct trial *trial = worker->trial;
    const struct workload *workload = trial->run->workload;
    double best_s = INFINITY;
    if (!workload->empty_loop || !worker->rates.kept)
        return;
    for (int i = 0; i < EMPTY_LOOP_REPEATS; i++) {
        double start_s = now_s();
        workload->empty_loop(&worker->thread, worker->batch);
        best_s = fmin(best_s, now_s() - start_s);
    }
    double operations = (double)(worker->batch * trial->run->unit_operations);
    double kernel_s = operations / median(worker->rates.values, worker->rates.kept);
    trial->empty_loop_ratio = best_s / kernel_s;
}

static void wake_reporter(struct trial *trial)
{
    uint64_t one = 1;
    ssize_t written = write(trial->wake_fd, &one, sizeof one);
    (void)written; /* an eventfd refuses only at 2^64 - 1 */
}

static void begin_measuring(struct trial *trial)
{
    trial->start_s = now_s();
    atomic_store(&trial->timed, true);
    wake_reporter(trial);
}

/* Every worker passes every barrier, whatever has failed: a worker that left early would keep the
 * others waiting. Thread 0 brackets the timed region with the counters of the host. */
static void *work(void *argument)
{
    struct worker *worker = argument;
    struct trial *trial = worker->trial;
    struct run *run = trial->run;
    bool first = worker->thread.index == 0;
    int unprepared = prepare(worker);
    run_fail(run, unprepared);
    barrier_wait(&trial->barrier);
    if (!run_stopping(run))
        run_fail(run, warm_up(worker));
    if (first) {
        trial->host_before = host_usage_read(&run->placement.cpus, &run->cgroup);
        trial->reporter_cpu_s = reporter_cpu_s(trial);
    }
    barrier_wait(&trial->barrier);
    if (first)
        begin_measuring(trial);
    if (!run_stopping(run))
        run_fail(run, timed_region(worker));
    barrier_wait(&trial->barrier);
    if (first && !run_stopping(run)) {
        trial->host_after = host_usage_read(&run->placement.cpus, &run->cgroup);
        trial->reporter_cpu_s = reporter_cpu_s(trial) - trial->reporter_cpu_s;
        measure_empty_loop(worker);
        if (run->workload->finish)
            run->workload->finish(&worker->thread);
    }
    if (!unprepared && run->workload->teardown)
        run->workload->teardown(&worker->thread);
    if (worker->schedstat >= 0)
        close(worker->schedstat);
    if (atomic_fetch_sub(&trial->at_work, 1) == 1)
        wake_reporter(trial);
    return NULL;
}

/* ---- the reporting thread ------------------------------------------------------------------- */

struct reporter {
    struct progress *last; /* one a worker */
    double *rates, *clocks;
    double last_s, next_s, interval_s;
    bool started;
};

static void stop(struct trial *trial, const char *why)
{
    if (!trial->ended_by)
        trial->ended_by = why;
    atomic_store(&trial->run->stopping, true);
}

static void begin_sampling(const struct trial *trial, struct reporter *reporter)
{
    reporter->started = true;
    reporter->last_s = trial->start_s;
    reporter->next_s = trial->start_s + reporter->interval_s;
}

/* One sample over what the workers finished since the last: whole slices over their own time, so
 * that a slice across the boundary does not blur the rate. */
static void sample(struct trial *trial, struct reporter *reporter, double at_s)
{
    struct run *run = trial->run;
    uint64_t slices = 0, clean = 0;
    double sum = 0;
    size_t clocks = 0;
    for (unsigned i = 0; i < run->threads; i++) {
        struct worker *worker = &trial->workers[i];
        pthread_mutex_lock(&worker->lock);
        struct progress progress = worker->progress;
        pthread_mutex_unlock(&worker->lock);
        struct progress *last = &reporter->last[i];
        double from_s = last->at_s > 0 ? last->at_s : trial->start_s;
        double taken_s = progress.at_s - from_s;
        uint64_t operations = progress.operations - last->operations;
        reporter->rates[i] = taken_s > 0 ? (double)operations / taken_s : 0;
        sum += reporter->rates[i];
        slices += progress.slices - last->slices;
        clean += progress.clean_slices - last->clean_slices;
        if (isfinite(progress.clock_hertz))
            reporter->clocks[clocks++] = progress.clock_hertz;
        *last = progress;
    }
    bool single = run->workload->rate.combine == COMBINE_MEDIAN;
    double rate = single ? median(reporter->rates, run->threads) : sum;
    double clock_hertz = clocks ? median(reporter->clocks, clocks) : NAN;
    double clean_ratio = slices ? (double)clean / (double)slices : NAN;
    if (!event_sample(run, at_s - trial->start_s, at_s - reporter->last_s, rate, clean_ratio,
                      clock_hertz))
        stop(trial, "nobody reads its output any more");
    reporter->last_s = at_s;
    reporter->next_s = at_s + reporter->interval_s;
}

/* Samples stay on the grid of the interval: one that comes late covers the intervals it missed. */
static void sample_if_due(struct trial *trial, struct reporter *reporter, double by_s)
{
    if (by_s < reporter->next_s)
        return;
    double missed = floor((by_s - reporter->next_s) / reporter->interval_s);
    sample(trial, reporter, reporter->next_s + missed * reporter->interval_s);
}

static const char *signal_word(int signal_fd)
{
    struct signalfd_siginfo info;
    if (read(signal_fd, &info, sizeof info) != sizeof info)
        return NULL;
    switch (info.ssi_signo) {
    case SIGTERM:
        return "ended by SIGTERM";
    case SIGINT:
        return "ended by SIGINT";
    default:
        return "ended by SIGHUP";
    }
}

static int milliseconds_to(double at_s)
{
    double left_s = at_s - now_s();
    return left_s <= 0 ? 0 : (int)fmin(ceil(left_s * 1e3), 1e9);
}

/* Waits for signals, the lifeline, the workers and the next sample. */
static void report_until_done(struct trial *trial, struct reporter *reporter, int signal_fd)
{
    const struct value *lifeline = options_get(&trial->run->options, "lifeline_fd");
    struct pollfd fds[] = {
        {.fd = trial->wake_fd, .events = POLLIN},
        {.fd = signal_fd, .events = POLLIN},
        {.fd = lifeline->set ? (int)lifeline->count : -1, .events = POLLRDHUP},
    };
    while (atomic_load(&trial->at_work) > 0) {
        bool timed = atomic_load(&trial->timed);
        if (timed && !reporter->started)
            begin_sampling(trial, reporter);
        if (poll(fds, 3, timed ? milliseconds_to(reporter->next_s) : -1) < 0 && errno != EINTR)
            abort();
        uint64_t count;
        if ((fds[0].revents & POLLIN) && read(trial->wake_fd, &count, sizeof count) < 0)
            abort();
        if (fds[1].revents & POLLIN)
            stop(trial, signal_word(signal_fd));
        if (fds[2].revents) {
            stop(trial, "ended because its parent is gone (the lifeline closed)");
            fds[2].fd = -1;
        }
        if (timed && !run_stopping(trial->run))
            sample_if_due(trial, reporter, now_s());
    }
}

/* The workers may be done a moment before the reporter woke for the last full interval. */
static void sample_rest(struct trial *trial, struct reporter *reporter)
{
    double stop_s = 0;
    for (unsigned i = 0; i < trial->run->threads; i++)
        stop_s = fmax(stop_s, trial->workers[i].stop_s);
    if (!reporter->started)
        begin_sampling(trial, reporter);
    sample_if_due(trial, reporter, stop_s);
}

/* ---- the trial ------------------------------------------------------------------------------ */

static bool start_workers(struct trial *trial)
{
    struct run *run = trial->run;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 * 1024);
    for (unsigned i = 0; i < run->threads; i++) {
        struct worker *worker = &trial->workers[i];
        worker->thread =
            (struct thread){.run = run, .index = i, .cpu = run->placement.cpus.cpus[i]};
        worker->trial = trial;
        worker->progress.clock_hertz = NAN;
        pthread_mutex_init(&worker->lock, NULL);
        int error = pthread_create(&worker->handle, &attributes, work, worker);
        if (error) {
            run_reason(run,
                       "%u threads: the system started only %u (%s): use fewer threads or raise "
                       "the limit (ulimit -u, the pids cgroup, memory)",
                       run->threads, i, strerror(error));
            return false;
        }
    }
    pthread_attr_destroy(&attributes);
    return true;
}

static bool trial_allocate(struct trial *trial, struct reporter *reporter)
{
    size_t threads = trial->run->threads;
    trial->workers = aligned_alloc(_Alignof(struct worker), threads * sizeof(struct worker));
    reporter->last = calloc(threads, sizeof *reporter->last);
    reporter->rates = calloc(threads, sizeof *reporter->rates);
    reporter->clocks = calloc(threads, sizeof *reporter->clocks);
    trial->wake_fd = eventfd(0, EFD_CLOEXEC);
    if (!trial->workers || !reporter->last || !reporter->rates || !reporter->clocks ||
        trial->wake_fd < 0)
        return false;
    memset(trial->workers, 0, threads * sizeof(struct worker));
    return true;
}

int trial_execute(struct trial *trial, struct run *run, int signal_fd)
{
    struct reporter reporter = {.interval_s =
                                    options_get(&run->options, "sample_interval_s")->number};
    *trial = (struct trial){.run = run, .wake_fd = -1, .empty_loop_ratio = NAN};
    if (!trial_allocate(trial, &reporter)) {
        run_reason(run, "no memory for %u threads: use fewer threads", run->threads);
        run_fail(run, EXIT_RESOURCE);
        return run->exit_code;
    }
    barrier_init(&trial->barrier, run->threads, run->placement.oversubscribed ? 0 : BARRIER_SPINS);
    atomic_store(&trial->at_work, run->threads);
    trial->reporter = pthread_self();
    if (!start_workers(trial)) {
        /* The threads that did start wait at the barrier for ever: the process ends with them. */
        run_fail(run, EXIT_RESOURCE);
        return run->exit_code;
    }
    report_until_done(trial, &reporter, signal_fd);
    for (unsigned i = 0; i < run->threads; i++)
        pthread_join(trial->workers[i].handle, NULL);
    if (!run_stopping(run))
        sample_rest(trial, &reporter);
    free(reporter.last);
    free(reporter.rates);
    free(reporter.clocks);
    return run->exit_code;
}

void trial_free(struct trial *trial)
{
    for (unsigned i = 0; trial->workers && i < trial->run->threads; i++) {
        reservoir_free(&trial->workers[i].rates);
        reservoir_free(&trial->workers[i].clocks);
        reservoir_free(&trial->workers[i].ratios);
        pthread_mutex_destroy(&trial->workers[i].lock);
    }
    free(trial->workers);
    if (trial->wake_fd >= 0)
        close(trial->wake_fd);
}
