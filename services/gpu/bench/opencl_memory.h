/* Memory of a device, and of the host for its copies. */
#ifndef GPU_BENCH_OPENCL_MEMORY_H
#define GPU_BENCH_OPENCL_MEMORY_H

#include "device.h"

int opencl_memory(struct gpu *gpu, uint64_t bytes, struct gpu_memory **memory);
void opencl_release_memory(struct gpu_memory *memory);
int opencl_free_memory(struct gpu *gpu, uint64_t *bytes);
int opencl_host_memory(struct gpu *gpu, uint64_t bytes, bool pinned,
                       struct gpu_host_memory **memory);
void opencl_release_host_memory(struct gpu_host_memory *memory);

#endif
