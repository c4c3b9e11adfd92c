#define _GNU_SOURCE
#include "opencl_memory.h"

#include "memory.h"
#include "opencl_error.h"
#include "opencl_gpu.h"
#include "opencl_queue.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- how much there is ------------------------------------------------------------------------- */

/* Of memory that is the host's, where a driver promises what the host does not have. UINT64_MAX:
 * unknown. */
static uint64_t host_budget(const struct gpu *gpu, struct memory_budget *budget)
{
    if (!run_memory_budget(gpu->run, budget))
        return UINT64_MAX;
    return budget->bytes > 0 ? (uint64_t)budget->bytes : 0;
}

int opencl_free_memory(struct gpu *gpu, uint64_t *bytes)
{
    struct opencl_gpu *own = opencl_of(gpu);
    size_t amd_kib[2] = {0};
    struct memory_budget budget;
    uint64_t total = gpu->device.memory_bytes;
    *bytes = total > own->taken_bytes ? total - own->taken_bytes : 0;
    bool reported = own->cl->clGetDeviceInfo(own->device, CL_DEVICE_GLOBAL_FREE_MEMORY_AMD,
                                             sizeof amd_kib, amd_kib, NULL) == CL_SUCCESS;
    uint64_t host_bytes = gpu->device.unified ? host_budget(gpu, &budget) : UINT64_MAX;
    if (reported && (uint64_t)amd_kib[0] * 1024 < *bytes)
        *bytes = (uint64_t)amd_kib[0] * 1024;
    if (host_bytes < *bytes)
        *bytes = host_bytes;
    gpu->free_unknown = !reported && host_bytes == UINT64_MAX;
    return EXIT_OK;
}

static int refuse_host_memory(struct gpu *gpu, uint64_t bytes, const struct memory_budget *budget)
{
    run_reason(gpu->run,
               "%" PRIu64 " bytes of the host's memory: %.0f are left (%s): use a smaller "
               "--size-bytes, or stop what else uses it",
               bytes, fmax(budget->bytes, 0), budget->limit);
    return EXIT_RESOURCE;
}

static int check_size(struct gpu *gpu, uint64_t bytes)
{
    struct memory_budget budget;
    uint64_t largest = gpu->device.allocation_bytes;
    if (largest && bytes > largest) {
        run_reason(gpu->run,
                   "%" PRIu64 " bytes: %s gives at most %" PRIu64
                   " in one piece (CL_DEVICE_MAX_MEM_ALLOC_SIZE): use a smaller --size-bytes",
                   bytes, gpu->device.name, largest);
        return EXIT_RESOURCE;
    }
    if (gpu->device.unified && host_budget(gpu, &budget) < bytes)
        return refuse_host_memory(gpu, bytes, &budget);
    return EXIT_OK;
}

/* ---- of the device ----------------------------------------------------------------------------- */

/* Drivers put off the allocation until a buffer is used: not into the measurement. */
static int settle(struct gpu *gpu, cl_mem buffer)
{
    const struct opencl_gpu *own = opencl_of(gpu);
    cl_int error = own->cl->clEnqueueMigrateMemObjects(
        own->queue, 1, &buffer, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0, NULL, NULL);
    if (error)
        return opencl_fail(gpu, STAGE_MEMORY, "clEnqueueMigrateMemObjects", error);
    error = own->cl->clFinish(own->queue);
    return error ? opencl_fail(gpu, STAGE_MEMORY, "clFinish", error) : EXIT_OK;
}

static int allocate(struct gpu *gpu, uint64_t bytes, struct gpu_memory *memory)
{
    struct opencl_gpu *own = opencl_of(gpu);
    cl_int error = CL_SUCCESS;
    cl_mem buffer = own->cl->clCreateBuffer(own->context, CL_MEM_READ_WRITE, bytes, NULL, &error);
    if (!buffer)
        return opencl_fail(gpu, STAGE_MEMORY, "clCreateBuffer", error);
    memory->gpu = gpu;
    memory->bytes = bytes;
    memory->handle = (uintptr_t)buffer;
    own->taken_bytes += bytes;
    return settle(gpu, buffer);
}

int opencl_memory(struct gpu *gpu, uint64_t bytes, struct gpu_memory **memory)
{
    *memory = NULL;
    int code = check_size(gpu, bytes);
    if (code)
        return code;
    struct gpu_memory *made = opencl_object(gpu, sizeof *made);
    if (!made)
        return EXIT_RESOURCE;
    code = allocate(gpu, bytes, made);
    if (!code)
        *memory = made;
    else if (made->gpu)
        opencl_release_memory(made);
    else
        free(made);
    return code;
}

void opencl_release_memory(struct gpu_memory *memory)
{
    if (!memory)
        return;
    struct opencl_gpu *own = opencl_of(memory->gpu);
    if (opencl_comes_to_rest(memory->gpu)) /* drivers wait here for what uses it */
        own->cl->clReleaseMemObject(opencl_buffer(memory));
    own->taken_bytes -= memory->bytes;
    free(memory);
}

/* ---- of the host ------------------------------------------------------------------------------- */

static int map_pageable(struct gpu *gpu, struct gpu_host_memory *memory)
{
    void *at =
        mmap(NULL, memory->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        run_reason(
            gpu->run,
            "%" PRIu64
            " bytes of the host's memory are not available (mmap): use a smaller --size-bytes",
            memory->bytes);
        return EXIT_RESOURCE;
    }
    memory->at = at;
    return EXIT_OK;
}

/* OpenCL pins nothing by name: a buffer that the driver allocates on the host, mapped for good, is
 * what drivers copy from and to without a detour. */
static int map_pinned(struct gpu *gpu, struct gpu_host_memory *memory)
{
    const struct opencl_gpu *own = opencl_of(gpu);
    cl_int error = CL_SUCCESS;
    cl_mem buffer = own->cl->clCreateBuffer(own->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                            memory->bytes, NULL, &error);
    if (!buffer)
        return opencl_fail(gpu, STAGE_MEMORY, "clCreateBuffer", error);
    memory->own = buffer;
    memory->at = own->cl->clEnqueueMapBuffer(own->queue, buffer, 1, CL_MAP_READ | CL_MAP_WRITE, 0,
                                             memory->bytes, 0, NULL, NULL, &error);
    return memory->at ? EXIT_OK : opencl_fail(gpu, STAGE_MEMORY, "clEnqueueMapBuffer", error);
}

int opencl_host_memory(struct gpu *gpu, uint64_t bytes, bool pinned,
                       struct gpu_host_memory **memory)
{
    *memory = NULL;
    struct memory_budget budget;
    if (host_budget(gpu, &budget) < bytes)
        return refuse_host_memory(gpu, bytes, &budget);
    struct gpu_host_memory *made = opencl_object(gpu, sizeof *made);
    if (!made)
        return EXIT_RESOURCE;
    *made = (struct gpu_host_memory){.gpu = gpu, .bytes = bytes, .pinned = pinned};
    int code = pinned ? map_pinned(gpu, made) : map_pageable(gpu, made);
    if (code)
        opencl_release_host_memory(made);
    else
        *memory = made;
    return code;
}

static void unmap_pinned(const struct opencl_gpu *own, const struct gpu_host_memory *memory)
{
    if (memory->at) {
        own->cl->clEnqueueUnmapMemObject(own->queue, memory->own, memory->at, 0, NULL, NULL);
        own->cl->clFinish(own->queue);
    }
    own->cl->clReleaseMemObject(memory->own);
}

void opencl_release_host_memory(struct gpu_host_memory *memory)
{
    if (!memory)
        return;
    /* Copies that are under way must not find it gone. */
    if (opencl_comes_to_rest(memory->gpu)) {
        if (memory->own)
            unmap_pinned(opencl_of(memory->gpu), memory);
        else if (memory->at)
            munmap(memory->at, memory->bytes);
    }
    free(memory);
}
