#include "summary.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Fewer clean slices than this say nothing about the undisturbed rate. */
static const uint64_t MIN_CLEAN_SLICES = 3;
static const double MIN_CLEAN_RATIO = 0.1;

static const char *const suffixes[STEP_METRICS] = {
    [RATE_MAKESPAN] = "_makespan", [RATE_SUM] = "_sum", [RATE_BEST] = "_best"};

static const struct metric fixed[STEP_METRICS] = {
    [RATE_MAKESPAN] = {.description = "All work over the time from the first start to the last "
                                      "stop: what strong scaling reports."},
    [RATE_SUM] = {.description = "Sum over the threads of own work over own time."},
    [RATE_BEST] = {.description = "Sum over the threads of the best clean slice."},
    [OPERATIONS_PER_CYCLE] = {"operations_per_cycle", "operation/cycle", HIGHER_IS_BETTER,
                              "Operations of one thread in one core cycle: each clean slice over "
                              "the clock chain right behind it; median."},
    [CLOCK_HERTZ] = {"clock_hertz", "Hz", HIGHER_IS_BETTER,
                     "Core clock that the clean slices ran at, from chains of dependent additions "
                     "right behind them under the same vector licence."},
    [EMPTY_LOOP_RATIO] = {"empty_loop_ratio", "1", LOWER_IS_BETTER,
                          "Time of the bare loop (counter and branch) over the time of the kernel "
                          "with as many iterations; the two overlap, so it is never subtracted."},
    [OVERLAP_RATIO] = {"overlap_ratio", "1", HIGHER_IS_BETTER,
                       "Share of the makespan in which all threads ran."},
    [CLEAN_SLICE_RATIO] = {"clean_slice_ratio", "1", HIGHER_IS_BETTER,
                           "Share of slices that nothing interrupted."},
    [WORK_OPERATIONS] = {"work_operations", "operation", HIGHER_IS_BETTER,
                         "Operations really done; a fixed work is rounded up to whole loop "
                         "iterations."},
};

bool step_metric(const struct workload *workload, enum step_metric which, struct metric *metric,
                 char *name, size_t size)
{
    const struct rate *rate = &workload->rate;
    bool rates = which == RATE || suffixes[which];
    if ((which == RATE_MAKESPAN || which == RATE_SUM) && rate->combine != COMBINE_SUM)
        return false;
    if ((which == CLOCK_HERTZ || which == OPERATIONS_PER_CYCLE) && !workload->clock_chain)
        return false;
    if (which == EMPTY_LOOP_RATIO && !workload->empty_loop)
        return false;
    *metric = fixed[which];
    snprintf(name, size, "%s%s", rates ? rate->name : metric->name,
             suffixes[which] ? suffixes[which] : "");
    metric->name = name;
    if (rates) {
        metric->unit = rate->unit;
        metric->direction = HIGHER_IS_BETTER;
        if (which == RATE)
            metric->description = rate->description;
    }
    return true;
}

static double own_time_s(const struct worker *worker)
{
    return worker->stop_s - worker->start_s;
}

static double whole_run_rate(const struct worker *worker)
{
    return (double)worker->progress.operations / own_time_s(worker);
}

struct thread_figures summary_of_thread(const struct trial *trial, struct worker *worker)
{
    const struct progress *progress = &worker->progress;
    bool sharing =
        trial->run->placement.oversubscribed && trial->run->workload->rate.combine == COMBINE_SUM;
    struct thread_figures figures = {
        .rate = whole_run_rate(worker), .clock_hertz = NAN, .operations_per_cycle = NAN};
    /* A thread that shares its CPU runs at full speed in its clean slices and not at all in
     * between: adding those up would count the CPU twice. */
    figures.clean = !sharing && worker->rates.kept >= MIN_CLEAN_SLICES &&
                    (double)progress->clean_slices >= MIN_CLEAN_RATIO * (double)progress->slices;
    if (figures.clean)
        figures.rate = median(worker->rates.values, worker->rates.kept);
    if (worker->clocks.kept)
        figures.clock_hertz = median(worker->clocks.values, worker->clocks.kept);
    if (worker->ratios.kept < MIN_CLEAN_SLICES)
        return figures;
    figures.operations_per_cycle = median(worker->ratios.values, worker->ratios.kept);
    /* The clock that belongs to the rate: a core that changes its clock during the trial has two
     * medians, and they need not be of the same moments. */
    if (figures.clean)
        figures.clock_hertz = figures.rate / figures.operations_per_cycle;
    return figures;
}

/* Collected over the threads. */
struct totals {
    double first_start_s, last_start_s, first_stop_s, last_stop_s;
    double wall_s, cpu_s, wait_s, step_cpu_s;
    double rate, rate_sum, rate_best;
    double *rates, *clocks, *ratios; /* one a thread */
    size_t clocks_known, ratios_known;
    uint64_t operations, slices, clean_slices, involuntary_switches;
    bool clean;
};

static void add_times(struct totals *totals, const struct worker *worker)
{
    totals->first_start_s = fmin(totals->first_start_s, worker->start_s);
    totals->last_start_s = fmax(totals->last_start_s, worker->start_s);
    totals->first_stop_s = fmin(totals->first_stop_s, worker->stop_s);
    totals->last_stop_s = fmax(totals->last_stop_s, worker->stop_s);
    totals->wall_s += own_time_s(worker);
    totals->cpu_s += worker->after.cpu_s - worker->before.cpu_s;
    totals->wait_s += worker->after.wait_s - worker->before.wait_s;
    totals->step_cpu_s += worker->step_cpu_s;
    totals->involuntary_switches +=
        worker->after.involuntary_switches - worker->before.involuntary_switches;
}

static struct totals collect(const struct trial *trial)
{
    unsigned threads = trial->run->threads;
    struct totals totals = {.first_start_s = INFINITY,
                            .last_start_s = -INFINITY,
                            .first_stop_s = INFINITY,
                            .last_stop_s = -INFINITY,
                            .clean = true,
                            .rates = calloc(threads, sizeof(double)),
                            .clocks = calloc(threads, sizeof(double)),
                            .ratios = calloc(threads, sizeof(double))};
    if (!totals.rates || !totals.clocks || !totals.ratios)
        abort();
    for (unsigned i = 0; i < threads; i++) {
        struct worker *worker = &trial->workers[i];
        struct thread_figures figures = summary_of_thread(trial, worker);
        add_times(&totals, worker);
        totals.clean &= figures.clean;
        totals.rate += figures.rate;
        totals.rates[i] = figures.rate;
        totals.rate_sum += whole_run_rate(worker);
        totals.rate_best += worker->best_rate;
        if (isfinite(figures.clock_hertz))
            totals.clocks[totals.clocks_known++] = figures.clock_hertz;
        if (isfinite(figures.operations_per_cycle))
            totals.ratios[totals.ratios_known++] = figures.operations_per_cycle;
        totals.operations += worker->progress.operations;
        totals.slices += worker->progress.slices;
        totals.clean_slices += worker->progress.clean_slices;
    }
    return totals;
}

static double primary_rate(const struct trial *trial, const struct totals *totals,
                           double makespan_s)
{
    if (trial->run->workload->rate.combine == COMBINE_MEDIAN)
        return median(totals->rates, trial->run->threads);
    return totals->clean ? totals->rate : (double)totals->operations / makespan_s;
}

static void fill_values(const struct trial *trial, const struct totals *totals,
                        double values[STEP_METRICS])
{
    double makespan_s = totals->last_stop_s - totals->first_start_s;
    bool single = trial->run->workload->rate.combine == COMBINE_MEDIAN;
    bool sharing = trial->run->placement.oversubscribed && !single;
    double best = single ? totals->rate_best / trial->run->threads : totals->rate_best;
    values[RATE] = primary_rate(trial, totals, makespan_s);
    values[RATE_MAKESPAN] = (double)totals->operations / makespan_s;
    values[RATE_SUM] = sharing ? NAN : totals->rate_sum;
    values[RATE_BEST] = sharing || best <= 0 ? NAN : best;
    values[OPERATIONS_PER_CYCLE] =
        totals->ratios_known ? median(totals->ratios, totals->ratios_known) : NAN;
    values[CLOCK_HERTZ] = totals->clocks_known ? median(totals->clocks, totals->clocks_known) : NAN;
    values[EMPTY_LOOP_RATIO] = trial->empty_loop_ratio;
    values[OVERLAP_RATIO] = fmax(0, totals->first_stop_s - totals->last_start_s) / makespan_s;
    values[CLEAN_SLICE_RATIO] = (double)totals->clean_slices / (double)totals->slices;
    values[WORK_OPERATIONS] = (double)totals->operations;
}

static const char *reason_of(enum step_metric which, const struct run *run)
{
    if ((which == RATE_BEST || which == RATE_SUM) && run->placement.oversubscribed)
        return "threads share a CPU: rates of different moments do not add up";
    if (which == RATE_BEST)
        return "no slice was clean";
    if (which == OPERATIONS_PER_CYCLE)
        return "too few slices were clean";
    if (which == CLOCK_HERTZ)
        return "the trial was too short for a clock chain";
    return "nothing was measured";
}

static void add_figure(struct summary *summary, const char *name, double value, const char *reason)
{
    struct figure *figure = &summary->metrics[summary->count++];
    snprintf(figure->name, sizeof figure->name, "%s", name);
    figure->value = value;
    figure->reason = reason;
}

void summarise(const struct trial *trial, struct summary *summary)
{
    const struct run *run = trial->run;
    struct totals totals = collect(trial);
    double values[STEP_METRICS];
    *summary = (struct summary){.basis = totals.clean ? "clean_slices" : "whole_run"};
    fill_values(trial, &totals, values);
    for (enum step_metric which = 0; which < STEP_METRICS; which++) {
        struct metric metric;
        char name[64];
        if (step_metric(run->workload, which, &metric, name, sizeof name))
            add_figure(summary, name, values[which], reason_of(which, run));
    }
    for (size_t i = 0; i < run->metric_count; i++)
        add_figure(summary, run->metrics[i].name, run->metrics[i].value,
                   "the workload could not measure it");
    summary->cpu_ratio = totals.cpu_s / totals.wall_s;
    summary->wait_s = totals.wait_s;
    summary->involuntary_switches = totals.involuntary_switches;
    summary->clean_slice_ratio = values[CLEAN_SLICE_RATIO];
    summary->first_start_s = totals.first_start_s;
    summary->elapsed_s = totals.last_stop_s - totals.first_start_s;
    summary->harness_ratio =
        (totals.cpu_s - totals.step_cpu_s + trial->reporter_cpu_s) / totals.cpu_s;
    free(totals.rates);
    free(totals.clocks);
    free(totals.ratios);
}
