#include "workload.h"

int main(int argc, char **argv)
{
    const struct program program = {"cpu-bench", "cpu", registered_workloads()};
    return bench_main(&program, argc, argv);
}
