/* The state of a trial on one device: the workload's part, the work it repeats, and the figures. */
#ifndef GPU_BENCH_JOB_H
#define GPU_BENCH_JOB_H

#include "device.h"

enum { WINDOWS_LANES_MAX = 2 };

struct clocks;
struct gpu_job;
struct telemetry;
struct windows;

/* What is repeated. A piece of size n does n * work_per_size of work, in the unit of the rate. */
struct windows_work {
    /* Lanes are independent of one another (two directions of a bus): each has pieces under way all
     * the time, and their rates add up. */
    unsigned lanes;
    /* Queues a piece of this size on a lane: `begin` goes to its first call of the backend, `end` to
     * its last (both to the one, if it is one). */
    int (*enqueue)(struct gpu_job *job, unsigned lane, uint64_t size, struct gpu_event *begin,
                   struct gpu_event *end);
    double work_per_size;
    /* enqueue() comes back when the piece is done, and the host's clock tells how long that took: of
     * what the driver does in the call itself. The events are not used. */
    bool by_host_clock;
    bool time;                   /* the primary figure is the time of one unit of work, 1 / rate */
    uint64_t size_min, size_max; /* a piece is calibrated between them; equal: as it is */
};

/* What a timed phase has given. Rates in work a second, NaN: none. */
struct windows_figures {
    uint64_t count; /* of windows */
    double rate_median, rate_best, rate_cv;
    double rate_whole;                    /* of all pieces */
    double lane_rates[WINDOWS_LANES_MAX]; /* … of each lane */
    double work;                          /* of all pieces */
    double device_s;                      /* that the device was at work, the mean of the lanes */
    double wall_s;
    uint64_t pieces;
};

/* What a workload's row in the table says of it (run_own()): its part of a trial. Functions give 0 or
 * an exit_code; those that may be NULL say so. */
struct gpu_kind {
    const char *name; /* the workload's */
    size_t own_bytes; /* of job->own, zeroed; may be 0 */
    /* NULL, or why this device cannot do it with these parameters. May be NULL. */
    const char *(*unsupported)(const struct run *run, const struct gpu_device *device);
    /* NULL, or what no card of any kind has confirmed. May be NULL. */
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
    struct windows_figures figures; /* of the timed phase, once it is over */
    struct clocks *clocks;          /* NULL: the kind has none */
    struct telemetry *telemetry;    /* NULL: there is no memory for it */
    void *own;                      /* the kind's */
};

static inline struct gpu_job *gpu_job_of(const struct thread *thread)
{
    return (struct gpu_job *)run_shared(thread->run);
}

#endif
