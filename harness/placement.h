/* Which CPU each thread is pinned to. */
#ifndef HOSTBENCH_PLACEMENT_H
#define HOSTBENCH_PLACEMENT_H

#include "cpulist.h"

#include <stdbool.h>

struct placement {
    struct cpulist affinity; /* what this process may use: a cpuset need not start at 0 */
    struct cpulist cpus;     /* one a thread */
    unsigned cores;          /* distinct physical cores among `cpus` */
    unsigned sockets;
    bool smt_shared;     /* two threads on SMT siblings of one core */
    bool oversubscribed; /* two threads on one CPU */
    bool given;          /* the caller named the CPUs */
};

/* Reads sched_getaffinity. false when the kernel refuses. */
bool placement_affinity(struct cpulist *affinity);
/* Places `threads` threads: on `given` CPUs in turn, or one per core before any SMT sibling, fast
 * cores before slow ones. `sysfs` is "/sys" outside tests. false without memory. */
bool placement_choose(struct placement *placement, unsigned threads, const struct cpulist *given,
                      const char *sysfs);
/* The CPUs of the affinity that no thread is on, one per core before any SMT sibling; to be freed.
 * Empty: there are none, or no memory for it. */
struct cpulist placement_left(const struct placement *placement, const char *sysfs);
/* Whether these are two CPUs of one core. */
bool placement_siblings(int one, int other, const char *sysfs);
/* Whether any two of the CPUs are. */
bool placement_has_siblings(const struct cpulist *cpus, const char *sysfs);
/* Whether a thread of this process (its number; 0: the calling one) may run on this CPU alone, or has
 * ended. The kernel moves a pinned thread to other CPUs when its own goes offline, or leaves the
 * cpuset. */
bool placement_keeps(int thread, int cpu);
void placement_free(struct placement *placement);

#endif
