/* The figures of a workload whose work comes in slices. */
#ifndef HOSTBENCH_STEP_SUMMARY_H
#define HOSTBENCH_STEP_SUMMARY_H

#include "totals.h"

/* As harness_metrics() and harness_metric(), of steps. */
unsigned step_metrics(void);
bool step_metric(const struct workload *workload, unsigned which, struct metric *metric, char *name,
                 size_t size);
void step_summarise(const struct trial *trial, const struct totals *totals,
                    struct summary *summary);

#endif
