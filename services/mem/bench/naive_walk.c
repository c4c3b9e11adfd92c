#include "naive_walk.h"

#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum { MARK = 0xa5 }; /* what memset() writes to random places; in order it is another each round */

/* The time of day, as the reports read it around a block. */
static int64_t now_us(void)
{
    struct timeval now;
    gettimeofday(&now, NULL);
    return (int64_t)now.tv_sec * 1000000 + now.tv_usec;
}

/* ---- a block -------------------------------------------------------------------------------- */

static unsigned char *block_of(const struct naive_cursor *cursor, uint64_t number)
{
    if (cursor->parts == 1)
        return cursor->memory + number * cursor->block_bytes;
    return cursor->memory + number / cursor->part_blocks * cursor->part_step +
           number % cursor->part_blocks * cursor->block_bytes;
}

/* Never 0, which is what memory begins with. */
static unsigned char byte_of_round(uint64_t round)
{
    return (unsigned char)(1 + round % 255);
}

static inline unsigned char *next_block(struct naive_cursor *cursor, bool random)
{
    if (random)
        return block_of(cursor, (uint64_t)rand() % cursor->blocks);
    if (cursor->at == cursor->blocks) {
        cursor->at = 0;
        cursor->rounds++;
    }
    return block_of(cursor, cursor->at++);
}

static inline void handle(struct naive_walk *walk, unsigned char *block, bool set, bool random)
{
    const struct naive_cursor *cursor = walk->cursor;
    if (set)
        memset(block, random ? MARK : byte_of_round(cursor->rounds), cursor->block_bytes);
    else
        memcpy(walk->temporary, block, cursor->block_bytes);
    /* What the next call overwrites must be written all the same. */
    __asm__ volatile("" ::: "memory");
}

static inline __attribute__((always_inline)) void
walk_on(struct naive_walk *walk, uint64_t blocks, bool set, bool random, bool clocked, bool locked)
{
    struct naive_cursor *cursor = walk->cursor;
    for (uint64_t i = 0; i < blocks; i++) {
        if (locked)
            pthread_mutex_lock(&cursor->lock);
        unsigned char *block = next_block(cursor, random);
        int64_t begun_us = clocked ? now_us() : 0;
        handle(walk, block, set, random);
        if (clocked)
            walk->clocked_us += now_us() - begun_us;
        cursor->last = block;
        cursor->done++;
        if (locked)
            pthread_mutex_unlock(&cursor->lock);
    }
}

/* ---- the loops: nothing is decided within them ---------------------------------------------- */

#define LOOP(name, set, random, clocked, locked)                                                   \
    static void name(struct naive_walk *walk, uint64_t blocks)                                     \
    {                                                                                              \
        walk_on(walk, blocks, set, random, clocked, locked);                                       \
    }
#define LOOPS(routine, set)                                                                        \
    LOOP(routine##_in_order, set, false, false, false)                                             \
    LOOP(routine##_in_order_locked, set, false, false, true)                                       \
    LOOP(routine##_in_order_clocked, set, false, true, false)                                      \
    LOOP(routine##_in_order_clocked_locked, set, false, true, true)                                \
    LOOP(routine##_anywhere, set, true, false, false)                                              \
    LOOP(routine##_anywhere_locked, set, true, false, true)                                        \
    LOOP(routine##_anywhere_clocked, set, true, true, false)                                       \
    LOOP(routine##_anywhere_clocked_locked, set, true, true, true)
#define NAMES(routine)                                                                             \
    {                                                                                              \
        {{routine##_in_order, routine##_in_order_locked},                                          \
         {routine##_in_order_clocked, routine##_in_order_clocked_locked}},                         \
        {                                                                                          \
            {routine##_anywhere, routine##_anywhere_locked},                                       \
            {                                                                                      \
                routine##_anywhere_clocked, routine##_anywhere_clocked_locked                      \
            }                                                                                      \
        }                                                                                          \
    }

LOOPS(copy, false)
LOOPS(set, true)

naive_blocks *naive_loop(const struct naive_way *way)
{
    static naive_blocks *const loops[2][2][2][2] = {NAMES(copy), NAMES(set)};
    return loops[way->set][way->random][way->clocked][way->locked];
}

/* ---- what memory holds ---------------------------------------------------------------------- */

static uint64_t filling(size_t i)
{
    return (i + 1) * 0x9e3779b97f4a7c15u;
}

void naive_fill(void *memory, size_t bytes)
{
    uint64_t *words = memory, count = bytes / sizeof *words, last = filling(count);
    for (size_t i = 0; i < count; i++)
        words[i] = filling(i);
    memcpy(words + count, &last, bytes % sizeof *words);
}

bool naive_is_filled(const void *memory, size_t bytes)
{
    const uint64_t *words = memory;
    uint64_t count = bytes / sizeof *words, last = filling(count), differences = 0;
    for (size_t i = 0; i < count; i++)
        differences |= words[i] ^ filling(i);
    return !differences && !memcmp(words + count, &last, bytes % sizeof *words);
}

static unsigned char *part_of(const struct naive_cursor *cursor, uint64_t part)
{
    return cursor->memory + part * cursor->part_step;
}

static bool holds(const unsigned char *memory, unsigned char byte, size_t bytes)
{
    return bytes == 0 || (memory[0] == byte && !memcmp(memory, memory + 1, bytes - 1));
}

/* Of each part the blocks that this round has come to, and the others. */
static bool rounds_are_right(const struct naive_cursor *cursor)
{
    unsigned char now = byte_of_round(cursor->rounds);
    unsigned char before = cursor->rounds ? byte_of_round(cursor->rounds - 1) : 0;
    bool right = cursor->done == cursor->rounds * cursor->blocks + cursor->at;
    for (uint64_t i = 0; i < cursor->parts && right; i++) {
        uint64_t begin = i * cursor->part_blocks;
        uint64_t come_to = cursor->at > begin ? cursor->at - begin : 0;
        if (come_to > cursor->part_blocks)
            come_to = cursor->part_blocks;
        const unsigned char *part = part_of(cursor, i);
        right = holds(part, now, come_to * cursor->block_bytes) &&
                holds(part + come_to * cursor->block_bytes, before,
                      (cursor->part_blocks - come_to) * cursor->block_bytes);
    }
    return right;
}

/* Words of 8 bytes are looked at as such: a call for each takes longer than all the rest of a
 * trial. */
static uint64_t marked_words(const uint64_t *words, uint64_t count)
{
    const uint64_t marks = MARK * UINT64_C(0x0101010101010101);
    uint64_t marked = 0, strange = 0;
    for (uint64_t i = 0; i < count; i++) {
        marked += words[i] == marks;
        strange += words[i] != marks && words[i] != 0;
    }
    return strange ? UINT64_MAX : marked;
}

static uint64_t marked_bytes(const unsigned char *bytes, uint64_t count)
{
    uint64_t marked = 0, strange = 0;
    for (uint64_t i = 0; i < count; i++) {
        marked += bytes[i] == MARK;
        strange += bytes[i] != MARK && bytes[i] != 0;
    }
    return strange ? UINT64_MAX : marked;
}

/* The blocks of a part that were written; UINT64_MAX: one is neither written nor as it was. */
static uint64_t marked_blocks(const struct naive_cursor *cursor, const unsigned char *part)
{
    uint64_t marked = 0;
    if (cursor->block_bytes == 1)
        return marked_bytes(part, cursor->part_blocks);
    if (cursor->block_bytes == sizeof(uint64_t))
        return marked_words((const uint64_t *)part, cursor->part_blocks);
    for (uint64_t i = 0; i < cursor->part_blocks; i++, part += cursor->block_bytes) {
        if (!holds(part, part[0] ? MARK : 0, cursor->block_bytes))
            return UINT64_MAX;
        marked += part[0] == MARK;
    }
    return marked;
}

/* The order in which threads got their numbers from rand() is unknown. n calls over b blocks reach
 * some b·(1 − e^(−n/b)) of them, at least 0.63 of the smaller of the two; half of that must be there where
 * they are enough to tell, and no more than there were calls. */
static bool places_are_right(const struct naive_cursor *cursor)
{
    enum { ENOUGH = 100 };
    uint64_t marked = 0;
    uint64_t most = cursor->done < cursor->blocks ? cursor->done : cursor->blocks;
    uint64_t least = most >= ENOUGH ? most * 63 / 200 : most > 0;
    for (uint64_t i = 0; i < cursor->parts; i++) {
        uint64_t found = marked_blocks(cursor, part_of(cursor, i));
        if (found == UINT64_MAX)
            return false;
        marked += found;
    }
    return marked >= least && marked <= most && (!cursor->last || cursor->last[0] == MARK);
}

bool naive_set_is_right(const struct naive_cursor *cursor, const struct naive_way *way)
{
    return way->random ? places_are_right(cursor) : rounds_are_right(cursor);
}
