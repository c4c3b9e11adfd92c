/* One cycle through all of some nodes in random order, as the host knows it. */
#ifndef GPU_BENCH_CYCLE_H
#define GPU_BENCH_CYCLE_H

#include <stdint.h>

enum {
    CYCLE_NODES_MOST = 1 << 28,
    CYCLE_BYTES_A_NODE = 8, /* of the host's memory */
};

struct cycle {
    uint32_t count;
    uint32_t *order; /* the nodes as they are visited; the first one is node 0 */
    uint32_t *next;  /* the node that follows each */
};

/* Each cycle of so many nodes is as likely as any other; `seed` decides which one it is. 0, or -1
 * without memory. */
int cycle_make(struct cycle *cycle, uint32_t count, uint64_t seed);
/* Where a walk of so many steps from node 0 ends. */
uint32_t cycle_at(const struct cycle *cycle, uint64_t steps);
void cycle_free(struct cycle *cycle);

#endif
