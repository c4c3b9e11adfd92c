/* A device's context under CUDA: what all parts of the backend work with. */
#ifndef GPU_BENCH_CUDA_CONTEXT_H
#define GPU_BENCH_CUDA_CONTEXT_H

#include "cuda_api.h"
#include "device.h"
#include "kernel_set.h"

enum { CUDA_MODULES_MAX = 16 };

struct cuda_loaded {
    const struct kernel_image *image;
    cuda_module module;
};

/* gpu->own */
struct cuda {
    const struct cuda_api *api;
    cuda_device device;
    cuda_context context;
    struct cuda_loaded modules[CUDA_MODULES_MAX];
    unsigned module_count;
    bool broken; /* a call has failed: most errors of a kernel leave the context unusable */
};

static inline struct cuda *cuda_of(const struct gpu *gpu)
{
    return gpu->own;
}

/* Tells of a call that has failed; the exit_code. */
int cuda_fail(struct gpu *gpu, const char *call, int code);
/* … of memory of the host that is not to be had. */
int cuda_no_memory(struct gpu *gpu, const char *what, uint64_t bytes);
/* Makes the device's context this thread's. 0 or an exit_code. */
int cuda_enter(struct gpu *gpu);
/* To release something the driver waits for all that runs on the device, for ever if that is hung. When
 * a call has failed or the trial is to end, it is left to the end of the process, which is
 * near. */
bool cuda_may_release(struct gpu *gpu);
/* The context is no more: the calling thread has none. */
void cuda_leave(const struct cuda *cuda);

/* Calls the driver for `gpu` with its context; the enclosing function returns when it fails. */
#define CUDA_CALL(gpu, call, ...)                                                                  \
    do {                                                                                           \
        int code_ = cuda_enter(gpu);                                                               \
        if (code_)                                                                                 \
            return code_;                                                                          \
        code_ = cuda_of(gpu)->api->call(__VA_ARGS__);                                              \
        if (code_ != CUDA_SUCCESS)                                                                 \
            return cuda_fail(gpu, #call, code_);                                                   \
    } while (0)

#endif
