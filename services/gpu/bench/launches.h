/* launch_latency: what it takes to have a device begin and end a kernel that does nothing. */
#ifndef GPU_BENCH_LAUNCHES_H
#define GPU_BENCH_LAUNCHES_H

#include "gpu.h"

extern const struct gpu_kind launch_kind;

/* The functions of its loop, for the row of the table. */
int launches_loop(struct thread *thread);
int launches_prepare(struct thread *thread);
int launches_verify(struct thread *thread, uint64_t units);
void launches_finish(struct thread *thread);

#endif
