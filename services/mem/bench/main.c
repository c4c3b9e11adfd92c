#include "mem_workloads.h"

static const struct workload *const workloads[] = {
    &read_workload,
    &write_workload,
    &copy_workload,
    &scale_workload,
    &add_workload,
    &triad_workload,
    &pointer_chase_workload,
    &loaded_latency_workload,
    &random_access_workload,
    &code_chase_workload,
    &read_write_workload,
    &memset_write_workload,
    &naive_copy_workload,
    &naive_set_workload,
    &numa_workload,
    &patterns_workload,
    NULL,
};

static const struct program program = {"mem-bench", "mem", workloads};

int main(int argc, char **argv)
{
    return bench_main(&program, argc, argv);
}
