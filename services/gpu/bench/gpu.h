/* The life of a trial on one device: which device, opened and closed, and what is reported of it. */
#ifndef GPU_BENCH_GPU_H
#define GPU_BENCH_GPU_H

#include "job.h"

/* For the rows of the table: every workload has these; bulk ones have windows_loop() and so on too.
 * The device is opened and closed by the one thread that works with it: drivers take their time, and
 * the main thread is to hear when the run shall end. */
unsigned gpu_job_threads(const struct run *run);
const char *gpu_job_unsupported(const struct run *run);
const char *gpu_job_unconfirmed(const struct run *run);
int gpu_job_check(struct run *run);
int gpu_job_open(struct run *run);
void gpu_job_close(struct run *run);
int gpu_job_setup(struct thread *thread);
void gpu_job_teardown(struct thread *thread);
size_t gpu_job_observe(struct run *run, struct observed *figures, size_t most);

/* The kernel that is measured: its name and what it was made from become a fact, and a warning where
 * the driver compiled it. Released by the caller. */
int gpu_job_kernel(struct gpu_job *job, const char *name, struct gpu_kernel **kernel);

#endif
