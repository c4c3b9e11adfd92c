/* The NUMA node that the arrays lie on. */
#ifndef MEM_BENCH_MEMORY_NODE_H
#define MEM_BENCH_MEMORY_NODE_H

#include "workload.h"

/* Whether memory_node is a node that this process may use. 0 or an exit_code with its reason. */
int memory_node_check(struct run *run);
/* Binds the calling thread's part of the arrays to memory_node, before it is touched; local: nothing
 * to do. Where this process may not bind, memory still comes from the node of the thread that
 * touches it: a warning if that is the same node, else an error. */
int memory_node_bind(const struct thread *thread, void *at, size_t bytes);
/* Warns when the kernel has put pages elsewhere than on that node, or does not tell where it has put
 * them on a host with several. The part of thread i: `bytes` at base + i * step. */
void memory_node_inspect(struct run *run, const void *base, size_t step, size_t bytes);

#endif
