/* The workloads of disk-bench. */
#ifndef DISK_BENCH_DISK_WORKLOADS_H
#define DISK_BENCH_DISK_WORKLOADS_H

#include "workload.h"

extern const struct workload seq_read_workload, seq_write_workload, seq_rw_workload,
    rand_read_workload, rand_write_workload, rand_rw_workload, fsync_latency_workload,
    naive_read_workload, naive_write_workload, naive_rw_workload;

#endif
