#include "devices.h"
#include "gpu_workloads.h"

#include <string.h>

static const struct program program = {"gpu-bench", "gpu", gpu_workloads};

/* The list of devices is no workload: it measures nothing. */
int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--list-devices"))
        return devices_print();
    return bench_main(&program, argc, argv);
}
