#include "far_end.h"
#include "net_workloads.h"

#include <string.h>

static const struct workload *const workloads[] = {
    &tcp_stream_workload,
    &udp_stream_workload,
    &tcp_rr_workload,
    &udp_rr_workload,
    &tcp_crr_workload,
    &naive_stream_workload,
    NULL,
};

static const struct program program = {"net-bench", "net", workloads};

/* The far end is no workload: it measures nothing by itself. */
int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "far-end"))
        return far_end_main(argc - 2, argv + 2);
    return bench_main(&program, argc, argv);
}
