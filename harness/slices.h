/* The timed region of one thread: its kernel in slices of a few milliseconds, each held against
 * the scheduler's own counters. */
#ifndef HOSTBENCH_SLICES_H
#define HOSTBENCH_SLICES_H

#include "run.h"

/* Memory for the records. 0, or -1 without memory. */
int slices_allocate(struct worker *worker);
void slices_free(struct worker *worker);
/* Aims the next batch at worker->step_s from what the last one took. */
void slices_adapt_batch(struct worker *worker, double taken_s);
/* Units of the fixed total work that the run has to do; UINT64_MAX: time decides. */
uint64_t slices_units_of_work(const struct run *run);
/* … and this thread. */
uint64_t slices_share_of_work(const struct worker *worker);
/* The timed region of this thread, from and to the reading of its counters. */
struct thread_usage slices_begin(struct worker *worker);
void slices_end(struct worker *worker, const struct thread_usage *before);
/* Runs the kernel until the warm-up is over and the batch of one slice is known. */
int slices_warm_up(struct worker *worker);
/* The core clock by a chain of this thread; NaN: the host's clock is too coarse for it. */
double slices_clock_hertz(struct worker *worker);
/* 0 or an exit_code. */
int slices_run(struct worker *worker);
/* Of a background thread: works until the measured ones are through. 0 or an exit_code. */
int slices_run_background(struct worker *worker);
/* What slices_allocate() takes for a thread, in bytes. */
size_t slices_bytes(const struct run *run);
/* From the records to the thread's figures. */
struct thread_figures slices_figures(struct worker *worker);

#endif
