/* From what the threads recorded to the figures of the trial. */
#ifndef HOSTBENCH_SUMMARY_H
#define HOSTBENCH_SUMMARY_H

#include "totals.h"

/* The metrics that a workload has beside those of its own, one after another from 0, the primary
 * one: the table and the end event both use these. */
unsigned harness_metrics(const struct workload *workload);
/* Describes one of them; false when the workload does not have it. The name is held by `name`. */
bool harness_metric(const struct workload *workload, unsigned which, struct metric *metric,
                    char *name, size_t size);

void summarise(const struct trial *trial, struct summary *summary);

#endif
