#define _GNU_SOURCE
#include "cuda_work.h"

#include "cuda_kernel.h"

#include <assert.h>

enum { ARGUMENTS_MAX = 16 };

int cuda_record(struct gpu_queue *queue, struct gpu_event *event)
{
    CUDA_CALL(queue->gpu, cuEventRecord, event->own, queue->own);
    return EXIT_OK;
}

static int record_if(struct gpu_queue *queue, struct gpu_event *event)
{
    return event ? cuda_record(queue, event) : EXIT_OK;
}

/* ---- launches ------------------------------------------------------------------------------- */

/* Left to itself the driver may divide the L1 cache such that fewer groups fit than shall. This is a
 * wish, and a driver need not know it. */
static int prefer_shared(struct gpu *gpu, cuda_function function)
{
    int failure = cuda_enter(gpu);
    if (failure)
        return failure;
    int code = cuda_of(gpu)->api->cuFuncSetAttribute(
        function, CUDA_FUNCTION_SHARED_PERCENT_PREFERRED, CUDA_SHARED_PERCENT_MOST);
    if (code == CUDA_SUCCESS || code == CUDA_ERROR_INVALID_VALUE ||
        code == CUDA_ERROR_NOT_SUPPORTED)
        return EXIT_OK;
    return cuda_fail(gpu, "cuFuncSetAttribute", code);
}

/* Beyond 48 KiB a kernel has to ask for its shared memory first: CUDA C++ Programming Guide. */
static int allow_shared(struct gpu *gpu, struct cuda_kernel *function, unsigned bytes)
{
    if (bytes <= function->shared_bytes)
        return EXIT_OK;
    if (bytes > CUDA_SHARED_BYTES_WITHOUT_ASKING)
        CUDA_CALL(gpu, cuFuncSetAttribute, function->function,
                  CUDA_FUNCTION_DYNAMIC_SHARED_BYTES_MAX, (int)bytes);
    function->shared_bytes = bytes;
    return prefer_shared(gpu, function->function);
}

static int launch_groups(struct gpu_queue *queue, const struct gpu_launch *launch,
                         cuda_function function, void **arguments)
{
    CUDA_CALL(queue->gpu, cuLaunchKernel, function, launch->groups, 1, 1, launch->group_size, 1, 1,
              launch->shared_bytes, queue->own, arguments, NULL);
    return EXIT_OK;
}

int cuda_launch(struct gpu_queue *queue, const struct gpu_launch *launch, struct gpu_event *begin,
                struct gpu_event *end)
{
    struct cuda_kernel *function = launch->kernel->own;
    void *arguments[ARGUMENTS_MAX];
    assert(launch->count <= ARGUMENTS_MAX);
    for (unsigned i = 0; i < launch->count; i++) {
        const struct gpu_argument *argument = &launch->arguments[i];
        arguments[i] = argument->kind == GPU_ARGUMENT_MEMORY ? (void *)&argument->memory->handle
                                                             : (void *)&argument->value;
    }
    int failure = allow_shared(queue->gpu, function, launch->shared_bytes);
    if (!failure)
        failure = record_if(queue, begin);
    if (!failure)
        failure = launch_groups(queue, launch, function->function, arguments);
    return failure ? failure : record_if(queue, end);
}

/* ---- copies --------------------------------------------------------------------------------- */

static int transfer(struct gpu_queue *queue, const struct gpu_copy *copy)
{
    struct gpu *gpu = queue->gpu;
    cuda_pointer to = copy->to ? copy->to->handle + copy->to_offset : 0;
    cuda_pointer from = copy->from ? copy->from->handle + copy->from_offset : 0;
    switch (copy->kind) {
    case GPU_HOST_TO_DEVICE:
        CUDA_CALL(gpu, cuMemcpyHtoDAsync_v2, to, copy->host, copy->bytes, queue->own);
        break;
    case GPU_DEVICE_TO_HOST:
        CUDA_CALL(gpu, cuMemcpyDtoHAsync_v2, copy->host, from, copy->bytes, queue->own);
        break;
    case GPU_DEVICE_TO_DEVICE:
        CUDA_CALL(gpu, cuMemcpyDtoDAsync_v2, to, from, copy->bytes, queue->own);
        break;
    }
    return EXIT_OK;
}

int cuda_copy(struct gpu_queue *queue, const struct gpu_copy *copy, struct gpu_event *begin,
              struct gpu_event *end)
{
    int failure = record_if(queue, begin);
    if (!failure)
        failure = transfer(queue, copy);
    return failure ? failure : record_if(queue, end);
}

int cuda_fill(struct gpu_queue *queue, const struct gpu_memory *memory, uint64_t offset,
              uint64_t bytes, uint32_t word)
{
    CUDA_CALL(queue->gpu, cuMemsetD32Async, memory->handle + offset, word, bytes / sizeof word,
              queue->own);
    return EXIT_OK;
}

/* ---- peers ---------------------------------------------------------------------------------- */

int cuda_peer(struct gpu *gpu, struct gpu *peer)
{
    struct cuda *cuda = cuda_of(gpu);
    int can = 0;
    CUDA_CALL(gpu, cuDeviceCanAccessPeer, &can, cuda->device, cuda_of(peer)->device);
    if (!can) {
        run_reason(gpu->run,
                   "device %s cannot reach the memory of %s: there is no NVLink between them, and "
                   "the host does not let them talk over PCIe (IOMMU, ACS)",
                   gpu->device.uuid, peer->device.uuid);
        return EXIT_UNSUPPORTED;
    }
    int code = cuda->api->cuCtxEnablePeerAccess(cuda_of(peer)->context, 0);
    if (code == CUDA_SUCCESS || code == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
        return EXIT_OK;
    return cuda_fail(gpu, "cuCtxEnablePeerAccess", code);
}

static int transfer_to_peer(struct gpu_queue *queue, const struct gpu_copy *copy)
{
    CUDA_CALL(queue->gpu, cuMemcpyPeerAsync, copy->to->handle + copy->to_offset,
              cuda_of(copy->to->gpu)->context, copy->from->handle + copy->from_offset,
              cuda_of(copy->from->gpu)->context, copy->bytes, queue->own);
    return EXIT_OK;
}

int cuda_peer_copy(struct gpu_queue *queue, const struct gpu_copy *copy, struct gpu_event *begin,
                   struct gpu_event *end)
{
    int failure = record_if(queue, begin);
    if (!failure)
        failure = transfer_to_peer(queue, copy);
    return failure ? failure : record_if(queue, end);
}
