#define _GNU_SOURCE
#include "reporter.h"

#include "announce.h"
#include "events.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

int reporter_allocate(struct reporter *reporter, const struct run *run)
{
    *reporter = (struct reporter){
        .last = calloc(run->threads, sizeof *reporter->last),
        .rates = calloc(run->threads, sizeof *reporter->rates),
        .clocks = calloc(run->threads, sizeof *reporter->clocks),
        .interval_s = options_get(&run->options, "sample_interval_s")->number,
    };
    return reporter->last && reporter->rates && reporter->clocks ? 0 : -1;
}

void reporter_free(struct reporter *reporter)
{
    free(reporter->last);
    free(reporter->rates);
    free(reporter->clocks);
}

static void begin_sampling(struct reporter *reporter, const struct trial *trial)
{
    reporter->started = true;
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

/* Of the clean slices since the last sample; a single chain may have met a timer tick. */
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

static void sample(struct reporter *reporter, struct trial *trial, double at_s)
{
    struct run *run = trial->run;
    struct interval interval = collect(reporter, trial);
    /* Where it matters, the reporter waits for its turn too: until now, not until the time due. */
    double until_s = run->placement.oversubscribed && !run_stopping(run) ? now_s() : at_s;
    double rate = combined_rate(reporter, trial, &interval, until_s - reporter->last_s);
    if (run->workload->rate.time)
        rate = 1 / rate; /* of a thread that was given no time, nothing */
    double clean_ratio =
        interval.slices ? (double)interval.clean_slices / (double)interval.slices : NAN;
    double clock_hertz = interval.clocks ? median(reporter->clocks, interval.clocks) : NAN;
    if (!event_sample(run, until_s - trial->start_s, until_s - reporter->last_s, rate, clean_ratio,
                      clock_hertz))
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
    sample(reporter, trial, at_s);
}

static int milliseconds_to(double at_s)
{
    double left_s = at_s - now_s();
    return left_s <= 0 ? 0 : (int)fmin(ceil(left_s * 1e3), 1e9);
}

static void wait_until(double at_s, struct trial *trial)
{
    struct pollfd fds[1 + ENDING_FDS];
    uint64_t count;
    fds[0] = (struct pollfd){.fd = trial->wake_fd, .events = POLLIN};
    ending_fds(&trial->run->ending, fds + 1);
    int found = poll(fds, 1 + ENDING_FDS, isfinite(at_s) ? milliseconds_to(at_s) : -1);
    if (found < 0 && errno != EINTR)
        abort();
    if (found <= 0)
        return;
    if ((fds[0].revents & POLLIN) && read(trial->wake_fd, &count, sizeof count) < 0)
        abort();
    ending_take(&trial->run->ending, fds + 1);
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

void reporter_run(struct reporter *reporter, struct trial *trial)
{
    struct run *run = trial->run;
    double end_s = INFINITY;
    while (atomic_load(&trial->at_work) > 0 && now_s() < end_s) {
        announce_when_ready(trial);
        bool sampling = atomic_load(&trial->timed) && !run_stopping(run);
        if (sampling && !reporter->started)
            begin_sampling(reporter, trial);
        wait_until(sampling ? reporter->next_s : end_s, trial);
        if (sampling && !run->ending.why)
            sample_if_due(reporter, trial, now_s());
        if (run->ending.why && end_s == INFINITY) {
            atomic_store(&run->stopping, true);
            end_s = now_s() + ENDING_WITHIN_S;
        }
    }
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
