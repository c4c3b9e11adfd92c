/* The rows of cpu-bench's table. A new workload is one C file, one line here and one in main.c. */
#ifndef CPU_BENCH_CPU_WORKLOADS_H
#define CPU_BENCH_CPU_WORKLOADS_H

#include "workload.h"

extern const struct workload clock_workload;
extern const struct workload fma_workload;
extern const struct workload fma_add_workload;
extern const struct workload mul_add_workload;
extern const struct workload add_sub_workload;
extern const struct workload int_add_workload;
extern const struct workload int_mul_workload;
extern const struct workload int_mul_add_workload;
extern const struct workload dot_workload;
extern const struct workload compare_workload;
extern const struct workload gemm_workload;
extern const struct workload linpack_workload;
extern const struct workload naive_operations_workload;

/* Choices of every isa parameter. */
extern const char *const isas[];

#endif
