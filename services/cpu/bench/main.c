#include "cpu_workloads.h"

const char *const isas[] = {"best", "scalar", "sse2", "avx2", "avx512", "neon", "sve", NULL};

static const struct workload *const workloads[] = {
    &clock_workload,
    &fma_workload,
    &fma_add_workload,
    &mul_add_workload,
    &add_sub_workload,
    &int_add_workload,
    &int_mul_workload,
    &int_mul_add_workload,
    &dot_workload,
    &compare_workload,
    &gemm_workload,
    &linpack_workload,
    &naive_operations_workload,
    NULL,
};

static const struct program program = {"cpu-bench", "cpu", workloads};

int main(int argc, char **argv)
{
    return bench_main(&program, argc, argv);
}
