/* What a device's own counters say about its core clock: kernels read them at their begin and their
 * end and leave them in a record, one a launch. CUDA only; elsewhere the records stay empty. */
#ifndef GPU_BENCH_CLOCKS_H
#define GPU_BENCH_CLOCKS_H

#include "device.h"

struct clocks;

struct gpu_job;

/* `each_records`: every launch of the kernel leaves a record, so one without shows that the device did
 * not do it. Kernels whose groups record on one multiprocessor alone may have no group there. */
int clocks_open(struct gpu_job *job, bool each_records);
/* Without clocks_open() there are none: this and what a phase calls do nothing. */
void clocks_close(struct gpu_job *job);
/* For a launch: the array of records, and the slot of the next one, which is made empty where it was
 * used before. */
const struct gpu_memory *clocks_memory(const struct gpu_job *job);
int clocks_next(struct gpu_job *job, uint32_t *slot);
/* The timed phase begins: what was recorded before is no part of the figure. */
void clocks_begin(struct gpu_job *job);
/* Once the device is idle: reads the records. EXIT_WRONG: a launch that must has left none. */
int clocks_end(struct gpu_job *job);
/* Median over the launches of the timed phase that are still recorded, in hertz; NaN: none is, or they
 * were so short that the device's clock is too coarse for them. */
double clocks_hertz(const struct gpu_job *job);

#endif
