/* The devices that OpenCL has. */
#ifndef GPU_BENCH_OPENCL_LIST_H
#define GPU_BENCH_OPENCL_LIST_H

#include "device.h"
#include "opencl_api.h"

void opencl_list(struct gpu_list *list, char looked[GPU_LOOKED_MAX]);
/* A device that was listed, by its ordinal. */
cl_device_id opencl_device(int ordinal);

#endif
