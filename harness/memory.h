/* How much memory may still be taken: what the host has left, and what limits allow. */
#ifndef HOSTBENCH_MEMORY_H
#define HOSTBENCH_MEMORY_H

#include "cpulist.h"

#include <stdbool.h>

struct memory_budget {
    double bytes;    /* the smallest figure that was found */
    char limit[600]; /* which one that is, and where it stands */
};

struct run;

enum { MEMORY_WORDS = 24 };

/* A size as people write it, such as "48 KiB" or "1.5 GiB". Returns the text. */
const char *memory_in_words(double bytes, char text[MEMORY_WORDS]);

/* Memory that can still be filled: MemAvailable, the same of the NUMA nodes that the cpuset allows,
 * and the headroom of every control group on the way to the root. `proc` and `sys` are "/proc" and
 * "/sys" outside tests. false when nothing is known. */
bool memory_left_read(struct memory_budget *left, const char *proc, const char *sys);
/* That, and the address space that may still be reserved: RLIMIT_AS, RLIMIT_DATA, and the kernel's
 * commit limit where it is strict. What is already reserved has been taken off the latter only: ask
 * before reserving. */
bool memory_budget_read(struct memory_budget *budget, const char *proc, const char *sys);
/* What one NUMA node has left, in bytes; NaN when unknown. */
double memory_node_left(int node, const char *sys);
/* Lowers a budget to what the node has left, for memory that is bound to it. */
void memory_budget_bind(struct memory_budget *budget, int node, const char *sys);
/* The NUMA nodes whose memory this process may use. false when the kernel does not tell; to be
 * freed otherwise. */
bool memory_nodes_allowed(struct cpulist *nodes, const char *proc);

/* memory_budget_read() of this host. */
bool run_memory_budget(const struct run *run, struct memory_budget *budget);

#endif
