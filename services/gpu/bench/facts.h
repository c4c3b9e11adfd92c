/* What a start event says of the device and of the kernel, and the warnings that belong to them. */
#ifndef GPU_BENCH_FACTS_H
#define GPU_BENCH_FACTS_H

#include "device.h"

void facts_of_device(struct run *run, const struct gpu_device *device);
void facts_of_kernel(struct run *run, const struct gpu_kernel *kernel);

#endif
