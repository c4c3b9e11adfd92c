/* The inner loops of the bandwidth workloads: what is done to so many bytes of contiguous memory. */
#ifndef MEM_BENCH_KERNELS_H
#define MEM_BENCH_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LINE_BYTES = 64,   /* of a cache line */
    ELEMENT_BYTES = 8, /* STREAM's: fp64 */
    PAGE_BYTES = 4096, /* the smallest; how far apart concurrent streams are */
};

/* STREAM's, with `a` the array that is written, `b` and `c` those that are read. */
enum operation {
    OPERATION_READ,  /* sum of b, as 64-bit integers */
    OPERATION_WRITE, /* a = factor, whose eight bytes are all the same */
    OPERATION_COPY,  /* a = b */
    OPERATION_SCALE, /* a = factor b */
    OPERATION_ADD,   /* a = b + c */
    OPERATION_TRIAD, /* a = b + factor c */
};

/* `bytes` of each array, in one or more equal rounds. Whole cache lines go fast, what is left over
 * follows in elements and bytes; scale, add and triad take whole elements only. Stores that bypass
 * the caches need `a` at a multiple of a line, and kernel_fence() before others may see them. Gives
 * the sum of all reads (the bytes behind the last element each count as a number of their own),
 * else 0. */
typedef uint64_t kernel_function(unsigned char *a, const unsigned char *b, const unsigned char *c,
                                 size_t bytes, double factor, uint64_t rounds);

struct kernel {
    enum operation operation;
    const char *isa;
    const char *store;    /* plain, nt, libc */
    const char *streams;  /* how many pages are worked on side by side: 1, 4, 8 */
    const char *prefetch; /* none; pages: a line of a page some way ahead, once a page */
    unsigned features;    /* set of enum feature */
    kernel_function *function;
};

/* Ended by a row without a function. Of each operation the widest isa comes last. */
extern const struct kernel kernels[];

/* Waits until the stores that bypass the caches are done. */
void kernel_fence(void);
/* Does nothing: what the walk over blocks costs without any work on them. */
kernel_function kernel_empty;

#endif
