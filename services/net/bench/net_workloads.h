/* The rows of net-bench's table. */
#ifndef NET_BENCH_NET_WORKLOADS_H
#define NET_BENCH_NET_WORKLOADS_H

#include "workload.h"

extern const struct workload tcp_stream_workload, udp_stream_workload, tcp_rr_workload,
    udp_rr_workload, tcp_crr_workload, naive_stream_workload;

#endif
