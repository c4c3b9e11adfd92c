#include "windows.h"

#include "clocks.h"
#include "figures.h"
#include "lane.h"
#include "monotonic.h"
#include "telemetry.h"
#include "window_record.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

enum { CALIBRATIONS_MAX = 16 };

static const double PIECE_S = 7e-3; /* aimed at */
/* A first piece may be short beside what queueing it costs; a much larger one is not tried at once. */
static const double GROWTH_MAX = 16;
/* Pieces may be this much shorter or longer than aimed at. */
static const double CLOSE_ENOUGH = 1.3;
/* A card that was idle takes its time to raise its clocks: pieces that have become so many times shorter
 * than aimed at are made longer. */
static const double TOO_SHORT = 2;

struct windows {
    struct lane lanes[WINDOWS_LANES_MAX];
    unsigned count;
    uint64_t size;
    struct window_record record;
    uint64_t checked; /* pieces that were done when what they leave was last looked at */
    /* What has been done in this phase, and when that was so: for another thread's samples. */
    pthread_mutex_t lock;
    double moved, moved_at_s;
};

/* ---- the size of a piece --------------------------------------------------------------------- */

/* One piece alone, in seconds of the device. */
static int try_piece(struct gpu_job *job, unsigned index, double *seconds)
{
    struct lane *lane = &job->windows->lanes[index];
    int failure = lane_enqueue(lane, job, job->windows->size);
    if (!failure)
        failure = lane_wait(lane);
    if (failure || run_stopping(job->run))
        return failure;
    return lane_take(lane, seconds, NULL);
}

static uint64_t within(double size, const struct windows_work *work)
{
    if (size <= (double)work->size_min)
        return work->size_min;
    return size >= (double)work->size_max ? work->size_max : (uint64_t)size;
}

/* The first piece of a size also pays for what the driver does only once; so it is tried again. */
static int calibrate(struct gpu_job *job)
{
    struct windows *windows = job->windows;
    const struct windows_work *work = &job->work;
    windows->size = work->size_min;
    for (unsigned i = 0; i < CALIBRATIONS_MAX && work->size_max > work->size_min; i++) {
        double seconds = 0;
        int failure = try_piece(job, 0, &seconds);
        if (failure || run_stopping(job->run))
            return failure;
        double factor = fmin(PIECE_S / fmax(seconds, 1e-9), GROWTH_MAX);
        uint64_t next = within((double)windows->size * factor, work);
        bool enough = factor < CLOSE_ENOUGH && factor > 1 / CLOSE_ENOUGH;
        if ((enough || next == windows->size) && i > 0)
            break;
        windows->size = next;
    }
    return EXIT_OK;
}

/* While a phase goes on, by a piece of the first lane. */
static void keep_long_enough(struct gpu_job *job, uint64_t size, double seconds)
{
    struct windows *windows = job->windows;
    double factor = fmin(PIECE_S / fmax(seconds, 1e-9), GROWTH_MAX);
    if (size == windows->size && factor > TOO_SHORT)
        windows->size = within((double)size * factor, &job->work);
}

/* So that each lane has left something that can be verified. */
static int begin_lanes(struct gpu_job *job)
{
    int failure = calibrate(job);
    for (unsigned i = 0; i < job->windows->count && !failure && !run_stopping(job->run); i++) {
        double seconds;
        if (job->windows->lanes[i].pieces == 0)
            failure = try_piece(job, i, &seconds);
    }
    return failure;
}

/* ---- open and close -------------------------------------------------------------------------- */

int windows_open(struct gpu_job *job)
{
    struct windows *windows = calloc(1, sizeof *windows);
    job->windows = windows;
    if (!windows || window_record_open(&windows->record)) {
        run_reason(job->run, "not enough memory for the records of a trial");
        return EXIT_RESOURCE;
    }
    pthread_mutex_init(&windows->lock, NULL);
    windows->count = job->work.lanes;
    for (unsigned i = 0; i < windows->count; i++) {
        int failure = lane_open(&windows->lanes[i], job, i);
        if (failure)
            return failure;
    }
    return begin_lanes(job);
}

void windows_close(struct gpu_job *job)
{
    struct windows *windows = job->windows;
    if (!windows)
        return;
    for (unsigned i = 0; i < windows->count; i++)
        lane_close(&windows->lanes[i]);
    windows->count = 0;
    window_record_close(&windows->record);
}

void windows_free(struct gpu_job *job)
{
    free(job->windows);
    job->windows = NULL;
}

/* ---- a phase --------------------------------------------------------------------------------- */

/* As the harness counts it. */
static uint64_t whole(double work)
{
    return work < 0x1p63 ? (uint64_t)work : INT64_MAX;
}

static void show_progress(struct windows *windows, double work, double at_s)
{
    pthread_mutex_lock(&windows->lock);
    windows->moved = work;
    windows->moved_at_s = at_s;
    pthread_mutex_unlock(&windows->lock);
}

uint64_t windows_moved(const struct thread *thread, double *at_s)
{
    struct windows *windows = gpu_job_of(thread)->windows;
    pthread_mutex_lock(&windows->lock);
    uint64_t moved = whole(windows->moved);
    *at_s = windows->moved_at_s;
    pthread_mutex_unlock(&windows->lock);
    return moved;
}

struct phase {
    double begun_s;
    double queued, done; /* work */
};

/* Gives each lane that has no more than `ahead` pieces another one. */
static int queue_behind(struct gpu_job *job, unsigned ahead, struct phase *phase)
{
    struct windows *windows = job->windows;
    for (unsigned i = 0; i < windows->count; i++) {
        struct lane *lane = &windows->lanes[i];
        if (lane->queued > ahead)
            continue;
        int failure = lane_enqueue(lane, job, windows->size);
        if (failure)
            return failure;
        phase->queued += (double)windows->size * job->work.work_per_size;
    }
    return EXIT_OK;
}

/* A phase that has begun on one lane has begun on all. */
static int refill(struct thread *thread, struct phase *phase)
{
    int failure = EXIT_OK;
    for (unsigned ahead = 0; ahead < WINDOWS_AHEAD && !failure; ahead++)
        if (!run_loop_over(thread, whole(phase->queued), now_s()))
            failure = queue_behind(gpu_job_of(thread), ahead, phase);
    return failure;
}

/* Takes in what the lanes have finished. *any: there was something. */
static int harvest(struct gpu_job *job, struct phase *phase, bool *any)
{
    struct windows *windows = job->windows;
    *any = false;
    for (unsigned i = 0; i < windows->count; i++) {
        struct lane *lane = &windows->lanes[i];
        bool done = false;
        int failure = lane_done(lane, &done);
        double seconds;
        uint64_t size;
        if (failure)
            return failure;
        if (!done)
            continue;
        failure = lane_take(lane, &seconds, &size);
        if (failure)
            return failure;
        double work = (double)size * job->work.work_per_size;
        window_record_add(&windows->record, i, work, seconds);
        if (i == 0)
            keep_long_enough(job, size, seconds);
        phase->done += work;
        *any = true;
    }
    if (*any)
        show_progress(windows, phase->done, now_s());
    return EXIT_OK;
}

static bool idle(const struct windows *windows)
{
    unsigned queued = 0;
    for (unsigned i = 0; i < windows->count; i++)
        queued += windows->lanes[i].queued;
    return queued == 0;
}

static int repeat(struct thread *thread, struct phase *phase)
{
    struct gpu_job *job = gpu_job_of(thread);
    for (;;) {
        bool any;
        int failure = refill(thread, phase);
        if (!failure)
            failure = harvest(job, phase, &any);
        if (failure || run_stopping(job->run) || idle(job->windows))
            return failure;
        if (!any)
            gpu_pause();
    }
}

int windows_loop(struct thread *thread)
{
    struct gpu_job *job = gpu_job_of(thread);
    struct windows *windows = job->windows;
    struct phase phase = {.begun_s = now_s()};
    bool timed = run_loop_timed(thread);
    window_record_begin(&windows->record, windows->count);
    show_progress(windows, 0, phase.begun_s);
    if (timed) {
        clocks_begin(job);
        telemetry_begin(job->telemetry);
    }
    int failure = repeat(thread, &phase);
    if (!timed || failure || run_stopping(job->run))
        return failure;
    telemetry_end(job->telemetry);
    job->figures = window_record_figures(&windows->record);
    job->figures.wall_s = now_s() - phase.begun_s;
    return EXIT_OK;
}

/* ---- behind a phase -------------------------------------------------------------------------- */

/* After a warm-up of 0 s, what the calibration has left. Nothing, where the phase was over before a
 * piece could be queued: what was there has been looked at, and is gone. */
static int check_what_is_left(struct gpu_job *job)
{
    struct windows *windows = job->windows;
    uint64_t pieces = 0;
    for (unsigned i = 0; i < windows->count; i++)
        pieces += windows->lanes[i].pieces;
    if (pieces == windows->checked || !job->kind->verify)
        return EXIT_OK;
    windows->checked = pieces;
    return job->kind->verify(job);
}

int windows_prepare(struct thread *thread)
{
    return check_what_is_left(gpu_job_of(thread));
}

int windows_verify(struct thread *thread, uint64_t units)
{
    struct gpu_job *job = gpu_job_of(thread);
    const struct windows_figures *figures = &job->figures;
    (void)units; /* a loop has none */
    int failure = check_what_is_left(job);
    if (!failure)
        failure = clocks_end(job);
    run_bulk_done(thread, whole(figures->work), figures->rate_whole);
    return failure;
}

void windows_finish(struct thread *thread)
{
    struct gpu_job *job = gpu_job_of(thread);
    double rate = job->figures.rate_median;
    if (!job->figures.pieces)
        run_warning(
            job->run, "nothing_done",
            "the timed phase was over before a piece of work could be queued, so there is no "
            "rate: give it longer (--duration-s), and the program a CPU that is free");
    run_bulk_rate(thread->run, job->work.time ? 1 / rate : rate);
    figures_report(job);
    if (job->kind->finish)
        job->kind->finish(job);
}

uint64_t windows_pieces(const struct gpu_job *job, unsigned lane)
{
    return job->windows->lanes[lane].pieces;
}

uint64_t windows_total(const struct gpu_job *job, unsigned lane)
{
    return job->windows->lanes[lane].total;
}

uint64_t windows_size(const struct gpu_job *job)
{
    return job->windows->size;
}
