/* The figures of a workload with a loop of its own. */
#ifndef HOSTBENCH_LOOP_SUMMARY_H
#define HOSTBENCH_LOOP_SUMMARY_H

#include "totals.h"

/* As harness_metrics() and harness_metric(), of loops. */
unsigned loop_metrics(const struct workload *workload);
bool loop_metric(const struct workload *workload, unsigned which, struct metric *metric, char *name,
                 size_t size);
void loop_summarise(const struct trial *trial, const struct totals *totals,
                    struct summary *summary);

#endif
