/* The NUMA nodes of this host, what this process may use of them, and where its memory lies. The
 * calls are the kernel's own: they need no library. */
#ifndef HOSTBENCH_NODES_H
#define HOSTBENCH_NODES_H

#include "cpulist.h"

#include <stdbool.h>
#include <stddef.h>

enum { NODES_MAX = 1024 };

struct numa_node {
    int number;
    struct cpulist cpus; /* those of the given ones that are on it; none: memory alone */
    bool has_memory;     /* … that this process may use */
};

struct nodes {
    struct numa_node *nodes; /* those that have either, by their numbers */
    size_t count;
    struct cpulist barred; /* nodes whose memory the cpuset does not allow */
};

/* Reads which of `cpus` and of the memory are on which node. `proc` and `sys` are "/proc" and "/sys"
 * outside tests. Returns false if the kernel lists no nodes, or if
 * memory ran out. Call nodes_free() in either case. */
bool nodes_read(struct nodes *nodes, const struct cpulist *cpus, const char *proc, const char *sys);
void nodes_free(struct nodes *nodes);
/* The distance that the kernel states (10: the node itself); NaN if it states none. */
double nodes_distance(int from, int to, const char *sys);

/* Binds a range to a node, so that its pages can only come from there. Call it before the first touch.
 * Returns 0, or -1 with errno. */
int nodes_bind(void *at, size_t bytes, int node);
/* Looks up the node of each of these pages, which must have been touched. A negative number is the
 * kernel's error for that page. Returns 0, or -1 with errno. */
int nodes_of_pages(void *const *pages, size_t count, int *nodes);

#endif
