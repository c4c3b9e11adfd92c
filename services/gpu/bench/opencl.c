/* The backend of OpenCL: the device's context, and the table of its functions. */
#include "opencl_error.h"
#include "opencl_gpu.h"
#include "opencl_kernel.h"
#include "opencl_list.h"
#include "opencl_memory.h"
#include "opencl_queue.h"

#include <stdlib.h>

static int open_device(struct gpu *gpu)
{
    const char *why_not;
    struct opencl_gpu *own = opencl_object(gpu, sizeof *own);
    if (!own)
        return EXIT_RESOURCE;
    gpu->own = own;
    own->cl = opencl_loaded(&why_not);
    own->device = opencl_device(gpu->device.ordinal);
    cl_int error = CL_SUCCESS;
    own->context = own->cl->clCreateContext(NULL, 1, &own->device, NULL, NULL, &error);
    if (!own->context)
        return opencl_fail(gpu, STAGE_OPEN, "clCreateContext", error);
    own->queue =
        own->cl->clCreateCommandQueue(own->context, own->device, CL_QUEUE_PROFILING_ENABLE, &error);
    if (!own->queue)
        return opencl_fail(gpu, STAGE_OPEN, "clCreateCommandQueue", error);
    return EXIT_OK;
}

static void close_device(struct gpu *gpu)
{
    struct opencl_gpu *own = opencl_of(gpu);
    if (!own)
        return;
    if (own->queue && !own->abandoned)
        own->cl->clReleaseCommandQueue(own->queue);
    if (own->context && !own->abandoned)
        own->cl->clReleaseContext(own->context);
    free(own);
    gpu->own = NULL;
}

const struct gpu_backend opencl_backend = {
    .name = "opencl",
    .list = opencl_list,
    .open = open_device,
    .close = close_device,
    .memory = opencl_memory,
    .release_memory = opencl_release_memory,
    .free_memory = opencl_free_memory,
    .host_memory = opencl_host_memory,
    .release_host_memory = opencl_release_host_memory,
    .kernel = opencl_kernel,
    .release_kernel = opencl_release_kernel,
    .queue = opencl_queue,
    .release_queue = opencl_release_queue,
    .event = opencl_event,
    .release_event = opencl_release_event,
    .launch = opencl_launch,
    .copy = opencl_copy,
    .fill = opencl_fill,
    .record = opencl_record,
    .done = opencl_done,
    .elapsed = opencl_elapsed,
    .finish = opencl_finish,
};
