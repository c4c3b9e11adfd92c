/* A cycle of pointers through nodes in random order: each load tells where the next one goes. */
#ifndef MEM_BENCH_CHASE_H
#define MEM_BENCH_CHASE_H

#include "workload.h"

enum { CHASE_UNROLLED = 64 }; /* hops in one unit of work */

/* One to a cache line. */
struct node {
    _Alignas(64) struct node *next;
    uint64_t number; /* in the cycle, from 0 on */
};

struct chase {
    struct node *nodes;
    uint64_t count; /* at most 2^32 */
    struct node *at;
    uint64_t hops; /* so far */
};

/* One cycle through all nodes, whose order `seed` decides. */
void chase_begin(struct chase *chase, void *memory, size_t bytes, uint32_t seed);
/* CHASE_UNROLLED hops each. */
void chase_units(struct chase *chase, uint64_t units);
/* Whether there were as many hops as such units have, they led where the cycle must have led them,
 * and the cycle is still closed. 0 or an exit_code with its reason. */
int chase_verify(const struct thread *thread, const struct chase *chase, uint64_t units);

#endif
