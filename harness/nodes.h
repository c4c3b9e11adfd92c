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
    struct cpulist barred; /* nodes with memory, all of which the cpuset bars */
};

/* Reads which of `cpus` and of the memory are on which node. `proc` and `sys` are "/proc" and "/sys"
 * outside tests. false: this kernel shows no nodes, or there is no memory for the answer. To be freed
 * in any case. */
bool nodes_read(struct nodes *nodes, const struct cpulist *cpus, const char *proc, const char *sys);
void nodes_free(struct nodes *nodes);
/* The distance that the firmware gives (ACPI's SLIT; 10: the node itself); NaN: none is shown. */
double nodes_distance(int from, int to, const char *sys);

/* Lets pages of this range, none of which has been touched, come from this node alone. 0, or -1 with
 * errno. */
int nodes_bind(void *at, size_t bytes, int node);
/* The node of each page that these addresses are on, or a negative number: the kernel's reason why it
 * has none. The pages have been touched. 0, or -1 with errno. */
int nodes_of_pages(void *const *pages, size_t count, int *nodes);

#endif
