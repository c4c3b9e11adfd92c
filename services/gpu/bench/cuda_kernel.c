#define _GNU_SOURCE
#include "cuda_kernel.h"

#include "cuda_error.h"
#include "failure.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPILER_LOG_BYTES = 1024 };

/* Of the compiler's log, its first line of text. */
static void first_line(char *log)
{
    char *at = log + strspn(log, " \t\r\n");
    at[strcspn(at, "\r\n")] = '\0';
    memmove(log, at, strlen(at) + 1);
}

static int load_failed(struct gpu *gpu, const struct kernel_image *image, int code, char *log)
{
    const struct cuda_api *api = cuda_of(gpu)->api;
    bool unusable = code == CUDA_ERROR_INVALID_IMAGE || code == CUDA_ERROR_NO_BINARY_FOR_GPU ||
                    code == CUDA_ERROR_INVALID_PTX || code == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
                    code == CUDA_ERROR_JIT_COMPILER_NOT_FOUND ||
                    code == CUDA_ERROR_JIT_COMPILATION_DISABLED;
    first_line(log);
    if (!unusable)
        return cuda_fail(gpu, "cuModuleLoadDataEx", code);
    cuda_of(gpu)->broken = true;
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
    struct cuda *cuda = cuda_of(gpu);
    const struct gpu_device *device = &gpu->device;
    char log[COMPILER_LOG_BYTES];
    int failure = cuda_enter(gpu);
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
    assert(cuda->module_count < CUDA_MODULES_MAX);
    cuda->modules[cuda->module_count++] = (struct cuda_loaded){*image, *module};
    return EXIT_OK;
}

static int find_function(struct gpu *gpu, struct gpu_kernel *kernel, cuda_module module)
{
    struct cuda_kernel *function = kernel->own;
    int group_size = 0;
    CUDA_CALL(gpu, cuModuleGetFunction, &function->function, module, kernel->name);
    CUDA_CALL(gpu, cuFuncGetAttribute, &group_size, CUDA_FUNCTION_GROUP_SIZE_MAX,
              function->function);
    kernel->group_size_max = group_size > 0 ? (unsigned)group_size : 0;
    return EXIT_OK;
}

void cuda_release_kernel(struct gpu_kernel *kernel)
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

int cuda_kernel(struct gpu *gpu, const char *name, struct gpu_kernel **made)
{
    cuda_module module = NULL;
    const struct gpu_device *device = &gpu->device;
    const struct kernel_image *image = kernel_image(name, device->cc_major, device->cc_minor);
    *made = NULL;
    if (!image) {
        run_reason(gpu->run,
                   "the program carries no kernel %s for %s of compute capability %d.%d: %s", name,
                   device->name, device->cc_major, device->cc_minor,
                   kernel_exists(name) ? "choose another device or workload"
                                       : "it was built without CUDA kernels (NVRTC=none)");
        return EXIT_UNSUPPORTED;
    }
    int failure = module_of(gpu, name, &image, &module);
    if (failure)
        return failure;
    struct gpu_kernel *kernel = calloc(1, sizeof *kernel);
    struct cuda_kernel *function = calloc(1, sizeof *function);
    if (!kernel || !function) {
        free(kernel);
        free(function);
        return cuda_no_memory(gpu, "a record", sizeof *kernel);
    }
    *kernel = (struct gpu_kernel){.gpu = gpu, .own = function};
    snprintf(kernel->name, sizeof kernel->name, "%s", name);
    describe_build(kernel, image);
    failure = find_function(gpu, kernel, module);
    if (failure)
        cuda_release_kernel(kernel);
    else
        *made = kernel;
    return failure;
}

void cuda_unload(struct cuda *cuda)
{
    for (unsigned i = 0; i < cuda->module_count; i++)
        cuda->api->cuModuleUnload(cuda->modules[i].module);
}
