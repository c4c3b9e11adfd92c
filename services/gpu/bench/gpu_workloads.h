/* The workloads of the program. */
#ifndef GPU_BENCH_GPU_WORKLOADS_H
#define GPU_BENCH_GPU_WORKLOADS_H

#include "workload.h"

extern const struct workload fma_workload, int_add_workload, int_mul_add_workload, dp4a_workload;

extern const struct workload *const gpu_workloads[]; /* NULL-terminated */

#endif
