#define _GNU_SOURCE
#include "reporter.h"

#include "disturbance.h"
#include "events.h"
#include "loop.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The reporter looks at the clock so often. Where it is so late, for each thread on a CPU, and did
 * not wait on the run queue for that long, a debugger or a hypervisor has stopped the program. */
static const double LOOK_S = 0.25, STOPPED_LEAST_S = 0.1;
/* A wait never ends earlier than it was to, by a clock that goes on. */
static const double BACK_LEAST_S = 5e-3;

/* What all threads had done when the last sample was taken, and since. */
struct loop_seen {
    double at_s;
    struct histogram last, interval;
};

int reporter_allocate(struct reporter *reporter, const struct run *run)
{
    *reporter = (struct reporter){
        .last = calloc(run->threads, sizeof *reporter->last),
        .rates = calloc(run->threads, sizeof *reporter->rates),
        .clocks = calloc(run->threads, sizeof *reporter->clocks),
        .interval_s = options_get(&run->options, "sample_interval_s")->number,
    };
    if (run->workload->loop && !loop_in_bulk(run->workload)) {
        reporter->seen = calloc(1, sizeof *reporter->seen);
        if (!reporter->seen)
            return -1;
        histogram_clear(&reporter->seen->last);
    }
    return reporter->last && reporter->rates && reporter->clocks ? 0 : -1;
}

void reporter_free(struct reporter *reporter)
{
    free(reporter->last);
    free(reporter->rates);
    free(reporter->clocks);
    free(reporter->seen);
}

static void begin_sampling(struct reporter *reporter, const struct trial *trial)
{
    reporter->started = true;
    if (reporter->seen)
        reporter->seen->at_s = trial->start_s;
    reporter->last_s = trial->start_s;
    reporter->next_s = trial->start_s + reporter->interval_s;
}

/* What all workers did since the last sample. */
struct interval {
    double operations;
    bool moved; /* some worker has finished something */
    uint64_t slices, clean_slices;
    size_t clocks;
};

/* Of the clean slices since the last sample; a timer tick may have hit a single chain. */
static double median_clock(const struct progress *progress, const struct progress *last)
{
    double clocks[CLOCKS_SHOWN];
    uint64_t fresh = progress->clocks_seen - last->clocks_seen;
    size_t count = fresh < CLOCKS_SHOWN ? (size_t)fresh : CLOCKS_SHOWN;
    for (size_t i = 0; i < count; i++)
        clocks[i] = progress->clocks[(progress->clocks_seen - 1 - i) % CLOCKS_SHOWN];
    return count ? median(clocks, count) : NAN;
}

/* Each rate is that of whole slices over their own time, so that a slice across the boundary does
 * not blur it. */
static struct interval collect(struct reporter *reporter, struct trial *trial)
{
    struct interval interval = {0};
    for (unsigned i = 0; i < trial->run->threads; i++) {
        struct worker *worker = &trial->workers[i];
        if (worker->background)
            continue;
        pthread_mutex_lock(&worker->lock);
        struct progress progress = worker->progress;
        pthread_mutex_unlock(&worker->lock);
        struct progress *last = &reporter->last[i];
        double taken_s = progress.at_s - (last->at_s > 0 ? last->at_s : progress.start_s);
        double operations = (double)(progress.operations - last->operations);
        reporter->rates[worker->rank] = taken_s > 0 ? operations / taken_s : 0;
        interval.operations += operations;
        interval.moved |= taken_s > 0;
        interval.slices += progress.slices - last->slices;
        interval.clean_slices += progress.clean_slices - last->clean_slices;
        double clock_hertz = median_clock(&progress, last);
        if (isfinite(clock_hertz))
            reporter->clocks[interval.clocks++] = clock_hertz;
        *last = progress;
    }
    return interval;
}

static double combined_rate(const struct reporter *reporter, const struct trial *trial,
                            const struct interval *interval, double elapsed_s)
{
    const struct run *run = trial->run;
    double sum = 0;
    if (!interval->moved)
        return NAN;
    if (run->workload->rate.combine == COMBINE_MEDIAN)
        return median(reporter->rates, trial->measured);
    /* Threads that share a CPU finish their slices at different moments. */
    if (run->placement.oversubscribed)
        return interval->operations / elapsed_s;
    for (unsigned i = 0; i < trial->measured; i++)
        sum += reporter->rates[i];
    return sum;
}

enum {
    SAMPLED_OF_OURS = 6,
    SAMPLED_MAX = SAMPLED_OF_OURS + OBSERVED_MAX,
};

/* `until_s`: where the interval ends. The number of figures. */
static size_t sample_slices(struct reporter *reporter, struct trial *trial, double until_s,
                            struct sampled sampled[SAMPLED_MAX])
{
    const struct workload *workload = trial->run->workload;
    struct interval interval = collect(reporter, trial);
    double rate = combined_rate(reporter, trial, &interval, until_s - reporter->last_s);
    if (workload->rate.time)
        rate = 1 / rate; /* of a thread that was given no time, nothing */
    double clean_ratio =
        interval.slices ? (double)interval.clean_slices / (double)interval.slices : NAN;
    double clock_hertz = interval.clocks ? median(reporter->clocks, interval.clocks) : NAN;
    sampled[0] = (struct sampled){workload->rate.name, rate};
    sampled[1] = (struct sampled){"clean_slice_ratio", clean_ratio};
    sampled[2] = (struct sampled){"clock_hertz", clock_hertz};
    return workload->clock_hertz ? 3 : 2;
}

/* When the threads are through, waiting for the sample is no part of the interval. */
static double region_end_s(struct trial *trial)
{
    double stop_s = 0;
    if (atomic_load(&trial->measuring) > 0)
        return INFINITY;
    for (unsigned i = 0; i < trial->run->threads; i++)
        stop_s = fmax(stop_s, trial->workers[i].stop_s);
    return stop_s;
}

/* What was done since the last look, and the seconds between the two. */
static double look(struct loop_seen *seen, struct trial *trial, double by_s)
{
    struct histogram *since = &seen->interval;
    double taken_s = fmin(by_s, region_end_s(trial)) - seen->at_s;
    histogram_clear(since);
    loop_merge_all(trial, since);
    histogram_subtract(since, &seen->last);
    histogram_merge(&seen->last, since);
    seen->at_s += taken_s;
    return taken_s;
}

static void add(struct sampled *sampled, size_t *count, const char *name, double value)
{
    for (size_t i = 0; i < *count; i++)
        if (!strcmp(sampled[i].name, name))
            return; /* it is the primary figure */
    sampled[(*count)++] = (struct sampled){name, value};
}

/* As they stand at `by_s`. Nothing done in an interval is a rate of 0: the device stalled. */
static size_t sample_loop(struct reporter *reporter, struct trial *trial, double by_s,
                          struct sampled sampled[SAMPLED_MAX])
{
    const struct run *run = trial->run;
    const struct rate *rate = &run->workload->rate;
    double taken_s = look(reporter->seen, trial, by_s);
    const struct histogram *since = &reporter->seen->interval;
    double operations = (double)histogram_count(since), block_bytes = loop_block_bytes(run);
    double per_second = taken_s > 0 ? operations / taken_s : NAN;
    double p50_s = histogram_quantile_ns(since, 0.5) * 1e-9;
    double p99_s = histogram_quantile_ns(since, 0.99) * 1e-9;
    size_t count = 0;
    add(sampled, &count, rate->name,
        rate->time ? p50_s : per_second * (double)run->unit_operations);
    add(sampled, &count, "operations_per_second", per_second);
    if (block_bytes > 0)
        add(sampled, &count, "bytes_per_second", per_second * block_bytes);
    add(sampled, &count, "latency_p50_s", p50_s);
    bool known = operations >= (double)histogram_least(0.99) && !run->times_are_means;
    add(sampled, &count, "latency_p99_s", known ? p99_s : NAN);
    return count;
}

/* Each thread's own, between two moments that it names itself: what another host tells comes in
 * its own time. A thread that reported nothing new adds none. */
static size_t sample_bulk(struct reporter *reporter, struct trial *trial,
                          struct sampled sampled[SAMPLED_MAX])
{
    const struct workload *workload = trial->run->workload;
    double rate = NAN;
    for (unsigned i = 0; i < trial->run->threads; i++) {
        struct progress *last = &reporter->last[i];
        double at_s = trial->start_s, since_s = last->at_s > 0 ? last->at_s : trial->start_s;
        uint64_t moved = workload->moved(&trial->workers[i].thread, &at_s);
        if (at_s <= since_s || moved < last->operations)
            continue;
        rate = (isfinite(rate) ? rate : 0) + (double)(moved - last->operations) / (at_s - since_s);
        *last = (struct progress){.at_s = at_s, .operations = moved};
    }
    sampled[0] = (struct sampled){workload->rate.name, workload->rate.time ? 1 / rate : rate};
    return 1;
}

/* Behind the `count` figures of the harness. */
static size_t add_observed(struct run *run, struct sampled sampled[SAMPLED_MAX], size_t count)
{
    struct observed observed[OBSERVED_MAX];
    if (!run->workload->observe)
        return count;
    size_t more = run->workload->observe(run, observed, OBSERVED_MAX);
    assert(more <= OBSERVED_MAX);
    for (size_t i = 0; i < more; i++)
        add(sampled, &count, observed[i].name, observed[i].value);
    return count;
}

static size_t sample_figures(struct reporter *reporter, struct trial *trial, double until_s,
                             double by_s, struct sampled sampled[SAMPLED_MAX])
{
    if (reporter->seen)
        return sample_loop(reporter, trial, by_s, sampled);
    return loop_in_bulk(trial->run->workload) ? sample_bulk(reporter, trial, sampled)
                                              : sample_slices(reporter, trial, until_s, sampled);
}

static void sample(struct reporter *reporter, struct trial *trial, double at_s, double by_s)
{
    struct run *run = trial->run;
    struct sampled sampled[SAMPLED_MAX];
    /* Where it matters, the reporter waits for its turn too: until now, not until the time due. */
    double until_s = run->placement.oversubscribed && !run_stopping(run) ? now_s() : at_s;
    size_t count = sample_figures(reporter, trial, until_s, by_s, sampled);
    count = add_observed(run, sampled, count);
    if (!event_sample(until_s - trial->start_s, until_s - reporter->last_s, sampled, count))
        run->ending.why = "ended because its output cannot be written";
    reporter->last_s = until_s;
}

/* Samples stay on the grid of the interval: one that comes late covers the intervals it missed. */
static void sample_if_due(struct reporter *reporter, struct trial *trial, double by_s)
{
    if (by_s < reporter->next_s)
        return;
    double missed = floor((by_s - reporter->next_s) / reporter->interval_s);
    double at_s = reporter->next_s + missed * reporter->interval_s;
    reporter->next_s = at_s + reporter->interval_s;
    sample(reporter, trial, at_s, by_s);
}

static int milliseconds_to(double at_s)
{
    double left_s = at_s - now_s();
    return left_s <= 0 ? 0 : (int)fmin(ceil(left_s * 1e3), 1e9);
}

/* Whether that time came, and nothing else. */
static bool wait_until(double at_s, struct trial *trial)
{
    struct pollfd fds[1 + ENDING_FDS];
    uint64_t count;
    fds[0] = (struct pollfd){.fd = trial->wake_fd, .events = POLLIN};
    ending_fds(&trial->run->ending, fds + 1);
    int found = poll(fds, 1 + ENDING_FDS, isfinite(at_s) ? milliseconds_to(at_s) : -1);
    if (found < 0 && errno != EINTR)
        abort();
    if (found <= 0)
        return found == 0;
    if ((fds[0].revents & POLLIN) && read(trial->wake_fd, &count, sizeof count) < 0)
        abort();
    ending_take(&trial->run->ending, fds + 1);
    return false;
}

/* The conditions that the reader of the figures should know of although they do not stop the trial. */
static void warn(const struct run *run)
{
    const char *unconfirmed = run->workload->unconfirmed ? run->workload->unconfirmed(run) : NULL;
    if (unconfirmed)
        run_warning(run, "not_run_on_hardware", "%s", unconfirmed);
    bool waits = run->workload->loop;
    if (run->placement.oversubscribed)
        run_warning(run, "oversubscribed", "%u threads share %u CPUs: %s", run->threads, run->cpus,
                    waits ? "their figures hold the waiting for one"
                          : "figures that add up over threads are those of the whole run, not "
                            "of clean slices");
    if (run->cgroup.quota_cpus > 0 && run->cgroup.quota_cpus < run->threads)
        run_warning(run, "quota", "the cgroup allows %.2f CPUs to %u threads: they %s be throttled",
                    run->cgroup.quota_cpus, run->threads, waits ? "may" : "will");
    if (run->clock.resolution_s > MONOTONIC_COARSE_S)
        run_warning(run, "coarse_clock", "CLOCK_MONOTONIC moves in steps of %.3g s: %s",
                    run->clock.resolution_s,
                    waits ? "latencies are blurred"
                          : "slices are longer for that, and the core clock is unknown");
}

/* 0 or an exit_code with its reason. */
static int announce(struct run *run)
{
    warn(run);
    if (event_start(run))
        return EXIT_OK;
    run_reason(run,
               "the output cannot be written (%s): connect stdout to a reader or to a file with "
               "free space",
               strerror(errno));
    return EXIT_FAILED;
}

static void announce_when_ready(struct trial *trial)
{
    struct run *run = trial->run;
    if (!atomic_load(&trial->ready) || atomic_load(&trial->announced) || run_stopping(run))
        return;
    run_fail(run, announce(run));
    atomic_store(&trial->announced, 1);
    word_wake(&trial->announced);
}

/* What is due once all are through comes with reporter_finish(): checks may take a while. */
static bool is_sampling(struct trial *trial)
{
    return atomic_load(&trial->timed) && atomic_load(&trial->measuring) > 0 &&
           !run_stopping(trial->run);
}

/* The kernel promises that this clock never does: nothing that was timed with it can be believed. */
static void clock_went_back(struct run *run, double back_s)
{
    run_reason(
        run,
        "CLOCK_MONOTONIC went back by %.3f s while the trial ran: this host's clock source is "
        "broken; do not trust its figures; hostbench doctor names it, and dmesg may say why",
        back_s);
    run_fail(run, EXIT_FAILED);
}

int reporter_check_place(const struct worker *worker)
{
    int cpu = worker->thread.cpu;
    if (placement_keeps(worker->tid, cpu))
        return EXIT_OK;
    run_reason(
        worker->thread.run,
        "the kernel moved the thread on CPU %d to others while it was measured (the CPU went "
        "offline, or the cpuset changed), so there is no figure: try again, or choose other "
        "CPUs with --cpus",
        cpu);
    return EXIT_RESOURCE;
}

/* At once, not at the end: two threads that wait for each other on one CPU take for ever. */
static void check_places(struct trial *trial)
{
    struct run *run = trial->run;
    for (unsigned i = 0; i < run->threads && !run_stopping(run); i++)
        run_fail(run, reporter_check_place(&trial->workers[i]));
}

/* Waits like wait_until(), and notes when that took much too long, or less than no time. `schedstat`
 * is the calling thread's. */
static void watch_until(double at_s, struct trial *trial, int schedstat)
{
    struct run *run = trial->run;
    double waited_s = thread_usage_read(schedstat).wait_s;
    double began_s = now_s(), due_s = fmax(began_s, fmin(at_s, began_s + LOOK_S));
    double least_s = STOPPED_LEAST_S * fmax(1, (double)run->threads / run->cpus);
    bool is_due = wait_until(due_s, trial);
    double late_s = now_s() - due_s;
    if (late_s > least_s) {
        /* Meanwhile others had the CPU. NaN where the kernel does not tell. */
        double queued_s = thread_usage_read(schedstat).wait_s - waited_s;
        double stopped_s = late_s - (isnan(queued_s) ? 0 : queued_s);
        if (stopped_s > least_s)
            trial->stopped_s += stopped_s;
    }
    if (is_due && late_s < -fmax(BACK_LEAST_S, 2 * run->clock.resolution_s))
        clock_went_back(run, -late_s);
}

void reporter_run(struct reporter *reporter, struct trial *trial)
{
    struct run *run = trial->run;
    int schedstat = thread_usage_open();
    double end_s = INFINITY;
    while (atomic_load(&trial->at_work) > 0 && now_s() < end_s) {
        announce_when_ready(trial);
        bool sampling = is_sampling(trial);
        if (sampling && !reporter->started)
            begin_sampling(reporter, trial);
        if (sampling) {
            watch_until(reporter->next_s, trial, schedstat);
            check_places(trial);
        } else {
            wait_until(end_s, trial);
        }
        if (sampling && is_sampling(trial) && !run->ending.why)
            sample_if_due(reporter, trial, now_s());
        if (run->ending.why && end_s == INFINITY) {
            atomic_store(&run->stopping, true);
            end_s = now_s() + ENDING_WITHIN_S;
        }
    }
    if (schedstat >= 0)
        close(schedstat);
}

void reporter_finish(struct reporter *reporter, struct trial *trial)
{
    double stop_s = 0;
    for (unsigned i = 0; i < trial->run->threads; i++)
        stop_s = fmax(stop_s, trial->workers[i].stop_s);
    if (!reporter->started)
        begin_sampling(reporter, trial);
    sample_if_due(reporter, trial, stop_s);
}
