#define _GNU_SOURCE
#include "order.h"

#include "pages.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Odd, with about as many ones as zeros: those of MurmurHash3's and of Weyl sequences. */
static const uint32_t FIRST = 0x85ebca6bu, SECOND = 0xc2b2ae35u, THIRD = 0x9e3779b1u;

static unsigned bits_of(uint64_t count)
{
    unsigned bits = 1;
    while (bits < 32 && count > (uint64_t)1 << bits)
        bits++;
    return bits;
}

void permutation_begin(struct permutation *permutation, uint64_t count, uint32_t seed)
{
    unsigned bits = bits_of(count);
    *permutation = (struct permutation){
        .count = count,
        .mask = (uint32_t)(((uint64_t)1 << bits) - 1),
        .shift = (bits + 1) / 2,
        .seed = seed,
    };
}

static inline uint32_t scatter(const struct permutation *permutation, uint32_t x)
{
    uint32_t mask = permutation->mask;
    unsigned shift = permutation->shift;
    x = ((x + permutation->seed) * FIRST) & mask;
    x ^= x >> shift;
    x = (x * SECOND) & mask;
    x ^= x >> shift;
    x = (x * THIRD) & mask;
    return x ^ x >> shift;
}

/* Without a branch that could be predicted wrongly: each number is written, and stays if it is
 * not too large. */
void permutation_fill(struct permutation *permutation, uint32_t *to, size_t n)
{
    const struct permutation at = *permutation;
    uint64_t next = at.next;
    for (size_t filled = 0; filled < n; next++) {
        uint32_t x = scatter(&at, (uint32_t)next);
        to[filled] = x;
        filled += x < at.count;
    }
    permutation->next = next;
}

/* The index of a random order is an array of 32-bit numbers, at most so many: of more blocks it
 * holds a random selection, which at a cache line a block is 2 GiB. */
enum { INDEX_MOST = 1 << 25 };

uint64_t order_round(uint64_t blocks)
{
    return blocks < INDEX_MOST ? blocks : INDEX_MOST;
}

/* Whole huge pages, so that reading the index costs few translations of addresses. */
size_t index_bytes(uint64_t round)
{
    return ((round + INDEX_AHEAD) * sizeof(uint32_t) + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES *
           HUGE_PAGE_BYTES;
}

uint32_t *index_make(uint64_t blocks, uint32_t seed)
{
    uint64_t round = order_round(blocks);
    size_t bytes = index_bytes(round);
    uint32_t *index = aligned_alloc(HUGE_PAGE_BYTES, bytes);
    struct permutation permutation;
    if (!index)
        return NULL;
    madvise(index, bytes, MADV_HUGEPAGE);
    permutation_begin(&permutation, blocks, seed);
    permutation_fill(&permutation, index, round);
    for (uint64_t i = 0; i < INDEX_AHEAD; i++)
        index[round + i] = index[i % round];
    return index;
}
