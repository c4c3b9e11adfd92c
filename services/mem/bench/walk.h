/* A walk over arrays by a kernel: from one end to the other, or in blocks, in order or not. */
#ifndef MEM_BENCH_WALK_H
#define MEM_BENCH_WALK_H

#include "kernels.h"
#include "statistics.h"
#include "working_set.h"

enum {
    TIMED_BLOCK_LEAST = 8192, /* what a reading of the clock takes is small beside it */
    TIMES_KEPT = 1 << 15,     /* of a walk */
};

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
    double factor;            /* of this round */
    uint64_t marks;           /* elements of `b` that change with the rounds; 0: none */
    unsigned mark_shift;      /* binary logarithm of the rounds from one change to the next */
    uint64_t sum;             /* of what was read */
    uint32_t salt;            /* of what the arrays hold */
    uint64_t untimed;         /* blocks until one is timed; UINT64_MAX: none is */
    double clock_read_s;
    double block_s; /* time so far of one that is */
    struct reservoir times;
    double longest_s;
};

/* The arrays an operation works on, which is how many bytes STREAM counts for each byte of one. */
unsigned walk_arrays(enum operation operation);
/* The block and unit sizes for these parameters; `block_bytes` 0: no blocks. */
void ground_divide(struct ground *ground, size_t array_bytes, size_t block_bytes);
/* Bytes that the index and the times of blocks take, all threads together. */
double ground_beside_bytes(const struct run *run, const struct ground *ground, size_t array_bytes);

/* One for each thread, empty; to be freed. NULL without memory. */
struct walk *walks_make(unsigned threads);
/* Adds the metrics block_time_s_…, of all walks together. */
void walks_report_times(struct run *run, const struct walk *walks, const struct ground *ground);

/* Fills the arrays and the index, by the thread that will walk. 0 or an exit_code. */
int walk_begin(struct walk *walk, const struct ground *ground, const struct thread *thread);
void walk_end(struct walk *walk);
/* What was done so far, such as by kernels that were tried, is no part of the figures: neither its
 * units nor the times of its blocks. */
void walk_count_anew(struct walk *walk);
/* The units since then. */
uint64_t walk_units_done(const struct walk *walk);
/* Ends a block that was begun. */
void walk_to_block(struct walk *walk);
/* Ends a part that was begun: ground->libc_bytes each, the last of an array with what is left. */
void walk_to_part(struct walk *walk);
/* One call on the part that begins here; its bytes of an array. */
size_t walk_part(struct walk *walk);
/* Does `units` of work, and waits for its stores. */
void walk_units(struct walk *walk, uint64_t units);
/* The same with a kernel that does nothing, leaving all as it is. */
void walk_empty(const struct walk *walk, uint64_t units);
/* Whether so many units were done, and the arrays and the sum are what the kernels must have made of
 * them. Destroys them. 0 or an exit_code with its reason. */
int walk_verify(const struct thread *thread, struct walk *walk, uint64_t units);

#endif
