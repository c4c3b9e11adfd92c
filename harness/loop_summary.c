#include "loop_summary.h"

#include "loop.h"

#include <math.h>
#include <stdio.h>

/* Waking a thread on an idle CPU was seen to take 1 µs by an interrupt of that CPU and 6 µs by
 * another CPU of a virtual machine: that much of its waiting is no disturbance. */
static const double WAKE_UP_S = 10e-6;

static const char NOTHING_DONE[] = "no operation was done";
static const char BELOW_A_STEP[] = "it is shorter than a step of CLOCK_MONOTONIC";

/* ---- latencies ------------------------------------------------------------------------------ */

enum latency {
    LATENCY_MEAN,
    LATENCY_MIN,
    LATENCY_P50,
    LATENCY_P90,
    LATENCY_P95,
    LATENCY_P99,
    LATENCY_P99_9,
    LATENCY_MAX,
    LATENCIES,
};

struct latency_row {
    struct metric metric;
    double quantile; /* 0: none */
    /* An upper bound of the quantile, and why there is none of few operations; NULL: any number of
     * operations tells it. */
    const char *too_few;
};

static const struct latency_row latencies[LATENCIES] = {
    [LATENCY_MEAN] = {.metric = {"latency_mean_s", "s", LOWER_IS_BETTER,
                                 "Mean time of one operation (exact)."}},
    [LATENCY_MIN] = {.metric = {"latency_min_s", "s", LOWER_IS_BETTER,
                                "Time of the shortest operation (exact)."}},
    [LATENCY_P50] =
        {.metric = {"latency_p50_s", "s", LOWER_IS_BETTER,
                    "Half of the operations took at most this long (accurate to 0.4 %)."},
         .quantile = 0.5},
    [LATENCY_P90] = {.metric = {"latency_p90_s", "s", LOWER_IS_BETTER,
                                "90 % of such operations take at most this long, with 95 % "
                                "confidence (accurate to 0.4 %)."},
                     .quantile = 0.9,
                     .too_few = "a 90th percentile needs at least 64 operations"},
    [LATENCY_P95] = {.metric = {"latency_p95_s", "s", LOWER_IS_BETTER,
                                "95 % of such operations take at most this long, with 95 % "
                                "confidence (accurate to 0.4 %)."},
                     .quantile = 0.95,
                     .too_few = "a 95th percentile needs at least 130 operations"},
    [LATENCY_P99] = {.metric = {"latency_p99_s", "s", LOWER_IS_BETTER,
                                "99 % of such operations take at most this long, with 95 % "
                                "confidence (accurate to 0.4 %)."},
                     .quantile = 0.99,
                     .too_few = "a 99th percentile needs at least 662 operations"},
    [LATENCY_P99_9] = {.metric = {"latency_p99_9_s", "s", LOWER_IS_BETTER,
                                  "99.9 % of such operations take at most this long, with 95 % "
                                  "confidence (accurate to 0.4 %)."},
                       .quantile = 0.999,
                       .too_few = "a 99.9th percentile needs at least 6643 operations"},
    [LATENCY_MAX] = {.metric = {"latency_max_s", "s", LOWER_IS_BETTER,
                                "Time of the longest operation (exact)."}},
};

/* Times that are means of several operations do not have their tail. */
static bool has_latency(const struct run *run, const struct histogram *histogram,
                        enum latency which)
{
    const struct latency_row *row = &latencies[which];
    uint64_t count = histogram_count(histogram);
    return count > 0 &&
           (!row->too_few || (!run->times_are_means && count >= histogram_least(row->quantile)));
}

static double seen_latency_s(const struct histogram *histogram, enum latency which)
{
    const struct latency_row *row = &latencies[which];
    if (which == LATENCY_MEAN)
        return histogram_mean_ns(histogram) * 1e-9;
    if (which == LATENCY_MIN)
        return (double)atomic_load(&histogram->min_ns) * 1e-9;
    if (which == LATENCY_MAX)
        return (double)atomic_load(&histogram->max_ns) * 1e-9;
    return 1e-9 * (row->too_few ? histogram_upper_ns(histogram, row->quantile)
                                : histogram_quantile_ns(histogram, row->quantile));
}

/* Of a clock that is coarse the shortest times are 0, which they were not; their mean is right. */
static double latency_s(const struct run *run, const struct histogram *histogram,
                        enum latency which)
{
    if (!has_latency(run, histogram, which))
        return NAN;
    double shown_s = seen_latency_s(histogram, which);
    bool is_coarse = run->clock.resolution_s > MONOTONIC_COARSE_S;
    return is_coarse && which != LATENCY_MEAN && shown_s < run->clock.resolution_s ? NAN : shown_s;
}

/* ---- the table ------------------------------------------------------------------------------ */

/* Those of all operations; behind them the latencies, then the same again of each stream. */
enum whole {
    RATE,
    RATE_SUM,
    OPERATION_RATE,
    BYTE_RATE,
    CPU_SECONDS,
    OVERLAP_RATIO,
    WORK_DONE,
    WHOLES,
};

/* Of a loop that moves in bulk, no operation is counted or timed. */
static const bool in_bulk[WHOLES] = {
    [RATE] = true, [RATE_SUM] = true, [OVERLAP_RATIO] = true, [WORK_DONE] = true};

enum { STREAM_METRICS = 1 + LATENCIES }; /* operations a second, and the latencies */

static const struct metric wholes[WHOLES] = {
    [RATE_SUM] = {.direction = HIGHER_IS_BETTER,
                  .description =
                      "Each thread's work divided by its own time, summed over the threads."},
    [OPERATION_RATE] = {"operations_per_second", "operation/s", HIGHER_IS_BETTER,
                        "All operations divided by the time from the first thread's start to the "
                        "last thread's stop."},
    [BYTE_RATE] = {"bytes_per_second", "byte/s", HIGHER_IS_BETTER,
                   "Bytes of all operations divided by the time from the first thread's start to "
                   "the last thread's stop."},
    [CPU_SECONDS] = {"cpu_seconds_per_million_operations", "s", LOWER_IS_BETTER,
                     "CPU time (user and system) per million operations in the timed region, of "
                     "all threads of the program and of the threads that the kernel adds to it."},
    [OVERLAP_RATIO] = {"overlap_ratio", "1", HIGHER_IS_BETTER,
                       "Share of the makespan during which all threads ran."},
    [WORK_DONE] = {"work_operations", "operation", HIGHER_IS_BETTER, "Operations performed."},
};

static const struct metric work_bytes = {
    "work_bytes", "byte", HIGHER_IS_BETTER,
    "Bytes read and written; a fixed amount of work is rounded up to whole operations."};
static const struct metric arrived_bytes = {"work_bytes", "byte", HIGHER_IS_BETTER,
                                            "Bytes received in the timed region."};
static const struct metric counted_bytes = {"work_bytes", "byte", HIGHER_IS_BETTER,
                                            "Bytes that the naive figure counts."};
static const struct metric stream_rate = {"operations_per_second", "operation/s", HIGHER_IS_BETTER,
                                          "Operations of this kind only, divided by the time from "
                                          "the first thread's start to the last thread's stop."};

unsigned loop_metrics(const struct workload *workload)
{
    if (loop_in_bulk(workload))
        return WHOLES;
    unsigned streams = workload->streams ? loop_streams(workload) : 0;
    return WHOLES + LATENCIES + streams * STREAM_METRICS;
}

/* The stream that a metric is of, and which one it is there. */
static unsigned stream_of(unsigned which)
{
    return (which - WHOLES - LATENCIES) / STREAM_METRICS;
}

static unsigned place_in_stream(unsigned which)
{
    return (which - WHOLES - LATENCIES) % STREAM_METRICS;
}

static bool is_whole(unsigned which)
{
    return which < WHOLES + LATENCIES;
}

static void stream_metric(const struct workload *workload, unsigned which, struct metric *metric,
                          char *name, size_t size)
{
    unsigned place = place_in_stream(which);
    *metric = place == 0 ? stream_rate : latencies[place - 1].metric;
    snprintf(name, size, "%s_%s", workload->streams[stream_of(which)], metric->name);
    metric->name = name;
}

static const struct metric *work_done(const struct workload *workload)
{
    if (!rate_in_bytes(&workload->rate))
        return &wholes[WORK_DONE];
    if (loop_in_bulk(workload))
        return workload->naive ? &counted_bytes : &arrived_bytes;
    return &work_bytes;
}

static bool whole_metric(const struct workload *workload, enum whole which, struct metric *metric,
                         char *name, size_t size)
{
    const struct rate *rate = &workload->rate;
    if (which == RATE_SUM && (rate->time || rate->combine == COMBINE_MEDIAN))
        return false;
    if (loop_in_bulk(workload) && !in_bulk[which])
        return false;
    *metric = which == WORK_DONE ? *work_done(workload) : wholes[which];
    if (which == RATE)
        *metric = (struct metric){.description = rate->description};
    if (which == RATE || which == RATE_SUM) {
        snprintf(name, size, "%s%s", rate->name, which == RATE ? "" : "_sum");
        metric->name = name;
        metric->unit = rate->unit;
        metric->direction = rate->time ? LOWER_IS_BETTER : HIGHER_IS_BETTER;
        return true;
    }
    /* No second metric for what is the primary figure already. */
    return strcmp(metric->name, rate->name) != 0;
}

bool loop_metric(const struct workload *workload, unsigned which, struct metric *metric, char *name,
                 size_t size)
{
    if (which < WHOLES)
        return whole_metric(workload, which, metric, name, size);
    if (is_whole(which))
        *metric = latencies[which - WHOLES].metric;
    else
        stream_metric(workload, which, metric, name, size);
    return true;
}

/* ---- the values ----------------------------------------------------------------------------- */

struct measured {
    const struct run *run;
    const struct totals *totals;
    double operations, makespan_s;
    struct histogram all, stream; /* the one being reported */
};

static double primary(const struct measured *measured)
{
    if (loop_in_bulk(measured->run->workload))
        return measured->run->bulk_rate;
    if (measured->run->workload->rate.time)
        return latency_s(measured->run, &measured->all, LATENCY_P50);
    return measured->operations > 0 ? measured->totals->operations / measured->makespan_s : NAN;
}

static double whole_value(const struct measured *measured, enum whole which)
{
    const struct totals *totals = measured->totals;
    double block_bytes = loop_block_bytes(measured->run);
    double operations_per_second = measured->operations / measured->makespan_s;
    switch (which) {
    case RATE:
        return primary(measured);
    case RATE_SUM:
        return totals->wholes.count ? totals->wholes.sum : NAN;
    case OPERATION_RATE:
        return operations_per_second;
    case BYTE_RATE:
        return block_bytes > 0 ? operations_per_second * block_bytes : NAN;
    case CPU_SECONDS:
        return measured->run->trial->process_cpu_s / measured->operations * 1e6;
    case OVERLAP_RATIO:
        return fmax(0, totals->first_stop_s - totals->last_start_s) / measured->makespan_s;
    default:
        return totals->operations;
    }
}

static const char *whole_reason(const struct measured *measured, enum whole which)
{
    const struct workload *workload = measured->run->workload;
    if (loop_in_bulk(workload))
        return loop_no_rate(&measured->run->trial->workers[0]);
    if (which == RATE && measured->operations > 0)
        return BELOW_A_STEP;
    return which == BYTE_RATE ? "an operation moves no fixed number of bytes" : NOTHING_DONE;
}

static double stream_value(const struct measured *measured, unsigned which)
{
    unsigned place = place_in_stream(which);
    if (place > 0)
        return latency_s(measured->run, &measured->stream, place - 1);
    return (double)histogram_count(&measured->stream) / measured->makespan_s;
}

static const char *latency_reason(const struct run *run, const struct histogram *histogram,
                                  enum latency which)
{
    static const char ONLY_MEANS[] = "only means over several operations in a row are known";
    if (!histogram_count(histogram))
        return NOTHING_DONE;
    if (has_latency(run, histogram, which))
        return BELOW_A_STEP;
    return run->times_are_means ? ONLY_MEANS : latencies[which].too_few;
}

static void add(struct measured *measured, unsigned which, const char *name,
                struct summary *summary)
{
    if (which < WHOLES) {
        summary_add(summary, name, whole_value(measured, which), whole_reason(measured, which));
        return;
    }
    if (is_whole(which)) {
        const struct run *run = measured->run;
        summary_add(summary, name, latency_s(run, &measured->all, which - WHOLES),
                    latency_reason(run, &measured->all, which - WHOLES));
        return;
    }
    unsigned place = place_in_stream(which);
    if (place == 0) {
        histogram_clear(&measured->stream);
        loop_merge(measured->run->trial, stream_of(which), &measured->stream);
    }
    summary_add(summary, name, stream_value(measured, which),
                place ? latency_reason(measured->run, &measured->stream, place - 1) : NOTHING_DONE);
}

/* Where threads share a CPU by request, or with the workload's helpers, they wait for one another. */
static void fill_disturbance(const struct run *run, const struct totals *totals,
                             struct summary *summary)
{
    bool sharing = run->placement.oversubscribed || run->has_helpers;
    double kept_waiting_s = totals->wait_s - totals->turns * WAKE_UP_S;
    summary->cpu_ratio = 1 - (kept_waiting_s < 0 ? 0 : kept_waiting_s) / totals->wall_s;
    if (sharing)
        summary->cpu_ratio = NAN;
    summary->cpu_ratio_reason = sharing ? "they share a CPU and wait for one another"
                                        : "the kernel keeps no run-queue statistics";
    summary->clean_slice_ratio = NAN;
    summary->clean_slice_ratio_reason = "a loop has no slices";
    summary->harness_ratio = NAN;
    summary->harness_ratio_reason =
        "in a loop the harness's part cannot be separated from the workload's";
}

void loop_summarise(const struct trial *trial, const struct totals *totals, struct summary *summary)
{
    const struct run *run = trial->run;
    struct measured measured = {.run = run,
                                .totals = totals,
                                .operations = totals->operations / (double)run->unit_operations,
                                .makespan_s = totals->last_stop_s - totals->first_start_s};
    histogram_clear(&measured.all);
    loop_merge_all(trial, &measured.all);
    summary->basis = "whole_run";
    for (unsigned which = 0; which < loop_metrics(run->workload); which++) {
        struct metric metric;
        char name[64];
        if (loop_metric(run->workload, which, &metric, name, sizeof name))
            add(&measured, which, metric.name, summary);
    }
    fill_disturbance(run, totals, summary);
}
