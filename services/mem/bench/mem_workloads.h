/* The workloads of mem-bench. */
#ifndef MEM_BENCH_MEM_WORKLOADS_H
#define MEM_BENCH_MEM_WORKLOADS_H

#include "workload.h"

extern const struct workload read_workload, write_workload, copy_workload, scale_workload,
    add_workload, triad_workload, pointer_chase_workload, loaded_latency_workload,
    random_access_workload, code_chase_workload, read_write_workload, memset_write_workload,
    naive_copy_workload, naive_set_workload, numa_workload, patterns_workload;

#endif
