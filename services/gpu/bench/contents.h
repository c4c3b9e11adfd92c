/* What the arrays of the memory workloads hold: a word for each place, so that whatever is left out,
 * doubled or put elsewhere shows. */
#ifndef GPU_BENCH_CONTENTS_H
#define GPU_BENCH_CONTENTS_H

#include <stdint.h>

enum { CONTENTS_WORD_BYTES = 4 };

/* Of arrays that have not been worked on; hardly ever what stands in one that has. */
enum { CONTENTS_SCRUBBED = 0x5ca1ab1e };

/* The word at a place, counted in words; the kernels fill, write and check have the same. */
static inline uint32_t contents_word(uint32_t seed, uint64_t place)
{
    return seed + (uint32_t)place * 2654435761u;
}

/* Their sum modulo 2^32, of `count` words from `place` on. */
uint32_t contents_sum(uint32_t seed, uint64_t place, uint64_t count);
/* Writes `count` words, the first for `place`. */
void contents_fill(uint32_t *to, uint64_t place, uint64_t count, uint32_t seed);
/* The index of the first word that is not as it must be; `count`: all are. */
uint64_t contents_wrong(const uint32_t *words, uint64_t place, uint64_t count, uint32_t seed);

#endif
