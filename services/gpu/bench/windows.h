/* The measuring engine: keeps a device busy with equal pieces of work (launches of a kernel, copies),
 * a few of them queued ahead, and makes windows of at least 100 ms of them. A window's rate is its
 * work over the time that the device's own clock says it was at work. */
#ifndef GPU_BENCH_WINDOWS_H
#define GPU_BENCH_WINDOWS_H

#include "job.h"

/* Events and records for job->work, and the size of its pieces by trying. In gpu_job_open(), behind
 * the kind's own. */
int windows_open(struct gpu_job *job);
/* Gives back what is the backend's. */
void windows_close(struct gpu_job *job);
/* … and the rest, after the last call of windows_moved(). */
void windows_free(struct gpu_job *job);
/* The functions of a bulk loop, for the rows of the table. */
int windows_loop(struct thread *thread);
uint64_t windows_moved(const struct thread *thread, double *at_s);
int windows_prepare(struct thread *thread); /* verifies what the ramp has left */
int windows_verify(struct thread *thread, uint64_t units);
void windows_finish(struct thread *thread);
/* Since the trial began, of a lane: pieces that were queued, and their sizes added up. What verify()
 * may hold what it finds against. */
uint64_t windows_pieces(const struct gpu_job *job, unsigned lane);
uint64_t windows_total(const struct gpu_job *job, unsigned lane);
/* The size of the pieces that are queued next: calibrated, then longer where the device has become
 * faster. */
uint64_t windows_size(const struct gpu_job *job);

#endif
