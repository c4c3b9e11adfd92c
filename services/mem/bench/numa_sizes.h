/* Which nodes numa measures, and how much of each node's memory. */
#ifndef MEM_BENCH_NUMA_SIZES_H
#define MEM_BENCH_NUMA_SIZES_H

#include "nodes.h"
#include "pages.h"
#include "workload.h"

enum { NUMA_GRANULE = 2 * HUGE_PAGE_BYTES }; /* two halves of whole huge pages */

extern const char NUMA_SIZE[];         /* the parameter: memory of each node */
extern const double NUMA_USABLE_SHARE; /* of the memory that is free */

/* As unsupported() and check(). The latter sets the size that is to be found. */
const char *numa_unsupported(const struct run *run);
int numa_check(struct run *run);

/* nodes_read() with the CPUs of this run. */
bool numa_nodes_read(const struct run *run, struct nodes *nodes);
/* Whether so many bytes are at most this share of the node's free memory. */
bool numa_has_room(const struct numa_node *node, double bytes, double share);

#endif
