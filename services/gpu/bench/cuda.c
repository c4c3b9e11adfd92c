/* The backend of the CUDA driver API. */
#define _GNU_SOURCE
#include "cuda_error.h"
#include "cuda_list.h"
#include "device.h"
#include "kernel_set.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ARGUMENTS_MAX = 16,
    MODULES_MAX = 16,
    COMPILER_LOG_BYTES = 1024,
    HOST_ALIGNMENT = 2 << 20, /* pageable memory begins at a huge page, as malloc's of this size */
};

struct loaded {
    const struct kernel_image *image;
    cuda_module module;
};

/* gpu->own */
struct cuda {
    const struct cuda_api *api;
    cuda_device device;
    cuda_context context;
    struct loaded modules[MODULES_MAX];
    unsigned module_count;
    bool broken; /* a call has failed: most errors of a kernel leave the context unusable */
};

/* gpu_kernel->own */
struct function {
    cuda_function function;
    unsigned shared_bytes; /* that it has asked for */
};

static _Thread_local const struct cuda *current; /* whose context this thread has */

static struct cuda *own_of(const struct gpu *gpu)
{
    return gpu->own;
}

static int fail(struct gpu *gpu, const char *call, int code)
{
    own_of(gpu)->broken |= code != CUDA_ERROR_OUT_OF_MEMORY;
    return cuda_error(gpu, own_of(gpu)->api, call, code);
}

static int no_memory(struct gpu *gpu, const char *what, uint64_t bytes)
{
    run_reason(gpu->run,
               "no memory of this host for %s (%llu bytes): end other programs, or take a smaller "
               "size",
               what, (unsigned long long)bytes);
    return EXIT_RESOURCE;
}

/* A context belongs to the threads that have made it theirs: the trial is opened by one thread and
 * measured by another. */
static int enter(struct gpu *gpu)
{
    struct cuda *cuda = own_of(gpu);
    if (current == cuda)
        return EXIT_OK;
    int code = cuda->api->cuCtxSetCurrent(cuda->context);
    if (code != CUDA_SUCCESS)
        return fail(gpu, "cuCtxSetCurrent", code);
    current = cuda;
    return EXIT_OK;
}

/* Calls the driver for `gpu` with its context; the enclosing function returns when it fails. */
#define CALL(gpu, call, ...)                                                                       \
    do {                                                                                           \
        int code_ = enter(gpu);                                                                    \
        if (code_)                                                                                 \
            return code_;                                                                          \
        code_ = own_of(gpu)->api->call(__VA_ARGS__);                                               \
        if (code_ != CUDA_SUCCESS)                                                                 \
            return fail(gpu, #call, code_);                                                        \
    } while (0)

/* To release something the driver waits for all that runs on the device, for ever if that is hung. When
 * a call has failed or the trial was told to end, it is left to the end of the process, which is near. */
static bool may_release(struct gpu *gpu)
{
    struct cuda *cuda = own_of(gpu);
    return cuda && !cuda->broken && !run_stopping(gpu->run) && enter(gpu) == EXIT_OK;
}

/* ---- the device ----------------------------------------------------------------------------- */

static int open_device(struct gpu *gpu)
{
    const char *why;
    struct cuda *cuda = calloc(1, sizeof *cuda);
    gpu->own = cuda;
    if (!cuda)
        return no_memory(gpu, "a device's context", sizeof *cuda);
    cuda->api = cuda_api_load(&why);
    if (!cuda->api) {
        run_reason(gpu->run, "%s", why);
        return EXIT_UNSUPPORTED;
    }
    int code = cuda->api->cuDeviceGet(&cuda->device, gpu->device.ordinal);
    if (code != CUDA_SUCCESS)
        return fail(gpu, "cuDeviceGet", code);
    /* The primary one, which the CUDA runtime and the libraries above it use too. */
    code = cuda->api->cuDevicePrimaryCtxRetain(&cuda->context, cuda->device);
    if (code == CUDA_SUCCESS)
        return enter(gpu);
    cuda->context = NULL;
    return fail(gpu, "cuDevicePrimaryCtxRetain", code);
}

static void close_device(struct gpu *gpu)
{
    struct cuda *cuda = own_of(gpu);
    if (!cuda)
        return;
    if (cuda->context && may_release(gpu)) {
        for (unsigned i = 0; i < cuda->module_count; i++)
            cuda->api->cuModuleUnload(cuda->modules[i].module);
        cuda->api->cuCtxSetCurrent(NULL);
        cuda->api->cuDevicePrimaryCtxRelease_v2(cuda->device);
    }
    if (current == cuda)
        current = NULL;
    gpu->own = NULL;
    free(cuda);
}

/* ---- memory --------------------------------------------------------------------------------- */

static int free_memory(struct gpu *gpu, uint64_t *bytes)
{
    size_t left = 0, total;
    CALL(gpu, cuMemGetInfo_v2, &left, &total);
    *bytes = left;
    return EXIT_OK;
}

static int memory(struct gpu *gpu, uint64_t bytes, struct gpu_memory **made)
{
    cuda_pointer at = 0;
    *made = NULL;
    CALL(gpu, cuMemAlloc_v2, &at, bytes);
    *made = calloc(1, sizeof **made);
    if (!*made)
        return no_memory(gpu, "a record", sizeof **made);
    **made = (struct gpu_memory){.gpu = gpu, .bytes = bytes, .handle = at};
    return EXIT_OK;
}

static void release_memory(struct gpu_memory *memory)
{
    if (memory && may_release(memory->gpu))
        own_of(memory->gpu)->api->cuMemFree_v2(memory->handle);
    free(memory);
}

static int pinned_memory(struct gpu *gpu, struct gpu_host_memory *memory)
{
    CALL(gpu, cuMemHostAlloc, &memory->at, memory->bytes, CUDA_HOST_PORTABLE);
    return EXIT_OK;
}

/* Touched now: a first touch would be measured otherwise. */
static int pageable_memory(struct gpu *gpu, struct gpu_host_memory *memory)
{
    uint64_t bytes = (memory->bytes + HOST_ALIGNMENT - 1) / HOST_ALIGNMENT * HOST_ALIGNMENT;
    memory->at = aligned_alloc(HOST_ALIGNMENT, bytes);
    if (!memory->at)
        return no_memory(gpu, "the host's end of the transfers", bytes);
    memset(memory->at, 0, memory->bytes);
    return EXIT_OK;
}

static int host_memory(struct gpu *gpu, uint64_t bytes, bool pinned, struct gpu_host_memory **made)
{
    *made = NULL;
    struct gpu_host_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return no_memory(gpu, "a record", sizeof *memory);
    *memory = (struct gpu_host_memory){.gpu = gpu, .bytes = bytes, .pinned = pinned};
    int failure = pinned ? pinned_memory(gpu, memory) : pageable_memory(gpu, memory);
    if (failure) {
        free(memory);
        return failure;
    }
    *made = memory;
    return EXIT_OK;
}

/* Of a trial that has failed, copies may still be under way, and the driver's threads touch this memory
 * then: it is kept until the process ends. */
static void keep(struct gpu_host_memory *memory)
{
    static struct gpu_host_memory *kept;
    memory->own = kept;
    kept = memory;
}

static void release_host_memory(struct gpu_host_memory *memory)
{
    if (!memory)
        return;
    if (!may_release(memory->gpu)) {
        keep(memory);
        return;
    }
    if (memory->pinned)
        own_of(memory->gpu)->api->cuMemFreeHost(memory->at);
    else
        free(memory->at);
    free(memory);
}

/* ---- kernels -------------------------------------------------------------------------------- */

/* Of the compiler's log, its first line of text. */
static void first_line(char *log)
{
    char *at = log + strspn(log, " \t\r\n");
    at[strcspn(at, "\r\n")] = '\0';
    memmove(log, at, strlen(at) + 1);
}

static int load_failed(struct gpu *gpu, const struct kernel_image *image, int code, char *log)
{
    const struct cuda_api *api = own_of(gpu)->api;
    bool unusable = code == CUDA_ERROR_INVALID_IMAGE || code == CUDA_ERROR_NO_BINARY_FOR_GPU ||
                    code == CUDA_ERROR_INVALID_PTX || code == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
                    code == CUDA_ERROR_JIT_COMPILER_NOT_FOUND ||
                    code == CUDA_ERROR_JIT_COMPILATION_DISABLED;
    first_line(log);
    if (!unusable)
        return fail(gpu, "cuModuleLoadDataEx", code);
    own_of(gpu)->broken = true;
    return gpu_fail(gpu, EXIT_UNSUPPORTED, "cuModuleLoadDataEx", code, cuda_error_name(api, code),
                    "%s with driver %s: %s%s%s", image->file, gpu->device.driver,
                    cuda_error_text(code), log[0] ? "; it says: " : "", log);
}

/* 0 or the driver's code; `log` gets what its compiler says. */
static int load(struct cuda *cuda, const struct kernel_image *image, cuda_module *module,
                char log[COMPILER_LOG_BYTES])
{
    int options[] = {CUDA_JIT_ERROR_LOG_BUFFER, CUDA_JIT_ERROR_LOG_BUFFER_BYTES};
    void *values[] = {log, (void *)(uintptr_t)COMPILER_LOG_BYTES};
    log[0] = '\0';
    return cuda->api->cuModuleLoadDataEx(module, image->bytes, 2, options, values);
}

static bool loaded_before(const struct cuda *cuda, const struct kernel_image *image,
                          cuda_module *module)
{
    for (unsigned i = 0; i < cuda->module_count; i++)
        if (cuda->modules[i].image == image) {
            *module = cuda->modules[i].module;
            return true;
        }
    return false;
}

/* Which machine code a driver takes is its own affair in the end: what it refuses for being of
 * another kind, it may still compile. */
static int module_of(struct gpu *gpu, const char *name, const struct kernel_image **image,
                     cuda_module *module)
{
    struct cuda *cuda = own_of(gpu);
    const struct gpu_device *device = &gpu->device;
    char log[COMPILER_LOG_BYTES];
    int failure = enter(gpu);
    if (failure || loaded_before(cuda, *image, module))
        return failure;
    int code = load(cuda, *image, module, log);
    const struct kernel_image *ptx = kernel_ptx(name, device->cc_major, device->cc_minor);
    if ((code == CUDA_ERROR_NO_BINARY_FOR_GPU || code == CUDA_ERROR_INVALID_IMAGE) &&
        !(*image)->ptx && ptx) {
        *image = ptx;
        if (loaded_before(cuda, ptx, module))
            return EXIT_OK;
        code = load(cuda, ptx, module, log);
    }
    if (code != CUDA_SUCCESS)
        return load_failed(gpu, *image, code, log);
    assert(cuda->module_count < MODULES_MAX);
    cuda->modules[cuda->module_count++] = (struct loaded){*image, *module};
    return EXIT_OK;
}

static int find_function(struct gpu *gpu, struct gpu_kernel *kernel, cuda_module module)
{
    struct function *function = kernel->own;
    int group_size = 0;
    CALL(gpu, cuModuleGetFunction, &function->function, module, kernel->name);
    CALL(gpu, cuFuncGetAttribute, &group_size, CUDA_FUNCTION_GROUP_SIZE_MAX, function->function);
    kernel->group_size_max = group_size > 0 ? (unsigned)group_size : 0;
    return EXIT_OK;
}

static void release_kernel(struct gpu_kernel *kernel)
{
    if (kernel)
        free(kernel->own);
    free(kernel);
}

/* "CUBIN sm_90", "PTX compute_120 by the driver" */
static void describe_build(struct gpu_kernel *kernel, const struct kernel_image *image)
{
    const char *target = strstr(image->file, image->ptx ? "compute_" : "sm_");
    if (!target)
        target = image->file;
    kernel->by_the_driver = image->ptx;
    snprintf(kernel->build, sizeof kernel->build, "%s %.*s%s", image->ptx ? "PTX" : "CUBIN",
             (int)strcspn(target, "."), target, image->ptx ? " by the driver" : "");
}

static int kernel(struct gpu *gpu, const char *name, struct gpu_kernel **made)
{
    cuda_module module = NULL;
    const struct gpu_device *device = &gpu->device;
    const struct kernel_image *image = kernel_image(name, device->cc_major, device->cc_minor);
    *made = NULL;
    if (!image) {
        run_reason(gpu->run,
                   "the program carries no kernel %s for %s of compute capability %d.%d: choose "
                   "another device or workload",
                   name, device->name, device->cc_major, device->cc_minor);
        return EXIT_UNSUPPORTED;
    }
    int failure = module_of(gpu, name, &image, &module);
    if (failure)
        return failure;
    struct gpu_kernel *kernel = calloc(1, sizeof *kernel);
    struct function *function = calloc(1, sizeof *function);
    if (!kernel || !function) {
        free(kernel);
        free(function);
        return no_memory(gpu, "a record", sizeof *kernel);
    }
    *kernel = (struct gpu_kernel){.gpu = gpu, .own = function};
    snprintf(kernel->name, sizeof kernel->name, "%s", name);
    describe_build(kernel, image);
    failure = find_function(gpu, kernel, module);
    if (failure)
        release_kernel(kernel);
    else
        *made = kernel;
    return failure;
}

/* Beyond 48 KiB a kernel has to ask for its shared memory first: CUDA C++ Programming Guide. */
static int allow_shared(struct gpu *gpu, struct function *function, unsigned bytes)
{
    if (bytes <= CUDA_SHARED_BYTES_WITHOUT_ASKING || bytes <= function->shared_bytes)
        return EXIT_OK;
    CALL(gpu, cuFuncSetAttribute, function->function, CUDA_FUNCTION_DYNAMIC_SHARED_BYTES_MAX,
         (int)bytes);
    function->shared_bytes = bytes;
    return EXIT_OK;
}

static int resident_groups(const struct gpu_kernel *kernel, unsigned group_size,
                           unsigned shared_bytes, unsigned *groups)
{
    struct gpu *gpu = kernel->gpu;
    struct function *function = kernel->own;
    int of_one = 0;
    *groups = 0;
    int failure = allow_shared(gpu, function, shared_bytes);
    if (failure)
        return failure;
    CALL(gpu, cuOccupancyMaxActiveBlocksPerMultiprocessor, &of_one, function->function,
         (int)group_size, shared_bytes);
    *groups = of_one > 0 ? (unsigned)of_one * gpu->device.compute_units : 0;
    return EXIT_OK;
}

/* ---- queues and events ---------------------------------------------------------------------- */

static int queue(struct gpu *gpu, struct gpu_queue **made)
{
    cuda_stream stream = NULL;
    *made = NULL;
    CALL(gpu, cuStreamCreate, &stream, CUDA_STREAM_NON_BLOCKING);
    *made = calloc(1, sizeof **made);
    if (!*made)
        return no_memory(gpu, "a record", sizeof **made);
    **made = (struct gpu_queue){.gpu = gpu, .own = stream};
    return EXIT_OK;
}

static void release_queue(struct gpu_queue *queue)
{
    if (queue && may_release(queue->gpu))
        own_of(queue->gpu)->api->cuStreamDestroy_v2(queue->own);
    free(queue);
}

static int event(struct gpu *gpu, struct gpu_event **made)
{
    cuda_event event = NULL;
    *made = NULL;
    CALL(gpu, cuEventCreate, &event, CUDA_EVENT_DEFAULT);
    *made = calloc(1, sizeof **made);
    if (!*made)
        return no_memory(gpu, "a record", sizeof **made);
    **made = (struct gpu_event){.gpu = gpu, .own = event};
    return EXIT_OK;
}

static void release_event(struct gpu_event *event)
{
    if (event && may_release(event->gpu))
        own_of(event->gpu)->api->cuEventDestroy_v2(event->own);
    free(event);
}

static int record(struct gpu_queue *queue, struct gpu_event *event)
{
    CALL(queue->gpu, cuEventRecord, event->own, queue->own);
    return EXIT_OK;
}

static int record_if(struct gpu_queue *queue, struct gpu_event *event)
{
    return event ? record(queue, event) : EXIT_OK;
}

static int done(const struct gpu_event *event, bool *done)
{
    struct gpu *gpu = event->gpu;
    *done = false;
    int failure = enter(gpu);
    if (failure)
        return failure;
    int code = own_of(gpu)->api->cuEventQuery(event->own);
    if (code == CUDA_ERROR_NOT_READY)
        return EXIT_OK;
    if (code != CUDA_SUCCESS)
        return fail(gpu, "cuEventQuery", code);
    *done = true;
    return EXIT_OK;
}

static int elapsed(const struct gpu_event *from, const struct gpu_event *to, double *seconds)
{
    float milliseconds = 0;
    CALL(from->gpu, cuEventElapsedTime, &milliseconds, from->own, to->own);
    *seconds = milliseconds * 1e-3;
    return EXIT_OK;
}

static int finish(struct gpu_queue *queue)
{
    CALL(queue->gpu, cuStreamSynchronize, queue->own);
    return EXIT_OK;
}

/* ---- work ----------------------------------------------------------------------------------- */

static int launch_cluster(struct gpu_queue *queue, const struct gpu_launch *launch,
                          cuda_function function, void **arguments)
{
    struct gpu *gpu = queue->gpu;
    struct cuda_launch_attribute cluster = {.kind = CUDA_LAUNCH_CLUSTER,
                                            .cluster = {launch->cluster, 1, 1}};
    struct cuda_launch_config config = {.grid = {launch->groups, 1, 1},
                                        .block = {launch->group_size, 1, 1},
                                        .shared_bytes = launch->shared_bytes,
                                        .stream = queue->own,
                                        .attributes = &cluster,
                                        .attribute_count = 1};
    if (!own_of(gpu)->api->cuLaunchKernelEx) {
        run_reason(gpu->run, "libcuda.so.1 has no cuLaunchKernelEx, which clusters of groups need: "
                             "install a newer driver");
        return EXIT_UNSUPPORTED;
    }
    CALL(gpu, cuLaunchKernelEx, &config, function, arguments, NULL);
    return EXIT_OK;
}

static int launch_groups(struct gpu_queue *queue, const struct gpu_launch *launch,
                         cuda_function function, void **arguments)
{
    CALL(queue->gpu, cuLaunchKernel, function, launch->groups, 1, 1, launch->group_size, 1, 1,
         launch->shared_bytes, queue->own, arguments, NULL);
    return EXIT_OK;
}

static int launch(struct gpu_queue *queue, const struct gpu_launch *launch, struct gpu_event *begin,
                  struct gpu_event *end)
{
    struct function *function = launch->kernel->own;
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
        failure = launch->cluster ? launch_cluster(queue, launch, function->function, arguments)
                                  : launch_groups(queue, launch, function->function, arguments);
    return failure ? failure : record_if(queue, end);
}

static int transfer(struct gpu_queue *queue, const struct gpu_copy *copy)
{
    struct gpu *gpu = queue->gpu;
    cuda_pointer to = copy->to ? copy->to->handle + copy->to_offset : 0;
    cuda_pointer from = copy->from ? copy->from->handle + copy->from_offset : 0;
    switch (copy->kind) {
    case GPU_HOST_TO_DEVICE:
        CALL(gpu, cuMemcpyHtoDAsync_v2, to, copy->host, copy->bytes, queue->own);
        break;
    case GPU_DEVICE_TO_HOST:
        CALL(gpu, cuMemcpyDtoHAsync_v2, copy->host, from, copy->bytes, queue->own);
        break;
    case GPU_DEVICE_TO_DEVICE:
        CALL(gpu, cuMemcpyDtoDAsync_v2, to, from, copy->bytes, queue->own);
        break;
    }
    return EXIT_OK;
}

static int copy(struct gpu_queue *queue, const struct gpu_copy *copy, struct gpu_event *begin,
                struct gpu_event *end)
{
    int failure = record_if(queue, begin);
    if (!failure)
        failure = transfer(queue, copy);
    return failure ? failure : record_if(queue, end);
}

static int fill(struct gpu_queue *queue, const struct gpu_memory *memory, uint64_t offset,
                uint64_t bytes, uint32_t word)
{
    CALL(queue->gpu, cuMemsetD32Async, memory->handle + offset, word, bytes / sizeof word,
         queue->own);
    return EXIT_OK;
}

/* ---- peers ---------------------------------------------------------------------------------- */

static int peer(struct gpu *gpu, struct gpu *peer)
{
    struct cuda *cuda = own_of(gpu);
    int can = 0;
    CALL(gpu, cuDeviceCanAccessPeer, &can, cuda->device, own_of(peer)->device);
    if (!can) {
        run_reason(gpu->run,
                   "device %s cannot reach the memory of %s: there is no NVLink between them, and "
                   "the host does not let them talk over PCIe (IOMMU, ACS)",
                   gpu->device.uuid, peer->device.uuid);
        return EXIT_UNSUPPORTED;
    }
    int code = cuda->api->cuCtxEnablePeerAccess(own_of(peer)->context, 0);
    if (code == CUDA_SUCCESS || code == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
        return EXIT_OK;
    return fail(gpu, "cuCtxEnablePeerAccess", code);
}

static int transfer_to_peer(struct gpu_queue *queue, const struct gpu_copy *copy)
{
    CALL(queue->gpu, cuMemcpyPeerAsync, copy->to->handle + copy->to_offset,
         own_of(copy->to->gpu)->context, copy->from->handle + copy->from_offset,
         own_of(copy->from->gpu)->context, copy->bytes, queue->own);
    return EXIT_OK;
}

static int peer_copy(struct gpu_queue *queue, const struct gpu_copy *copy, struct gpu_event *begin,
                     struct gpu_event *end)
{
    int failure = record_if(queue, begin);
    if (!failure)
        failure = transfer_to_peer(queue, copy);
    return failure ? failure : record_if(queue, end);
}

const struct gpu_backend cuda_backend = {
    .name = "cuda",
    .list = cuda_list,
    .open = open_device,
    .close = close_device,
    .memory = memory,
    .release_memory = release_memory,
    .free_memory = free_memory,
    .host_memory = host_memory,
    .release_host_memory = release_host_memory,
    .kernel = kernel,
    .release_kernel = release_kernel,
    .resident_groups = resident_groups,
    .queue = queue,
    .release_queue = release_queue,
    .event = event,
    .release_event = release_event,
    .launch = launch,
    .copy = copy,
    .fill = fill,
    .record = record,
    .done = done,
    .elapsed = elapsed,
    .finish = finish,
    .peer = peer,
    .peer_copy = peer_copy,
};
