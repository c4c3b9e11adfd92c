/* From what the threads recorded to the figures of the trial. */
#ifndef HOSTBENCH_SUMMARY_H
#define HOSTBENCH_SUMMARY_H

#include "run.h"

enum { SUMMARY_METRICS_MAX = 96 };

/* The metrics that a workload has beside those of its own, one after another from 0, the primary
 * one: the table and the end event both use these. */
unsigned harness_metrics(const struct workload *workload);
/* Describes one of them; false when the workload does not have it. The name is held by `name`. */
bool harness_metric(const struct workload *workload, unsigned which, struct metric *metric,
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
    const char *cpu_ratio_reason, *clean_slice_ratio_reason, *harness_ratio_reason;
    uint64_t involuntary_switches;
};

void summary_add(struct summary *summary, const char *name, double value, const char *reason);

void summarise(const struct trial *trial, struct summary *summary);

#endif
