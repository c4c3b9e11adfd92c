/* A cycle of pointers through nodes in random order: each load tells where the next one goes. Several
 * chains follow it at equal distances, so that each finds a line only as long after the chain before
 * it as the whole cycle is large: their loads do not depend on one another. */
#ifndef MEM_BENCH_CHASE_H
#define MEM_BENCH_CHASE_H

#include "workload.h"

enum {
    CHASE_UNROLLED = 64, /* hops of each chain in one unit of work */
    CHAINS_MOST = 32,
};

/* A cache line. */
struct node {
    _Alignas(64) struct node *next;
    uint64_t number; /* in the cycle, from 0 on */
};

struct chase {
    char *memory;
    size_t stride;  /* a node in each, on one of its lines */
    uint64_t count; /* of nodes, at most 2^32 */
    unsigned chains;
    struct node *at[CHAINS_MOST];
    uint64_t hops; /* of each chain so far */
};

/* One cycle through all nodes, whose order `seed` decides. `stride`: a multiple of a node;
 * `chains`: at most as many as there are nodes. */
void chase_begin(struct chase *chase, void *memory, size_t bytes, size_t stride, unsigned chains,
                 uint32_t seed);
/* CHASE_UNROLLED hops of each chain each. */
void chase_units(struct chase *chase, uint64_t units);
/* Whether there were as many hops as such units have, they led where the cycle must have led them,
 * and the cycle is still closed. 0 or an exit_code with its reason. */
int chase_verify(const struct thread *thread, const struct chase *chase, uint64_t units);

#endif
