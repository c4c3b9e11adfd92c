/* The backend of the CUDA driver API: the device's context, its queues and events. */
#define _GNU_SOURCE
#include "cuda_context.h"
#include "cuda_kernel.h"
#include "cuda_list.h"
#include "cuda_memory.h"
#include "cuda_work.h"

#include <stdlib.h>

/* ---- the device ----------------------------------------------------------------------------- */

static int open_device(struct gpu *gpu)
{
    const char *why;
    struct cuda *cuda = calloc(1, sizeof *cuda);
    gpu->own = cuda;
    if (!cuda)
        return cuda_no_memory(gpu, "a device's context", sizeof *cuda);
    cuda->api = cuda_api_load(&why);
    if (!cuda->api) {
        run_reason(gpu->run, "%s", why);
        return EXIT_UNSUPPORTED;
    }
    int code = cuda->api->cuDeviceGet(&cuda->device, gpu->device.ordinal);
    if (code != CUDA_SUCCESS)
        return cuda_fail(gpu, "cuDeviceGet", code);
    /* The primary one, which the CUDA runtime and the libraries above it use too. */
    code = cuda->api->cuDevicePrimaryCtxRetain(&cuda->context, cuda->device);
    if (code == CUDA_SUCCESS)
        return cuda_enter(gpu);
    cuda->context = NULL;
    return cuda_fail(gpu, "cuDevicePrimaryCtxRetain", code);
}

static void close_device(struct gpu *gpu)
{
    struct cuda *cuda = cuda_of(gpu);
    if (!cuda)
        return;
    if (cuda->context && cuda_may_release(gpu)) {
        cuda_unload(cuda);
        cuda->api->cuCtxSetCurrent(NULL);
        cuda->api->cuDevicePrimaryCtxRelease_v2(cuda->device);
    }
    cuda_leave(cuda);
    gpu->own = NULL;
    free(cuda);
}

/* ---- queues and events ---------------------------------------------------------------------- */

static int queue(struct gpu *gpu, struct gpu_queue **made)
{
    cuda_stream stream = NULL;
    *made = NULL;
    CUDA_CALL(gpu, cuStreamCreate, &stream, CUDA_STREAM_NON_BLOCKING);
    *made = calloc(1, sizeof **made);
    if (!*made)
        return cuda_no_memory(gpu, "a record", sizeof **made);
    **made = (struct gpu_queue){.gpu = gpu, .own = stream};
    return EXIT_OK;
}

static void release_queue(struct gpu_queue *queue)
{
    if (queue && cuda_may_release(queue->gpu))
        cuda_of(queue->gpu)->api->cuStreamDestroy_v2(queue->own);
    free(queue);
}

static int event(struct gpu *gpu, struct gpu_event **made)
{
    cuda_event event = NULL;
    *made = NULL;
    CUDA_CALL(gpu, cuEventCreate, &event, CUDA_EVENT_DEFAULT);
    *made = calloc(1, sizeof **made);
    if (!*made)
        return cuda_no_memory(gpu, "a record", sizeof **made);
    **made = (struct gpu_event){.gpu = gpu, .own = event};
    return EXIT_OK;
}

static void release_event(struct gpu_event *event)
{
    if (event && cuda_may_release(event->gpu))
        cuda_of(event->gpu)->api->cuEventDestroy_v2(event->own);
    free(event);
}

static int done(const struct gpu_event *event, bool *done)
{
    struct gpu *gpu = event->gpu;
    *done = false;
    int failure = cuda_enter(gpu);
    if (failure)
        return failure;
    int code = cuda_of(gpu)->api->cuEventQuery(event->own);
    if (code == CUDA_ERROR_NOT_READY)
        return EXIT_OK;
    if (code != CUDA_SUCCESS)
        return cuda_fail(gpu, "cuEventQuery", code);
    *done = true;
    return EXIT_OK;
}

static int elapsed(const struct gpu_event *from, const struct gpu_event *to, double *seconds)
{
    float milliseconds = 0;
    CUDA_CALL(from->gpu, cuEventElapsedTime, &milliseconds, from->own, to->own);
    *seconds = milliseconds * 1e-3;
    return EXIT_OK;
}

static int finish(struct gpu_queue *queue)
{
    CUDA_CALL(queue->gpu, cuStreamSynchronize, queue->own);
    return EXIT_OK;
}

const struct gpu_backend cuda_backend = {
    .name = "cuda",
    .list = cuda_list,
    .open = open_device,
    .close = close_device,
    .memory = cuda_memory,
    .release_memory = cuda_release_memory,
    .free_memory = cuda_free_memory,
    .host_memory = cuda_host_memory,
    .release_host_memory = cuda_release_host_memory,
    .kernel = cuda_kernel,
    .release_kernel = cuda_release_kernel,
    .queue = queue,
    .release_queue = release_queue,
    .event = event,
    .release_event = release_event,
    .launch = cuda_launch,
    .copy = cuda_copy,
    .fill = cuda_fill,
    .record = cuda_record,
    .done = done,
    .elapsed = elapsed,
    .finish = finish,
    .peer = cuda_peer,
    .peer_copy = cuda_peer_copy,
};
