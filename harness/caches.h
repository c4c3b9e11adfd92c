/* The caches of the CPUs that threads are pinned to, as the two sources tell them, which disagree in
 * virtual machines. */
#ifndef HOSTBENCH_CACHES_H
#define HOSTBENCH_CACHES_H

#include "cpulist.h"

struct run;

/* In bytes, 0: unknown. */
struct caches {
    double llc_sysfs;   /* all distinct last-level caches of these CPUs together */
    double llc_getconf; /* what the C library believes of a socket, times the sockets */
    double llc;         /* the larger one */
    double l1d, l2;     /* of one core, after sysfs, else after the C library */
};

/* `sys` is "/sys" outside tests. */
void caches_read(struct caches *caches, const struct cpulist *cpus, unsigned sockets,
                 const char *sys);
/* Those of the CPUs that this run uses. */
void run_caches(const struct run *run, struct caches *caches);

#endif
