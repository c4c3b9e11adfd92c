/* A trial on one device: which one, opened, with what is told about it. */
#ifndef GPU_BENCH_GPU_H
#define GPU_BENCH_GPU_H

#include "device.h"
#include "windows.h"

struct clocks;
struct telemetry;
struct gpu_job;

/* What a workload's row in the table says of it (run_own()): its part of a trial. Functions give 0 or
 * an exit_code; those that may be NULL say so. */
struct gpu_kind {
    const char *name; /* the workload's */
    size_t own_bytes; /* of job->own, zeroed; may be 0 */
    /* NULL, or why this device cannot do it with these parameters. May be NULL. */
    const char *(*unsupported)(const struct run *run, const struct gpu_device *device);
    /* NULL, or why what it does there wants to be confirmed, beyond what is said of every device
     * that nobody has tried. May be NULL. */
    const char *(*unconfirmed)(const struct run *run, const struct gpu_device *device);
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
    struct gpu_queue *queue;
    struct windows_work work; /* what is repeated; set by kind->open() */
    struct windows *windows;
    struct clocks *clocks;       /* NULL: the kind has none */
    struct telemetry *telemetry; /* NULL: there is no memory for it */
    void *own;                   /* the kind's */
};

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

static inline struct gpu_job *gpu_job_of(const struct thread *thread)
{
    return (struct gpu_job *)run_shared(thread->run);
}

#endif
