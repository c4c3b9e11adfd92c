/* The devices that libcuda.so.1 shows. */
#ifndef GPU_BENCH_CUDA_LIST_H
#define GPU_BENCH_CUDA_LIST_H

#include "device.h"

/* gpu_backend's list() */
void cuda_list(struct gpu_list *list, char looked[GPU_LOOKED_MAX]);

#endif
