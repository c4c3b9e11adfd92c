#include "devices.h"
#include "gpu_workloads.h"

#include <string.h>

static const struct workload *const workloads[] = {
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

static const struct program program = {"gpu-bench", "gpu", workloads};

/* The list of devices is no workload: it measures nothing. */
int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--list-devices"))
        return devices_print();
    return bench_main(&program, argc, argv);
}
