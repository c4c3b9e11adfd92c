/* What a walk over arrays goes over, and where it is. */
#ifndef MEM_BENCH_WALK_STATE_H
#define MEM_BENCH_WALK_STATE_H

#include "kernels.h"
#include "statistics.h"
#include "working_set.h"

/* What all threads walk over. */
struct ground {
    struct working_set set;
    enum operation operation;
    bool blocks;        /* there are some */
    size_t block_bytes; /* of each array; without blocks all of it */
    bool random;        /* order of the blocks */
    bool timed;         /* some blocks are timed one by one */
    size_t unit_bytes;  /* of an array, that one unit of work is: a cache line, or a block */
    size_t libc_bytes;  /* … where the C library's routines do it: one call */
};

/* One thread's walk. A round goes over all of its part once. */
struct walk {
    _Alignas(128) const struct ground *ground; /* its own cache lines */
    kernel_function *kernel;
    bool fenced; /* its stores bypass the caches */
    unsigned char *a, *b, *c;
    uint32_t *index;          /* of the blocks of a round; NULL: in order */
    uint64_t blocks;          /* of a round */
    uint64_t rounds;          /* that are complete */
    uint64_t block;           /* of this one */
    size_t offset;            /* in that block */
    uint64_t uncounted_bytes; /* of each array, before the counting began */
    unsigned alike_shift;     /* binary logarithm of how many rounds in a row are alike */
    double factor;            /* of this round */
    uint64_t marks;           /* elements of `b` that change with the rounds; 0: none */
    uint64_t sum;             /* of what was read */
    uint32_t salt;            /* of what the arrays hold */
    uint64_t untimed;         /* blocks until one is timed; UINT64_MAX: none is */
    double clock_read_s;
    double block_s; /* time so far of one that is */
    struct reservoir times;
    double longest_s;
};

#endif
