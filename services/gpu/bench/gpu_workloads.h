/* The workloads of the program. */
#ifndef GPU_BENCH_GPU_WORKLOADS_H
#define GPU_BENCH_GPU_WORKLOADS_H

#include "workload.h"

extern const struct workload *const gpu_workloads[]; /* NULL-terminated */

#endif
