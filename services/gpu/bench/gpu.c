#include "gpu.h"

#include "clocks.h"
#include "devices.h"
#include "facts.h"
#include "telemetry.h"
#include "windows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One host thread feeds the device. */
unsigned gpu_job_threads(const struct run *run)
{
    (void)run;
    return 1;
}

/* ---- which device ---------------------------------------------------------------------------- */

static char why_not[2 * GPU_LOOKED_MAX]; /* there is one run in a process */

static enum device_answer choose(const struct run *run, const struct gpu_device **device)
{
    return devices_choose(run_choice(run, "device"), run_choice(run, "backend"), device, why_not,
                          sizeof why_not);
}

static const struct gpu_kind *kind_of(const struct run *run)
{
    return (const struct gpu_kind *)run_own(run);
}

const char *gpu_job_unsupported(const struct run *run)
{
    const struct gpu_device *device;
    const struct gpu_kind *kind = kind_of(run);
    switch (choose(run, &device)) {
    case DEVICE_UNSUPPORTED:
        return why_not;
    case DEVICE_UNKNOWN:
        return NULL; /* an argument that is wrong: gpu_job_check() */
    default:
        return kind->unsupported ? kind->unsupported(run, device) : NULL;
    }
}

/* All figures that an H100 and an H200 can give were held against limits, published ones and other
 * tools there (benchmarks/README.md). Kinds say themselves what one card alone cannot do. */
const char *gpu_job_unconfirmed(const struct run *run)
{
    const struct gpu_device *device;
    const struct gpu_kind *kind = kind_of(run);
    if (choose(run, &device) != DEVICE_FOUND)
        return NULL;
    const char *why = kind->unconfirmed ? kind->unconfirmed(run, device) : NULL;
    /* On CPUs every workload is tried before each release. */
    if (why || device->type == GPU_IS_CPU || devices_has_capability(device, 9, 0))
        return why;
    return "confirmed on an H100 and an H200 (compute capability 9.0) alone: hold it against "
           "another tool's";
}

/* The words auto become what they stand for. */
int gpu_job_check(struct run *run)
{
    static char index[16];
    const struct gpu_device *device;
    if (choose(run, &device) != DEVICE_FOUND) {
        run_reason(run, "--device: %s", why_not);
        return EXIT_USAGE;
    }
    snprintf(index, sizeof index, "%zu", devices_index(device));
    run_set_choice(run, "device", index);
    run_set_choice(run, "backend", device->backend->name);
    return EXIT_OK;
}

/* ---- on the main thread ---------------------------------------------------------------------- */

int gpu_job_open(struct run *run)
{
    const struct gpu_device *device;
    const struct gpu_kind *kind = kind_of(run);
    struct gpu_job *job = calloc(1, sizeof *job);
    void *own = kind->own_bytes ? calloc(1, kind->own_bytes) : NULL;
    if (!job || (kind->own_bytes && !own) || choose(run, &device) != DEVICE_FOUND) {
        free(job);
        free(own);
        run_reason(run, "not enough memory for a trial");
        return EXIT_RESOURCE;
    }
    *job = (struct gpu_job){.run = run,
                            .kind = kind,
                            .gpu = {.run = run, .device = *device},
                            .backend = device->backend,
                            .own = own};
    run_set_shared(run, job);
    facts_of_device(run, device);
    /* Here, since a thread of its own inherits the CPUs of the one that starts it. */
    job->telemetry = telemetry_open(run, device);
    job->gpu.telemetry = job->telemetry;
    return EXIT_OK;
}

void gpu_job_close(struct run *run)
{
    struct gpu_job *job = run_shared(run);
    if (!job)
        return;
    telemetry_close(job->telemetry);
    windows_free(job);
    free(job->own);
    free(job);
}

size_t gpu_job_observe(struct run *run, struct observed *figures, size_t most)
{
    const struct gpu_job *job = run_shared(run);
    const struct telemetry_figures now = telemetry_since(job->telemetry);
    const struct observed all[] = {
        {"nvml_clock_hertz", now.clock_hertz},    {"memory_clock_hertz", now.memory_clock_hertz},
        {"power_watts", now.power_watts},         {"temperature_celsius", now.temperature_celsius},
        {"throttled_ratio", now.throttled_ratio},
    };
    size_t count = sizeof all / sizeof *all;
    if (count > most)
        count = most;
    memcpy(figures, all, count * sizeof *all);
    return count;
}

/* ---- on the thread that works ---------------------------------------------------------------- */

static void let_go(struct gpu_job *job)
{
    windows_close(job);
    if (job->kind->close)
        job->kind->close(job);
    clocks_close(job);
    job->backend->release_queue(job->queue);
    job->queue = NULL;
    job->backend->close(&job->gpu);
}

static int take(struct gpu_job *job)
{
    int failure = job->backend->open(&job->gpu);
    if (!failure)
        failure = job->backend->queue(&job->gpu, &job->queue);
    if (!failure)
        failure = job->kind->open(job);
    if (!failure && job->work.enqueue)
        failure = windows_open(job);
    return failure;
}

int gpu_job_setup(struct thread *thread)
{
    struct gpu_job *job = gpu_job_of(thread);
    run_set_unit(thread->run, 1, 1);
    int failure = take(job);
    if (failure)
        let_go(job);
    return failure;
}

void gpu_job_teardown(struct thread *thread)
{
    let_go(gpu_job_of(thread));
}

int gpu_job_kernel(struct gpu_job *job, const char *name, struct gpu_kernel **kernel)
{
    int failure = job->backend->kernel(&job->gpu, name, kernel);
    if (!failure)
        facts_of_kernel(job->run, *kernel);
    return failure;
}
