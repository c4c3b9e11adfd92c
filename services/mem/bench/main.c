#include "mem_workloads.h"

const char *const isas[] = {"best", "scalar", "sse2", "avx2", "avx512", "neon", NULL};

static const struct workload *const workloads[] = {
    &read_workload, &write_workload, &copy_workload, &scale_workload,
    &add_workload,  &triad_workload, NULL,
};

static const struct program program = {"mem-bench", "mem", workloads};

int main(int argc, char **argv)
{
    return bench_main(&program, argc, argv);
}
