#include "disk_workloads.h"

static const struct workload *const workloads[] = {
    &seq_read_workload,
    &seq_write_workload,
    &seq_rw_workload,
    &rand_read_workload,
    &rand_write_workload,
    &rand_rw_workload,
    &fsync_latency_workload,
    &naive_read_workload,
    &naive_write_workload,
    &naive_rw_workload,
    NULL,
};

static const struct program program = {"disk-bench", "disk", workloads};

int main(int argc, char **argv)
{
    return bench_main(&program, argc, argv);
}
