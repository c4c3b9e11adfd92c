/* What errors of OpenCL mean. */
#ifndef GPU_BENCH_OPENCL_ERROR_H
#define GPU_BENCH_OPENCL_ERROR_H

#include "device.h"
#include "opencl_api.h"

/* What was under way when a call failed: it decides what the error means. */
enum opencl_stage { STAGE_OPEN, STAGE_MEMORY, STAGE_BUILD, STAGE_WORK };

/* gpu_fail() with the name, the meaning, the remedy and the exit_code of an error. */
int opencl_fail(struct gpu *gpu, enum opencl_stage stage, const char *call, cl_int error);
/* The calloc() of an object. NULL: without memory, with its run_reason(). */
void *opencl_object(struct gpu *gpu, size_t size);

#endif
