/* From what the threads recorded to the figures of the trial. */
#ifndef HOSTBENCH_SUMMARY_H
#define HOSTBENCH_SUMMARY_H

#include "run.h"

enum { SUMMARY_METRICS_MAX = 32 };

/* A step workload's metrics beside those of its own: the table and the end event both use these. */
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

/* Describes one of them for this workload; false when the workload does not have it. The name is
 * held by `name`. */
bool step_metric(const struct workload *workload, enum step_metric which, struct metric *metric,
                 char *name, size_t size);

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
    uint64_t involuntary_switches;
};

void summarise(const struct trial *trial, struct summary *summary);

#endif
