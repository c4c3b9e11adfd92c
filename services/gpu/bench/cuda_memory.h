/* Memory of a device, and of the host for its copies. */
#ifndef GPU_BENCH_CUDA_MEMORY_H
#define GPU_BENCH_CUDA_MEMORY_H

#include "device.h"

int cuda_free_memory(struct gpu *gpu, uint64_t *bytes);
int cuda_memory(struct gpu *gpu, uint64_t bytes, struct gpu_memory **made);
void cuda_release_memory(struct gpu_memory *memory);
int cuda_host_memory(struct gpu *gpu, uint64_t bytes, bool pinned, struct gpu_host_memory **made);
void cuda_release_host_memory(struct gpu_host_memory *memory);

#endif
