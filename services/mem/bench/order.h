/* Orders in which blocks are visited: pseudo-random ones that visit each block once a round. */
#ifndef MEM_BENCH_ORDER_H
#define MEM_BENCH_ORDER_H

#include <stddef.h>
#include <stdint.h>

/* A permutation of 0 … count - 1, made up as it is needed: a bijection of all numbers of as many
 * bits (odd multiplications and shifted exclusive ors), without those that are too large. */
struct permutation {
    uint64_t count; /* at most 2^32 */
    uint64_t next;
    uint32_t mask;
    unsigned shift;
    uint32_t seed;
};

void permutation_begin(struct permutation *permutation, uint64_t count, uint32_t seed);
/* The next `n` of it; so many must be left. */
void permutation_fill(struct permutation *permutation, uint32_t *to, size_t n);

/* At one line of each stride, the blocks of a stride of whole pages would share a few sets of a
 * cache: which of the stride's lines it is, is spread by the golden ratio (Knuth, The Art of Computer
 * Programming, 6.4). */
static inline uint64_t spread_line(uint64_t place, uint64_t lines)
{
    uint64_t spread = place * 0x9E3779B97F4A7C15u >> 32;
    return spread * lines >> 32;
}

/* Behind the round its first blocks follow again, for who looks so far ahead. */
enum { INDEX_AHEAD = 32 };

/* The blocks of a round. */
uint64_t order_round(uint64_t blocks);
/* Bytes of an index of so many. */
size_t index_bytes(uint64_t round);
/* The blocks of a round in their order; to be freed. NULL without memory. */
uint32_t *index_make(uint64_t blocks, uint32_t seed);

#endif
