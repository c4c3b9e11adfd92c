/* A device under OpenCL: what all parts of the backend work with. */
#ifndef GPU_BENCH_OPENCL_GPU_H
#define GPU_BENCH_OPENCL_GPU_H

#include "device.h"
#include "opencl_api.h"

/* gpu->own. */
struct opencl_gpu {
    const struct opencl *cl;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;        /* for what the backend does itself, never measured */
    struct opencl_stream *streams; /* the queues of this trial, linked */
    uint64_t taken_bytes;          /* of the device's memory, by this trial */
    /* Nothing is released any more: work does not end, and a release would wait for it, or the device
     * failed at work, and its driver may crash or hang. The process ends soon. */
    bool abandoned;
};

static inline struct opencl_gpu *opencl_of(const struct gpu *gpu)
{
    return gpu->own;
}

static inline cl_mem opencl_buffer(const struct gpu_memory *memory)
{
    return (cl_mem)(uintptr_t)memory->handle;
}

#endif
