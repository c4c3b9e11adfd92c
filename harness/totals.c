#include "totals.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void column_add(struct column *column, double value)
{
    if (!isfinite(value))
        return;
    column->values[column->count++] = value;
    column->sum += value;
}

double column_median(const struct column *column)
{
    return column->count ? median(column->values, column->count) : NAN;
}

static void add_times(struct totals *totals, const struct worker *worker)
{
    totals->first_start_s = fmin(totals->first_start_s, worker->start_s);
    totals->last_start_s = fmax(totals->last_start_s, worker->start_s);
    totals->first_stop_s = fmin(totals->first_stop_s, worker->stop_s);
    totals->last_stop_s = fmax(totals->last_stop_s, worker->stop_s);
    totals->wall_s += worker->watched_s;
    totals->cpu_s += worker->used.cpu_s;
    totals->wait_s += worker->used.wait_s;
    totals->turns += worker->used.turns;
    totals->step_cpu_s += worker->step_cpu_s;
    totals->measured_s += worker->measured_s;
    totals->involuntary_switches += worker->used.involuntary_switches;
}

static void add_figures(struct totals *totals, const struct worker *worker)
{
    const struct thread_figures *figures = &worker->figures;
    totals->operations += (double)worker->progress.operations;
    totals->slices += worker->progress.slices;
    totals->clean_slices += worker->progress.clean_slices;
    column_add(&totals->wholes, figures->rate_whole);
    column_add(&totals->cleans, figures->rate_clean);
    column_add(&totals->bests, figures->rate_best);
    column_add(&totals->clocks, figures->clock_hertz);
    column_add(&totals->ratios, figures->operations_per_cycle);
}

struct totals totals_collect(const struct trial *trial)
{
    struct totals totals = {.first_start_s = INFINITY,
                            .last_start_s = -INFINITY,
                            .first_stop_s = INFINITY,
                            .last_stop_s = -INFINITY};
    struct column *columns[] = {&totals.wholes, &totals.cleans, &totals.bests, &totals.clocks,
                                &totals.ratios};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        columns[i]->values = calloc(trial->run->threads, sizeof(double));
        if (!columns[i]->values)
            abort();
    }
    for (unsigned i = 0; i < trial->run->threads; i++) {
        if (trial->workers[i].background)
            continue;
        add_times(&totals, &trial->workers[i]);
        add_figures(&totals, &trial->workers[i]);
    }
    return totals;
}

void totals_free(struct totals *totals)
{
    free(totals->wholes.values);
    free(totals->cleans.values);
    free(totals->bests.values);
    free(totals->clocks.values);
    free(totals->ratios.values);
}

void summary_add(struct summary *summary, const char *name, double value, const char *reason)
{
    assert(summary->count < SUMMARY_METRICS_MAX);
    struct figure *figure = &summary->metrics[summary->count++];
    snprintf(figure->name, sizeof figure->name, "%s", name);
    figure->value = value;
    figure->reason = reason;
}
