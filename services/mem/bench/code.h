/* Code that a trial writes and then executes: small blocks, each on a cache line of its own, that
 * jump from one to the next in a cycle through all of them. */
#ifndef MEM_BENCH_CODE_H
#define MEM_BENCH_CODE_H

#include "workload.h"

enum {
    CODE_UNIT = 32,                     /* jumps of one unit of work; the last block of it counts */
    CODE_STRIDE_MOST = 2 * 1024 * 1024, /* a huge page */
};

struct code {
    char *memory;
    size_t stride;    /* a block in each, on one of its lines */
    uint64_t count;   /* of blocks, a multiple of CODE_UNIT */
    bool random;      /* the order of the blocks; else as they lie */
    uint32_t seed;    /* of a random order */
    const char *at;   /* the jump to go on with */
    uint64_t jumps;   /* so far */
    uint64_t sums[2]; /* what blocks of an even and of an odd number have added up */
};

/* NULL, or why this system lets no program execute what it has written. */
const char *code_refused(void);
/* Writes the blocks into `bytes` of `memory`, a multiple of CODE_UNIT strides, and makes all
 * `part_bytes` from there on executable, and no longer writable. `stride`: a multiple of a cache
 * line, at most CODE_STRIDE_MOST. 0 or an exit_code with its reason. */
int code_begin(const struct thread *thread, struct code *code, void *memory, size_t bytes,
               size_t part_bytes, size_t stride, bool random);
/* CODE_UNIT jumps each. */
void code_units(struct code *code, uint64_t units);
/* Whether there were as many jumps as such units have, through the blocks that the cycle has there,
 * and the blocks are still what was written. 0 or an exit_code with its reason. */
int code_verify(const struct thread *thread, const struct code *code, uint64_t units);

#endif
