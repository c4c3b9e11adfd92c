/* Kernels: which image, loaded into the device, and the function in it. */
#ifndef GPU_BENCH_CUDA_KERNEL_H
#define GPU_BENCH_CUDA_KERNEL_H

#include "cuda_context.h"

/* gpu_kernel->own */
struct cuda_kernel {
    cuda_function function;
    unsigned shared_bytes; /* that it requests */
};

int cuda_kernel(struct gpu *gpu, const char *name, struct gpu_kernel **made);
void cuda_release_kernel(struct gpu_kernel *kernel);
/* Of all kernels, when the device is closed. */
void cuda_unload(struct cuda *cuda);

#endif
