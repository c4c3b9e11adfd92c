/* Large matrices: their memory and their pseudo-random elements. */
#ifndef CPU_BENCH_MATRIX_H
#define CPU_BENCH_MATRIX_H

#include "workload.h"

#include <stdatomic.h>

/* The elements are a function of their place alone, so a check can make them anew instead of
 * keeping a second matrix: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) of a counter, as a number
 * in [-0.5, 0.5). */
static inline double random_element(uint64_t seed, uint64_t counter)
{
    uint64_t z = seed + (counter + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)(int64_t)(z ^ (z >> 31)) * 0x1p-64;
}

/* Elements of `size` bytes between two columns: whole cache lines, an odd number of them, so that
 * the columns do not fall into the same sets of a cache. */
size_t matrix_leading_dimension(size_t n, size_t size);

/* The memory that a problem of order n takes on so many threads, in bytes. */
typedef double matrix_bytes(size_t n, unsigned threads);

/* Refuses an order whose memory is more than the host and the control groups have left; the
 * reason names the largest one that fits. 0 or an exit_code. */
int matrix_check_fits(struct run *run, size_t n, matrix_bytes *bytes);
/* n, or the largest order below it whose memory fits; 0: none does. */
size_t matrix_largest_order(const struct run *run, size_t n, matrix_bytes *bytes);
/* Address space for a matrix, in huge pages where the kernel has them; nothing is touched yet.
 * NULL with the reason given. */
void *matrix_map(struct run *run, size_t bytes);
void matrix_unmap(void *memory, size_t bytes);
/* To be called while memory is touched for the first time, before every few megabytes: all
 * threads together have `unfilled_bytes` still to touch, which each of them counts down. Others may
 * have taken what was there. 0 or an exit_code. */
int matrix_check_still_fits(struct run *run, const atomic_size_t *unfilled_bytes);
/* Share of the mapping that lies in huge pages; NaN when the kernel does not tell. */
double matrix_huge_page_ratio(const void *memory, size_t bytes);

#endif
