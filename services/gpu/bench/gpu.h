/* A trial on one device: which one, opened, with what is told about it. */
#ifndef GPU_BENCH_GPU_H
#define GPU_BENCH_GPU_H

#include "device.h"
#include "windows.h"

struct telemetry;
struct gpu_job;

/* What a workload's row in the table says of it (run_own()): its part of a trial. Functions give 0 or
 * an exit_code; those that may be NULL say so. */
struct gpu_kind {
    size_t own_bytes; /* of job->own, zeroed */
    /* NULL, or why this device cannot do it with these parameters. May be NULL. */
    const char *(*unsupported)(const struct run *run, const struct gpu_device *device);
    /* The device is open, job->queue is there: buffers, kernels; fills in job->work. */
    int (*open)(struct gpu_job *job);
    void (*close)(struct gpu_job *job); /* whether or not open() succeeded; may be NULL */
    /* The device is idle, a phase is over: is all right that its pieces have left? May be NULL. */
    int (*verify)(struct gpu_job *job);
    /* Metrics of its own, by run_metric(). May be NULL. */
    void (*finish)(struct gpu_job *job);
};

struct gpu_job {
    struct run *run;
    const struct gpu_kind *kind;
    struct gpu gpu;
    const struct gpu_backend *backend; /* of that device */
    bool opened;
    struct gpu_queue *queue;
    struct windows_work work; /* what is repeated; set by kind->open() */
    struct windows *windows;
    struct telemetry *telemetry; /* NULL: there is none */
    void *own;                   /* the kind's */
};

/* For the rows of the table: every workload has these; bulk ones have windows_loop() and so on too. */
const char *gpu_job_unsupported(const struct run *run);
int gpu_job_check(struct run *run);
int gpu_job_open(struct run *run);
void gpu_job_close(struct run *run);
int gpu_job_setup(struct thread *thread);
unsigned gpu_job_threads(const struct run *run);

static inline struct gpu_job *gpu_job_of(const struct thread *thread)
{
    return (struct gpu_job *)run_shared(thread->run);
}

#endif
