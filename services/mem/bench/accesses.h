/* Loops of small accesses that do not depend on each other: a core has as many of them under way
 * as it can. */
#ifndef MEM_BENCH_ACCESSES_H
#define MEM_BENCH_ACCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ACCESSES_UNROLLED = 16, /* in one unit of work */
    LANES = 4,              /* of the generator, each four numbers ahead at a time */
    ACCESS_BYTES_MOST = 64,
};

enum access_operation {
    ACCESS_READ,   /* adds up what is there, blocks of 8 bytes and more as 64-bit integers */
    ACCESS_WRITE,  /* an odd number made of block and round, in each 64-bit integer of the block */
    ACCESS_UPDATE, /* adds one to each integer */
    ACCESS_NONE,   /* the walk alone */
    ACCESS_NONE_AHEAD, /* … and the one ahead of it that writing asks for its lines by */
};

/* The blocks are gone through in rounds of an order that the index holds, or that a linear
 * congruential generator modulo a power of two makes (Knuth, TAOCP 2, 3.2.1.2: a round is its full
 * period). */
struct accesses {
    unsigned char *memory;
    uint64_t blocks;
    size_t block_bytes;
    const uint32_t *index; /* NULL: the generator */
    uint64_t round;        /* accesses of one; a multiple of ACCESSES_UNROLLED */
    uint64_t at;           /* of this one that are done */
    uint64_t rounds;       /* completed */
    uint64_t walked;       /* how far the loops went along the index */
    uint64_t lanes[LANES];
    uint64_t mask; /* of the generator's period */
    unsigned bits;
    uint64_t sum; /* of what was read */
};

typedef void access_function(struct accesses *accesses, uint64_t units);

/* For an order without an index: sets `round` to the smallest period that has all blocks. */
void accesses_begin_generator(struct accesses *accesses);
/* The loop for blocks of 1, 2, 4, …, 64 bytes. */
access_function *accesses_loop(enum access_operation operation, bool index, size_t block_bytes);
/* All of it but the accesses. */
access_function *accesses_empty_loop(enum access_operation operation, bool index,
                                     size_t block_bytes);
/* All accesses so far. */
uint64_t accesses_done(const struct accesses *accesses);
/* Goes on by so many units, from round to round. */
void accesses_units(struct accesses *accesses, access_function *loop, uint64_t units);
/* Whether memory and sum are what these accesses must have made of them, if all but a read found
 * zeros. Destroys the memory. */
bool accesses_are_right(struct accesses *accesses, enum access_operation operation);

#endif
