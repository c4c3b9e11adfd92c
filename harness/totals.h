/* What the threads measured, added up, and the figures of the trial that are made from it. */
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

enum { SUMMARY_METRICS_MAX = 96 };

struct figure {
    char name[64];
    double value;
    const char *reason; /* why it is NaN */
};

struct summary {
    size_t count;
    struct figure metrics[SUMMARY_METRICS_MAX];
    const char *basis;
    double first_start_s; /* of the monotonic clock */
    double cpu_ratio, wait_s, clean_slice_ratio, harness_ratio, elapsed_s;
    const char *cpu_ratio_reason, *clean_slice_ratio_reason, *harness_ratio_reason;
    uint64_t involuntary_switches;
};

void summary_add(struct summary *summary, const char *name, double value, const char *reason);

#endif
