/* The devices that libcuda.so.1 shows. */
#ifndef GPU_BENCH_CUDA_LIST_H
#define GPU_BENCH_CUDA_LIST_H

#include "device.h"

/* The oldest CUDA that the embedded machine code is for. Its compiler is of CUDA 12, and code of one
 * major version runs on every driver of that version: CUDA Compatibility guide, "minor version
 * compatibility", which names driver 525 for CUDA 12. */
enum { CUDA_VERSION_LEAST = 12000 };

/* gpu_backend's list() */
void cuda_list(struct gpu_list *list, char looked[GPU_LOOKED_MAX]);

#endif
