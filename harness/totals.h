/* What the threads measured, added up: what the figures of a trial are made from. */
#ifndef HOSTBENCH_TOTALS_H
#define HOSTBENCH_TOTALS_H

#include "run.h"

/* One figure of each thread that has it. */
struct column {
    double *values;
    size_t count;
    double sum;
};

/* Collected over the threads. */
struct totals {
    double first_start_s, last_start_s, first_stop_s, last_stop_s;
    double wall_s, cpu_s, wait_s, turns, step_cpu_s, measured_s;
    double operations; /* a week on hundreds of cores is beyond 2^64 */
    struct column wholes, cleans, bests, clocks, ratios;
    uint64_t slices, clean_slices, involuntary_switches;
};

double column_median(const struct column *column);
/* Of the measured threads: a background thread is no part of any figure. To be freed. */
struct totals totals_collect(const struct trial *trial);
void totals_free(struct totals *totals);

#endif
