/* What the control groups of this process allow it, from cgroup v1 and v2. */
#ifndef HOSTBENCH_CGROUP_H
#define HOSTBENCH_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

enum { CGROUP_PATH_MAX = 2048 };

struct cgroup {
    int version;       /* of the hierarchy that carries the cpu controller; 0: none seen */
    double quota_cpus; /* smallest CPU bandwidth on the way to the root, in CPUs; < 0: no limit */
    char cpuset[4096]; /* effective CPUs, empty when unknown */
    char path[CGROUP_PATH_MAX]; /* directory of the cpu controller, empty when unknown */
    char root[512];             /* where that hierarchy is mounted */
};

/* `proc_self` is "/proc/self" outside tests. */
void cgroup_read(struct cgroup *cgroup, const char *proc_self);
/* Seconds this process's groups have been throttled so far, summed over the way to the root: only
 * its growth means something. false when the kernel does not tell. */
bool cgroup_throttled_s(const struct cgroup *cgroup, double *seconds);
/* The memory that the tightest control group of this process leaves it, in bytes; page cache that is
 * not in use counts as free. Names the file of the limit in `source`. false when no group has a
 * limit. */
bool cgroup_memory_left(const char *proc_self, double *bytes, char *source, size_t size);

#endif
