/* The timed region of one thread: its kernel in slices of a few milliseconds, each held against
 * the scheduler's own counters. */
#ifndef HOSTBENCH_SLICES_H
#define HOSTBENCH_SLICES_H

#include "run.h"

/* Memory for the records. 0, or -1 without memory. */
int slices_allocate(struct worker *worker);
void slices_free(struct worker *worker);
/* Runs the kernel until the warm-up is over and the batch of one slice is known. */
int slices_warm_up(struct worker *worker);
/* 0 or an exit_code. */
int slices_run(struct worker *worker);
/* From the records to the thread's figures. */
struct thread_figures slices_figures(struct worker *worker);

#endif
