/* The measuring engine: keeps a device busy with equal pieces of work (launches of a kernel, copies),
 * a few of them queued ahead, and makes windows of at least 100 ms of them. A window's rate is its
 * work over the time that the device's own clock says it was at work. */
#ifndef GPU_BENCH_WINDOWS_H
#define GPU_BENCH_WINDOWS_H

#include "device.h"

enum {
    WINDOWS_LANES_MAX = 2,
    WINDOWS_AHEAD = 4,   /* pieces queued at most, of a lane */
    WINDOWS_MAX = 65536, /* a longer trial keeps a random sample of so many */
};

static const double PIECE_S = 7e-3;   /* aimed at */
static const double WINDOW_S = 0.100; /* at least */

struct gpu_job;

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

/* Events and records for job->work, and the size of its pieces by trying. In gpu_job_open(), behind
 * the kind's own. */
int windows_open(struct gpu_job *job);
/* Gives back what is the backend's. */
void windows_close(struct gpu_job *job);
/* … and the rest, once nobody asks for windows_moved() any more. */
void windows_free(struct gpu_job *job);
/* The functions of a bulk loop, for the rows of the table. */
int windows_loop(struct thread *thread);
uint64_t windows_moved(const struct thread *thread, double *at_s);
int windows_prepare(struct thread *thread); /* verifies what the ramp has left */
int windows_verify(struct thread *thread, uint64_t units);
void windows_finish(struct thread *thread);
/* After the timed phase. */
const struct windows_figures *windows_figures(const struct gpu_job *job);
/* Since the trial began, of a lane: pieces that were queued, and their sizes added up. What verify()
 * may hold what it finds against. */
uint64_t windows_pieces(const struct gpu_job *job, unsigned lane);
uint64_t windows_total(const struct gpu_job *job, unsigned lane);
/* The size of the pieces that are queued next: calibrated, then longer where the device has become
 * faster. */
uint64_t windows_size(const struct gpu_job *job);

#endif
