/* A walk over memory block by block the way that course work does it: the C library's routine called
 * on each, rand() for each place, gettimeofday() or a mutex around each. */
#ifndef MEM_BENCH_NAIVE_WALK_H
#define MEM_BENCH_NAIVE_WALK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What decides how a block is handled. */
struct naive_way {
    bool set;     /* memset(); otherwise memcpy() to the temporary place */
    bool random;  /* each place by rand(); otherwise block after block, again and again */
    bool clocked; /* gettimeofday() around each block */
    bool locked;  /* a mutex around each block and the counting of it */
};

/* The blocks that one thread, or all of them in turn, go over: those of `parts` parts of the memory,
 * numbered through. */
struct naive_cursor {
    _Alignas(128) pthread_mutex_t lock; /* its own cache lines */
    unsigned char *memory;              /* the first part */
    size_t part_step;                   /* from one part to the next */
    uint64_t part_blocks, parts;
    size_t block_bytes;
    uint64_t blocks;     /* of all parts */
    uint64_t at, rounds; /* the next block in order, and how often all have been through */
    uint64_t done;       /* blocks, counted as the reports did: one more for each */
    unsigned char *last; /* block that was handled; NULL: none */
};

/* Of one thread. */
struct naive_walk {
    _Alignas(128) struct naive_cursor *cursor; /* its own, or the one that all share */
    unsigned char *temporary;                  /* of one block; NULL: memset() needs none */
    int64_t clocked_us;                        /* sum of the clock's times of all blocks */
};

typedef void naive_blocks(struct naive_walk *walk, uint64_t blocks);

/* The loop that handles so many blocks this way. */
naive_blocks *naive_loop(const struct naive_way *way);
/* Fills what is to be copied: each word another one, by its place in the part. */
void naive_fill(void *memory, size_t bytes);
/* Whether the memory still holds that. */
bool naive_is_filled(const void *memory, size_t bytes);
/* Whether memory that was zero holds what this many calls of memset() must have left. */
bool naive_set_is_right(const struct naive_cursor *cursor, const struct naive_way *way);

#endif
