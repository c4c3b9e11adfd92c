#include "launches.h"

#include "arrays.h"
#include "contents.h"
#include "kernel_set.h"
#include "monotonic.h"
#include "statistics.h"
#include "telemetry.h"

#include <math.h>
#include <string.h>

enum {
    BATCH = 256,        /* launches one behind another; drivers queue a thousand */
    CALLS_KEPT = 65536, /* their times are kept */
    SEED = 0x2545f491,
};

struct launches {
    struct gpu_kernel *empty, *fill;
    struct gpu_memory *tile;
    bool back_to_back;
    struct reservoir calls_s; /* that a call takes which launches */
};

static struct launches *launches_of(const struct gpu_job *job)
{
    return job->own;
}

/* ---- the loop ------------------------------------------------------------------------------- */

static int launch(struct gpu_job *job)
{
    const struct gpu_launch one = {.kernel = launches_of(job)->empty, .groups = 1, .group_size = 1};
    return job->backend->launch(job->queue, &one, NULL, NULL);
}

static void keep(struct thread *thread, double begun_s, double launched_s, double done_s,
                 unsigned count)
{
    struct launches *launches = launches_of(gpu_job_of(thread));
    double read_s = run_clock_read_s(thread->run);
    if (run_loop_timed(thread))
        reservoir_add(&launches->calls_s, (launched_s - begun_s - read_s) / count);
    uint64_t each_ns = (uint64_t)((done_s - begun_s) * 1e9 / count);
    for (unsigned i = 0; i < count; i++)
        run_loop_done(thread, 0, each_ns);
}

/* Launches, and waits for the last of them in the driver's own way. */
static int launch_batch(struct thread *thread, uint64_t *begun, unsigned most)
{
    struct gpu_job *job = gpu_job_of(thread);
    unsigned count = 0;
    int failure = EXIT_OK;
    double begun_s = now_s();
    for (; count < most && !failure && !run_loop_over(thread, *begun + count, begun_s); count++)
        failure = launch(job);
    double launched_s = now_s();
    if (!failure)
        failure = job->backend->finish(job->queue);
    if (!failure && count)
        keep(thread, begun_s, launched_s, now_s(), count);
    *begun += count;
    return failure;
}

int launches_loop(struct thread *thread)
{
    struct gpu_job *job = gpu_job_of(thread);
    unsigned most = launches_of(job)->back_to_back ? BATCH : 1;
    uint64_t begun = 0;
    int failure = EXIT_OK;
    if (run_loop_timed(thread))
        telemetry_begin(job->telemetry);
    while (!failure && !run_loop_over(thread, begun, now_s()))
        failure = launch_batch(thread, &begun, most);
    if (run_loop_timed(thread))
        telemetry_end(job->telemetry);
    return failure;
}

/* ---- what is left --------------------------------------------------------------------------- */

/* A kernel that does nothing leaves nothing. What comes behind it in the queue, and was not there
 * before, shows that the queue did its work until here. */
static int check_queue(struct gpu_job *job)
{
    const struct launches *launches = launches_of(job);
    const struct gpu_argument arguments[] = {GPU_ARG_MEMORY(launches->tile), GPU_ARG_U32(SEED)};
    const struct gpu_launch one = {.kernel = launches->fill,
                                   .groups = 1,
                                   .group_size = KERNEL_GROUP_SIZE,
                                   .arguments = arguments,
                                   .count = 2};
    int failure =
        job->backend->fill(job->queue, launches->tile, 0, KERNEL_TILE_BYTES, CONTENTS_SCRUBBED);
    if (!failure)
        failure = job->backend->launch(job->queue, &one, NULL, NULL);
    if (!failure)
        failure = gpu_drain(job->queue);
    if (failure || run_stopping(job->run))
        return failure;
    return arrays_check(job, job->queue, launches->tile, 0, KERNEL_TILE_BYTES, SEED,
                        "what the last kernel wrote");
}

int launches_prepare(struct thread *thread)
{
    return check_queue(gpu_job_of(thread));
}

int launches_verify(struct thread *thread, uint64_t units)
{
    (void)units; /* a loop has none */
    return check_queue(gpu_job_of(thread));
}

void launches_finish(struct thread *thread)
{
    struct gpu_job *job = gpu_job_of(thread);
    struct reservoir *calls_s = &launches_of(job)->calls_s;
    if (calls_s->kept)
        run_metric(job->run, "launch_call_s", fmax(median(calls_s->values, calls_s->kept), 0));
    else
        run_no_metric(job->run, "launch_call_s", "nothing was launched");
    telemetry_report(job->telemetry, job->run);
}

/* ---- beginning and end ---------------------------------------------------------------------- */

static int open_launches(struct gpu_job *job)
{
    struct launches *launches = launches_of(job);
    launches->back_to_back = !strcmp(run_choice(job->run, "mode"), "back_to_back");
    if (launches->back_to_back)
        run_times_are_means(job->run);
    if (reservoir_init(&launches->calls_s, CALLS_KEPT)) {
        run_reason(job->run, "not enough memory for the records of a trial");
        return EXIT_RESOURCE;
    }
    int failure = gpu_job_kernel(job, "empty", &launches->empty);
    if (!failure)
        failure = job->backend->kernel(&job->gpu, "fill", &launches->fill);
    if (!failure)
        failure = job->backend->memory(&job->gpu, KERNEL_TILE_BYTES, &launches->tile);
    return failure;
}

static void close_launches(struct gpu_job *job)
{
    struct launches *launches = launches_of(job);
    job->backend->release_kernel(launches->empty);
    job->backend->release_kernel(launches->fill);
    job->backend->release_memory(launches->tile);
    reservoir_free(&launches->calls_s);
}

const struct gpu_kind launch_kind = {
    .name = "launch_latency",
    .own_bytes = sizeof(struct launches),
    .open = open_launches,
    .close = close_launches,
};
