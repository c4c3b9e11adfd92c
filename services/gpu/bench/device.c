#include "device.h"

#include <time.h>

/* 1 KiB of the driver's own a group from compute capability 8.0 on (CUDA C++ Programming Guide), and as
 * much for the grain of allocations. That another group still has no room takes shares above
 * 2 (groups + 1) KiB: the smallest is a quarter of 64. */
enum { GROUP_KEEPS_BYTES = 2 << 10 };

/* Pieces of work take milliseconds and are queued ahead; the host has nothing to gain by haste. */
static const struct timespec BETWEEN_LOOKS = {.tv_nsec = 200000};

unsigned gpu_ballast_bytes(const struct gpu_device *device, unsigned groups)
{
    unsigned share = device->cc_major ? device->shared_bytes / groups : 0;
    return share > GROUP_KEEPS_BYTES ? share - GROUP_KEEPS_BYTES : 0;
}

void gpu_pause(void)
{
    nanosleep(&BETWEEN_LOOKS, NULL);
}

int gpu_wait(const struct gpu_event *event)
{
    const struct gpu *gpu = event->gpu;
    bool done = false;
    for (;;) {
        int failure = gpu->device.backend->done(event, &done);
        if (failure || done || run_stopping(gpu->run))
            return failure;
        gpu_pause();
    }
}

int gpu_drain(struct gpu_queue *queue)
{
    const struct gpu_backend *backend = queue->gpu->device.backend;
    struct gpu_event *event;
    int failure = backend->event(queue->gpu, &event);
    if (!failure)
        failure = backend->record(queue, event);
    if (!failure)
        failure = gpu_wait(event);
    backend->release_event(event);
    return failure;
}

/* A run that is to stop leaves copies under way, and the process ends with them: what they read or
 * write must outlive the call, or not be touched. Only waiting in the driver's own way makes sure. */
static int copy_and_wait(struct gpu_queue *queue, const struct gpu_copy *copy)
{
    const struct gpu_backend *backend = queue->gpu->device.backend;
    int failure = backend->copy(queue, copy, NULL, NULL);
    return failure ? failure : backend->finish(queue);
}

int gpu_upload(struct gpu_queue *queue, const struct gpu_memory *to, uint64_t offset,
               const void *from, uint64_t bytes)
{
    const struct gpu_copy copy = {.kind = GPU_HOST_TO_DEVICE,
                                  .to = to,
                                  .to_offset = offset,
                                  .host = (void *)from,
                                  .bytes = bytes};
    return copy_and_wait(queue, &copy);
}

int gpu_download(struct gpu_queue *queue, const struct gpu_memory *from, uint64_t offset, void *to,
                 uint64_t bytes)
{
    const struct gpu_copy copy = {.kind = GPU_DEVICE_TO_HOST,
                                  .from = from,
                                  .from_offset = offset,
                                  .host = to,
                                  .bytes = bytes};
    return copy_and_wait(queue, &copy);
}
