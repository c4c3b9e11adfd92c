/* What the arrays of a walk hold: at first, in each round, and so at the end. */
#ifndef MEM_BENCH_WALK_CONTENTS_H
#define MEM_BENCH_WALK_CONTENTS_H

#include "checked.h"
#include "walk_state.h"

#include <string.h>

enum {
    FACTORS = 1024, /* of scale and triad: products stay exact */
    BYTE_VALUES = 255,
    MARK_EVERY = (1 << 15) + 8, /* elements; the line more spreads them over the sets of a cache */
    ALIKE_BYTES = 1 << 18,      /* of an array, that alike rounds work on at least */
};

static inline bool has_b(const struct ground *ground)
{
    return ground->operation != OPERATION_WRITE;
}

static inline bool has_c(const struct ground *ground)
{
    return ground->operation == OPERATION_ADD || ground->operation == OPERATION_TRIAD;
}

/* Whole numbers of 20 bits, different from element to element: all results are exact. */
static inline double filling(uint64_t element, uint32_t salt)
{
    return (double)(1 + (((uint32_t)element * 2654435761u + salt) >> 12));
}

static inline uint64_t elements_of(const struct ground *ground)
{
    return (ground->set.array_bytes + ELEMENT_BYTES - 1) / ELEMENT_BYTES;
}

/* ---- from round to round -------------------------------------------------------------------- */

/* Results change with the rounds, so that something that was left out shows. Where arrays are small
 * some rounds are alike: what changes them then costs nothing beside the work. */
static inline unsigned alike_shift_of(const struct ground *ground)
{
    unsigned shift = 0;
    while (ground->set.array_bytes << shift < ALIKE_BYTES)
        shift++;
    return shift;
}

/* How often the results have changed when a round begins. */
static inline uint64_t changes_until(const struct walk *walk, uint64_t round)
{
    return round >> walk->alike_shift;
}

static inline double factor_of(const struct walk *walk, uint64_t round)
{
    uint64_t changes = changes_until(walk, round);
    double factor;
    if (walk->ground->operation != OPERATION_WRITE)
        return (double)(1 + changes % FACTORS);
    memset(&factor, (int)(1 + changes % BYTE_VALUES), sizeof factor);
    return factor;
}

/* ---- marks ---------------------------------------------------------------------------------- */

/* Copy and add have no factor. For them one element in each MARK_EVERY of their source is another
 * one after each change. */
static inline uint64_t marks_of(const struct ground *ground)
{
    bool marked = ground->operation == OPERATION_COPY || ground->operation == OPERATION_ADD;
    if (!marked || !RESULTS_ARE_CHECKED)
        return 0;
    return (elements_of(ground) + MARK_EVERY - 1) / MARK_EVERY;
}

/* The salt of the marked elements in a round. From one salt to the next no element stays the same. */
static inline uint32_t mark_salt(const struct walk *walk, uint64_t round)
{
    return walk->salt + (uint32_t)changes_until(walk, round) * 0x85ebca6bu;
}

/* In the source, with a salt. */
static inline void mark(const struct walk *walk, uint32_t salt)
{
    double *values = (double *)walk->b;
    for (uint64_t i = 0; i < walk->marks; i++)
        values[i * MARK_EVERY] = filling(i * MARK_EVERY, salt);
}

static inline uint32_t salt_of(const struct walk *walk, uint64_t element, uint64_t round)
{
    return walk->marks > 0 && element % MARK_EVERY == 0 ? mark_salt(walk, round) : walk->salt;
}

/* The distance of a block from the beginning of the arrays. */
static inline size_t place_of(const struct walk *walk, uint64_t block)
{
    return (walk->index ? walk->index[block] : block) * walk->ground->block_bytes;
}

#endif
