/* Inside the CUDA backend: what its parts share. */
#ifndef GPU_BENCH_CUDA_H
#define GPU_BENCH_CUDA_H

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

/* gpu_kernel->own */
struct cuda_kernel {
    cuda_function function;
    unsigned shared_bytes; /* that it has asked for */
};

static inline struct cuda *cuda_of(const struct gpu *gpu)
{
    return gpu->own;
}

/* ---- cuda.c --------------------------------------------------------------------------------- */

/* Tells of a call that has failed; the exit_code. */
int cuda_fail(struct gpu *gpu, const char *call, int code);
/* … of memory of the host that is not to be had. */
int cuda_no_memory(struct gpu *gpu, const char *what, uint64_t bytes);
/* Makes the device's context this thread's. 0 or an exit_code. */
int cuda_enter(struct gpu *gpu);
/* To release something the driver waits for all that runs on the device, for ever if that is hung. When
 * a call has failed or the trial was told to end, it is left to the end of the process, which is
 * near. */
bool cuda_may_release(struct gpu *gpu);

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

int cuda_record(struct gpu_queue *queue, struct gpu_event *event);
/* … if there is an event. */
int cuda_record_if(struct gpu_queue *queue, struct gpu_event *event);

/* ---- cuda_memory.c -------------------------------------------------------------------------- */

int cuda_free_memory(struct gpu *gpu, uint64_t *bytes);
int cuda_memory(struct gpu *gpu, uint64_t bytes, struct gpu_memory **made);
void cuda_release_memory(struct gpu_memory *memory);
int cuda_host_memory(struct gpu *gpu, uint64_t bytes, bool pinned, struct gpu_host_memory **made);
void cuda_release_host_memory(struct gpu_host_memory *memory);

/* ---- cuda_kernel.c -------------------------------------------------------------------------- */

int cuda_kernel(struct gpu *gpu, const char *name, struct gpu_kernel **made);
void cuda_release_kernel(struct gpu_kernel *kernel);
/* Of all kernels, when the device is closed. */
void cuda_unload(struct cuda *cuda);

/* ---- cuda_work.c ---------------------------------------------------------------------------- */

int cuda_launch(struct gpu_queue *queue, const struct gpu_launch *launch, struct gpu_event *begin,
                struct gpu_event *end);
int cuda_copy(struct gpu_queue *queue, const struct gpu_copy *copy, struct gpu_event *begin,
              struct gpu_event *end);
int cuda_fill(struct gpu_queue *queue, const struct gpu_memory *memory, uint64_t offset,
              uint64_t bytes, uint32_t word);
int cuda_peer(struct gpu *gpu, struct gpu *peer);
int cuda_peer_copy(struct gpu_queue *queue, const struct gpu_copy *copy, struct gpu_event *begin,
                   struct gpu_event *end);

#endif
