#include "cpu_workloads.h"

const char *const isas[] = {"best", "scalar", "sse2", "avx2", "avx512", "neon", NULL};

static const struct workload *const workloads[] = {
    &clock_workload, &fma_workload, &add_sub_workload, &gemm_workload, &linpack_workload, NULL,
};

static const struct program program = {"cpu-bench", "cpu", workloads};

int main(int argc, char **argv)
{
    return bench_main(&program, argc, argv);
}
