/* The table. Its rows stand in rows_*.c; what differs between them is data and a kind. */
#include "gpu_workloads.h"
#include "rows.h"

#include <stddef.h>

const char *const rows_backends[] = {"auto", "cuda", "opencl", NULL};
const char *const rows_excludes[] = {"threads", NULL};

const struct workload *const gpu_workloads[] = {
    &fma_workload,
    &int_add_workload,
    &int_mul_add_workload,
    &dp4a_workload,
    &tensor_workload,
    &gemm_workload,
    &read_workload,
    &write_workload,
    &copy_workload,
    &triad_workload,
    &pointer_chase_workload,
    &host_to_device_workload,
    &device_to_host_workload,
    &bidirectional_workload,
    &peer_to_peer_workload,
    &launch_latency_workload,
    NULL,
};
