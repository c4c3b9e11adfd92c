/* The workloads of the program. */
#ifndef GPU_BENCH_GPU_WORKLOADS_H
#define GPU_BENCH_GPU_WORKLOADS_H

#include "workload.h"

extern const struct workload fma_workload, int_add_workload, int_mul_add_workload, dp4a_workload;
extern const struct workload tensor_workload, gemm_workload;
extern const struct workload read_workload, write_workload, copy_workload, triad_workload,
    pointer_chase_workload;
extern const struct workload host_to_device_workload, device_to_host_workload,
    bidirectional_workload, peer_to_peer_workload, launch_latency_workload;

#endif
