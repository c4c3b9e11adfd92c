/* What the kernel saw of a run: the evidence for calling it disturbed. */
#ifndef HOSTBENCH_DISTURBANCE_H
#define HOSTBENCH_DISTURBANCE_H

#include "cgroup.h"
#include "cpulist.h"

#include <stdbool.h>
#include <stdint.h>

/* Counters of the calling thread. */
struct thread_usage {
    double cpu_s;
    double wait_s; /* on the run queue; NaN when the kernel does not tell, as is the next one */
    double turns;  /* how often it was given a CPU */
    uint64_t involuntary_switches;
};

/* /proc/thread-self/schedstat of the calling thread; -1 when it is not there. */
int thread_usage_open(void);
struct thread_usage thread_usage_read(int schedstat);
struct thread_usage thread_usage_between(const struct thread_usage *before,
                                         const struct thread_usage *after);

/* What the hypervisor has given to others while these CPUs had work; NaN when unknown. */
double steal_read_s(const struct cpulist *cpus);

/* Counters of the host. A figure the kernel does not give is NaN. */
struct host_usage {
    double steal_s;        /* of the requested CPUs */
    double psi_cpu_some_s; /* some task waited for a CPU */
    double throttled_s;    /* cgroup CPU bandwidth */
    double suspended_s;    /* since boot: CLOCK_MONOTONIC stands still meanwhile */
};

struct host_usage host_usage_read(const struct cpulist *cpus, const struct cgroup *cgroup);

#endif
