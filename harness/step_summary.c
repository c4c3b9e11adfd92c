#include "step_summary.h"

#include <math.h>
#include <stdio.h>

/* A step workload's metrics beside those of its own. */
enum step_metric {
    RATE,
    RATE_MAKESPAN,
    RATE_SUM,
    TIME_MEAN,
    RATE_BEST,
    TIME_EMPTY,
    TIME_NET,
    OPERATIONS_PER_CYCLE,
    CLOCK_HERTZ,
    EMPTY_LOOP_RATIO,
    OVERLAP_RATIO,
    CLEAN_SLICE_RATIO,
    WORK_DONE,
    STEP_METRICS,
};

/* Fewer clean slices say nothing about the undisturbed rate. */
static const double MIN_CLEAN_RATIO = 0.1;

static const char *const suffixes[STEP_METRICS] = {
    [RATE_MAKESPAN] = "_makespan", [RATE_SUM] = "_sum",     [TIME_MEAN] = "_mean",
    [RATE_BEST] = "_best",         [TIME_EMPTY] = "_empty", [TIME_NET] = "_net"};

static const struct metric fixed[STEP_METRICS] = {
    [RATE_MAKESPAN] = {.description = "All work divided by the time from the first thread's start "
                                      "to the last thread's stop: the rate for strong scaling."},
    [RATE_SUM] = {.description =
                      "Each thread's work divided by its own time, summed over the threads."},
    [TIME_MEAN] = {.description = "Mean over the whole run, disturbances included: the time of all "
                                  "threads divided by their operations."},
    [RATE_BEST] = {.description = "Each thread's best clean slice, summed over the threads."},
    [TIME_EMPTY] = {.description =
                        "Time of the empty loop (counter, index and branch) per operation."},
    [TIME_NET] = {.description = "The figure less the time of the empty loop. The two overlap, so "
                                 "this is a lower bound of the time of one operation."},
    [OPERATIONS_PER_CYCLE] =
        {"operations_per_cycle", "operation/cycle", HIGHER_IS_BETTER,
         "Operations that one thread completes per core cycle: the rate of each clean slice "
         "divided by the core clock measured right after it; median."},
    [CLOCK_HERTZ] = {"clock_hertz", "Hz", HIGHER_IS_BETTER,
                     "Core clock during the clean slices. A chain of dependent additions measures "
                     "it right after each slice, with the same vector frequency licence in force."},
    [EMPTY_LOOP_RATIO] =
        {"empty_loop_ratio", "1", LOWER_IS_BETTER,
         "Time of an empty loop (counter and branch) divided by the time of the kernel, for the "
         "same number of iterations. The two overlap, so the program never subtracts it."},
    [OVERLAP_RATIO] = {"overlap_ratio", "1", HIGHER_IS_BETTER,
                       "Share of the makespan during which all threads ran."},
    [CLEAN_SLICE_RATIO] = {"clean_slice_ratio", "1", HIGHER_IS_BETTER,
                           "Share of the slices that ran without interruption."},
    [WORK_DONE] =
        {"work_operations", "operation", HIGHER_IS_BETTER,
         "Operations performed; a fixed amount of work is rounded up to whole loop iterations."},
};

static const struct metric work_bytes = {"work_bytes", "byte", HIGHER_IS_BETTER,
                                         "Bytes read and written, as the workload counts them; a "
                                         "fixed amount of work is rounded up to whole units."};
static const char TIME_EMPTY_RATIO[] =
    "Time of the empty loop (counter, index and branch) divided by the time of the kernel, for the "
    "same number of iterations.";

static bool has_metric(const struct workload *workload, enum step_metric which)
{
    const struct rate *rate = &workload->rate;
    switch (which) {
    case RATE_MAKESPAN:
    case RATE_SUM:
        return rate->combine == COMBINE_SUM;
    case CLOCK_HERTZ:
    case OPERATIONS_PER_CYCLE:
        return workload->clock_hertz;
    case EMPTY_LOOP_RATIO:
        return workload->empty_loop;
    case TIME_MEAN:
        return rate->time;
    case TIME_EMPTY:
    case TIME_NET:
        return rate->time && workload->empty_loop;
    default:
        return true;
    }
}

/* What the workload's rate makes of the words that stand for all. */
static void word_for(const struct rate *rate, enum step_metric which, struct metric *metric)
{
    if (which == RATE)
        metric->description = rate->description;
    if (which == RATE_BEST && rate->combine == COMBINE_MEDIAN)
        metric->description = "Each thread's best clean slice: median over the threads.";
    if (which == EMPTY_LOOP_RATIO && rate->time)
        metric->description = TIME_EMPTY_RATIO;
    if (which == WORK_DONE && rate_in_bytes(rate))
        *metric = work_bytes;
}

unsigned step_metrics(void)
{
    return STEP_METRICS;
}

bool step_metric(const struct workload *workload, unsigned which, struct metric *metric, char *name,
                 size_t size)
{
    const struct rate *rate = &workload->rate;
    bool rates = which == RATE || suffixes[which];
    if (!has_metric(workload, which))
        return false;
    *metric = fixed[which];
    word_for(rate, which, metric);
    snprintf(name, size, "%s%s", rates ? rate->name : metric->name,
             suffixes[which] ? suffixes[which] : "");
    metric->name = name;
    if (rates) {
        metric->unit = rate->unit;
        metric->direction = rate->time ? LOWER_IS_BETTER : HIGHER_IS_BETTER;
    }
    return true;
}

/* Whether the figure of the trial can stand on clean slices: every thread has some, and they are
 * not a lucky few. A thread that shares its CPU runs at full speed in its clean slices and not at
 * all in between: adding those up would count the CPU twice. */
static bool is_clean(const struct trial *trial, const struct totals *totals)
{
    const struct run *run = trial->run;
    bool sharing = run->placement.oversubscribed && run->workload->rate.combine == COMBINE_SUM;
    return !sharing && totals->cleans.count == trial->measured &&
           (double)totals->clean_slices >= MIN_CLEAN_RATIO * (double)totals->slices;
}

/* A team does other things between its steps, all threads at once. */
static double makespan_s(const struct trial *trial, const struct totals *totals)
{
    return trial->run->workload->team ? trial->workers[0].measured_s
                                      : totals->last_stop_s - totals->first_start_s;
}

static double total_rate(const struct trial *trial, const struct totals *totals)
{
    bool clean = is_clean(trial, totals) && !trial->run->placement.oversubscribed;
    return clean ? totals->cleans.sum : totals->operations / makespan_s(trial, totals);
}

static double primary_rate(const struct trial *trial, const struct totals *totals)
{
    if (trial->run->workload->rate.combine == COMBINE_SUM)
        return total_rate(trial, totals);
    return column_median(is_clean(trial, totals) ? &totals->cleans : &totals->wholes);
}

/* NaN unless every thread has a best slice: a sum over some of them would pass for all. */
static double best_rate(const struct trial *trial, const struct totals *totals)
{
    if (totals->bests.count < trial->measured)
        return NAN;
    if (trial->run->workload->rate.combine == COMBINE_MEDIAN)
        return column_median(&totals->bests);
    return trial->run->placement.oversubscribed ? NAN : totals->bests.sum;
}

/* Threads were timed by their rates; a time is the inverse of the rate. */
static void fill_times(const struct trial *trial, const struct totals *totals,
                       double values[STEP_METRICS])
{
    values[RATE] = 1 / values[RATE];
    values[RATE_BEST] = 1 / values[RATE_BEST];
    values[TIME_MEAN] = totals->measured_s / totals->operations;
    values[TIME_EMPTY] = trial->empty_loop_s;
    values[TIME_NET] = values[RATE] - trial->empty_loop_s;
}

static void fill_values(const struct trial *trial, const struct totals *totals,
                        double values[STEP_METRICS])
{
    values[RATE] = primary_rate(trial, totals);
    values[RATE_MAKESPAN] = totals->operations / makespan_s(trial, totals);
    values[RATE_SUM] = trial->run->placement.oversubscribed ? NAN : totals->wholes.sum;
    values[RATE_BEST] = best_rate(trial, totals);
    values[OPERATIONS_PER_CYCLE] = column_median(&totals->ratios);
    values[CLOCK_HERTZ] = column_median(&totals->clocks);
    values[EMPTY_LOOP_RATIO] = trial->empty_loop_ratio;
    values[OVERLAP_RATIO] = fmax(0, totals->first_stop_s - totals->last_start_s) /
                            (totals->last_stop_s - totals->first_start_s);
    values[CLEAN_SLICE_RATIO] = (double)totals->clean_slices / (double)totals->slices;
    values[WORK_DONE] = totals->operations;
    if (trial->run->workload->rate.time)
        fill_times(trial, totals, values);
}

static const char *reason_of(enum step_metric which, const struct run *run)
{
    bool sums = run->workload->rate.combine == COMBINE_SUM;
    if ((which == RATE_BEST || which == RATE_SUM) && sums && run->placement.oversubscribed)
        return "threads share a CPU: rates of different moments do not add up";
    if (which == RATE_BEST)
        return "a thread had no clean slice";
    if (which == EMPTY_LOOP_RATIO)
        return "the first thread had no clean slice";
    if (which == OPERATIONS_PER_CYCLE)
        return "too few slices were clean";
    if (which == CLOCK_HERTZ && run_clock_coarse(run))
        return "CLOCK_MONOTONIC moves in steps that are too coarse to time a chain";
    if (which == CLOCK_HERTZ)
        return run->workload->team
                   ? "no two clock chains in a row agreed: other processes used the CPU"
                   : "no two clock chains agreed: the trial was too short, or other processes used "
                     "the CPU";
    return "nothing was measured";
}

double run_rate(const struct run *run)
{
    struct totals totals = totals_collect(run->trial);
    double rate = total_rate(run->trial, &totals);
    totals_free(&totals);
    return rate;
}

double run_background_rate(const struct run *run)
{
    double rate = 0;
    for (unsigned i = 0; i < run->threads; i++) {
        const struct worker *worker = &run->trial->workers[i];
        if (worker->background)
            rate += (double)worker->progress.operations / worker->measured_s;
    }
    return rate / (double)run->unit_operations;
}

double run_background_cpu_ratio(const struct run *run)
{
    double cpu_s = 0, wall_s = 0;
    for (unsigned i = 0; i < run->threads; i++) {
        const struct worker *worker = &run->trial->workers[i];
        if (!worker->background)
            continue;
        cpu_s += worker->used.cpu_s;
        wall_s += worker->watched_s;
    }
    return cpu_s / wall_s;
}

void step_summarise(const struct trial *trial, const struct totals *totals, struct summary *summary)
{
    const struct run *run = trial->run;
    double values[STEP_METRICS];
    fill_values(trial, totals, values);
    for (enum step_metric which = 0; which < STEP_METRICS; which++) {
        struct metric metric;
        char name[64];
        if (step_metric(run->workload, which, &metric, name, sizeof name))
            summary_add(summary, name, values[which], reason_of(which, run));
    }
    summary->basis = is_clean(trial, totals) ? "clean_slices" : "whole_run";
    summary->cpu_ratio = totals->cpu_s / totals->wall_s;
    summary->clean_slice_ratio = values[CLEAN_SLICE_RATIO];
    summary->harness_ratio =
        (totals->cpu_s - totals->step_cpu_s + trial->reporter_cpu_s) / totals->cpu_s;
    summary->cpu_ratio_reason = summary->harness_ratio_reason = "no thread ran long enough";
    summary->clean_slice_ratio_reason = "no slice was measured";
}
