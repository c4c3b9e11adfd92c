/* Kernels, compiled by the driver. */
#ifndef GPU_BENCH_OPENCL_KERNEL_H
#define GPU_BENCH_OPENCL_KERNEL_H

#include "device.h"
#include "opencl_api.h"

/* kernel->own. */
struct opencl_built {
    cl_program program;
    cl_kernel kernel;
};

int opencl_kernel(struct gpu *gpu, const char *name, struct gpu_kernel **kernel);
void opencl_release_kernel(struct gpu_kernel *kernel);

#endif
