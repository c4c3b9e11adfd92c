#include "accesses.h"

#include "order.h"

#include <string.h>

enum { WORD_BYTES = 8 };

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline)) /* tests look at each loop by its name */

/* Knuth's MMIX: the full period modulo every power of two. */
static const uint64_t MULTIPLIER = 6364136223846793005u, INCREMENT = 1442695040888963407u;

/* Two 64-bit integers. */
typedef uint64_t pair __attribute__((vector_size(16), may_alias));
typedef uint8_t word_1 __attribute__((may_alias));
typedef uint16_t word_2 __attribute__((may_alias));
typedef uint32_t word_4 __attribute__((may_alias));
typedef uint64_t word_8 __attribute__((may_alias));

/* ---- one access ----------------------------------------------------------------------------- */

struct sums {
    uint64_t words;
    pair pairs;
};

#define ON_WORD(size)                                                                              \
    INLINE void on_word_##size(enum access_operation operation, void *at, uint64_t value,          \
                               struct sums *sums)                                                  \
    {                                                                                              \
        word_##size *word = at;                                                                    \
        if (operation == ACCESS_READ)                                                              \
            sums->words += *word;                                                                  \
        else if (operation == ACCESS_WRITE)                                                        \
            *word = (word_##size)value;                                                            \
        else                                                                                       \
            *word = (word_##size)(*word + 1);                                                      \
    }
ON_WORD(1)
ON_WORD(2)
ON_WORD(4)
ON_WORD(8)

INLINE void on_pairs(enum access_operation operation, void *at, size_t bytes, uint64_t value,
                     struct sums *sums)
{
    pair *pairs = at;
    for (size_t i = 0; i < bytes / sizeof(pair); i++)
        if (operation == ACCESS_READ)
            sums->pairs += pairs[i];
        else if (operation == ACCESS_WRITE)
            pairs[i] = (pair){value, value};
        else
            pairs[i] += (pair){1, 1};
}

/* What a round writes: never the zero that was there before, nor what the round before wrote. */
INLINE uint64_t value_of(uint64_t block, uint64_t round)
{
    return (block + 2 * round) | 1;
}

INLINE bool is_access(enum access_operation operation)
{
    return operation != ACCESS_NONE && operation != ACCESS_NONE_AHEAD;
}

INLINE void on_block(enum access_operation operation, size_t bytes, unsigned char *memory,
                     uint64_t block, uint64_t round, struct sums *sums)
{
    void *at = memory + block * bytes;
    uint64_t value = value_of(block, round);
    if (!is_access(operation))
        __asm__ volatile("" : : "r"(at));
    else if (bytes == 1)
        on_word_1(operation, at, value, sums);
    else if (bytes == 2)
        on_word_2(operation, at, value, sums);
    else if (bytes == 4)
        on_word_4(operation, at, value, sums);
    else if (bytes == 8)
        on_word_8(operation, at, value, sums);
    else
        on_pairs(operation, at, bytes, value, sums);
}

/* Stores leave a core in their order, each waiting for its cache line: only lines that were requested
 * some stores before come several at once. (On Golden Cove that halves the time of a write. Loads
 * need no such help, and an update begins with one.) */
INLINE bool asks_ahead(enum access_operation operation)
{
    return operation == ACCESS_WRITE || operation == ACCESS_NONE_AHEAD;
}

INLINE void ask_for(enum access_operation operation, size_t bytes, unsigned char *memory,
                    uint64_t block)
{
    if (!asks_ahead(operation))
        return;
    if (!is_access(operation)) {
        __asm__ volatile("" : : "r"(memory + block * bytes));
        return;
    }
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(memory[block * bytes]));
#else
    __asm__ volatile("prfm pstl1keep, [%0]" : : "r"(memory + block * bytes));
#endif
}

/* ---- loops ---------------------------------------------------------------------------------- */

INLINE void add_sums(struct accesses *accesses, const struct sums *sums)
{
    accesses->sum += sums->words + sums->pairs[0] + sums->pairs[1];
}

INLINE void by_index(struct accesses *accesses, uint64_t units, enum access_operation operation,
                     size_t bytes)
{
    struct sums sums = {0};
    unsigned char *memory = accesses->memory;
    uint64_t round = accesses->rounds;
    const uint32_t *next = accesses->index + accesses->at;
    const uint32_t *end = next + units * ACCESSES_UNROLLED;
    for (; next < end; next += ACCESSES_UNROLLED) {
#pragma GCC unroll 16
        for (int i = 0; i < ACCESSES_UNROLLED; i++) {
            ask_for(operation, bytes, memory, next[i + INDEX_AHEAD]);
            on_block(operation, bytes, memory, next[i], round, &sums);
        }
    }
    accesses->walked += (uint64_t)(next - (accesses->index + accesses->at));
    add_sums(accesses, &sums);
}

/* Of the numbers below the period: as many for each block, or one more. */
INLINE uint64_t block_of(uint64_t number, uint64_t mask, uint64_t blocks, unsigned bits)
{
    return ((number & mask) * blocks) >> bits;
}

/* What so many steps of the generator together multiply by and add. */
static void leap(uint64_t steps, uint64_t *multiplier, uint64_t *increment)
{
    uint64_t power = MULTIPLIER, sum = INCREMENT; /* of 1, 2, 4, … steps */
    *multiplier = 1;
    *increment = 0;
    for (; steps > 0; steps >>= 1) {
        if (steps & 1) {
            *increment = *increment * power + sum;
            *multiplier *= power;
        }
        sum *= power + 1;
        power *= power;
    }
}

/* The generator, in lanes that each go on by so many steps at once. */
struct generator {
    uint64_t lanes[LANES], multiplier, increment, mask, blocks;
    unsigned bits;
};

/* `power`: there are as many blocks as numbers, a power of two. */
INLINE uint64_t generate(struct generator *generator, int lane, bool power)
{
    uint64_t number = generator->lanes[lane];
    uint64_t block = power ? number & generator->mask
                           : block_of(number, generator->mask, generator->blocks, generator->bits);
    number = number * generator->multiplier + generator->increment;
    /* Else the compiler makes all numbers of a unit first, and keeps them in memory. */
    __asm__ volatile("" : "+r"(block), "+r"(number));
    generator->lanes[lane] = number;
    return block;
}

/* `ahead` of where the accesses are. */
INLINE struct generator generator_at(const struct accesses *accesses, unsigned ahead)
{
    struct generator generator = {
        .mask = accesses->mask, .blocks = accesses->blocks, .bits = accesses->bits};
    uint64_t multiplier, increment;
    leap(ahead, &multiplier, &increment);
    leap(LANES, &generator.multiplier, &generator.increment);
    for (int i = 0; i < LANES; i++)
        generator.lanes[i] = accesses->lanes[i] * multiplier + increment;
    return generator;
}

/* The fewer instructions an access costs, the more of them are under way at once: on a Zen 4, reading
 * 8 bytes at a time out of 1 GiB takes 0.83 of the time with 5 instructions in the place of 8. */
INLINE void by_generator(struct accesses *accesses, uint64_t units, enum access_operation operation,
                         size_t bytes, bool power)
{
    struct sums sums = {0};
    unsigned char *memory = accesses->memory;
    uint64_t round = accesses->rounds;
    struct generator generator = generator_at(accesses, 0);
    struct generator ahead = generator_at(accesses, INDEX_AHEAD);
    for (uint64_t unit = 0; unit < units; unit++) {
#pragma GCC unroll 16
        for (int i = 0; i < ACCESSES_UNROLLED; i++) {
            if (asks_ahead(operation))
                ask_for(operation, bytes, memory, generate(&ahead, i % LANES, power));
            uint64_t block = generate(&generator, i % LANES, power);
            on_block(operation, bytes, memory, block, round, &sums);
            __asm__ volatile("" : "+r"(sums.words)); /* each addition in its turn */
        }
    }
    memcpy(accesses->lanes, generator.lanes, sizeof generator.lanes);
    add_sums(accesses, &sums);
}

#define LOOPS(operation, bytes)                                                                    \
    static void index_##operation##_##bytes(struct accesses *accesses, uint64_t units)             \
    {                                                                                              \
        by_index(accesses, units, ACCESS_##operation, bytes);                                      \
    }                                                                                              \
    NOINLINE static void power_##operation##_##bytes(struct accesses *accesses, uint64_t units)    \
    {                                                                                              \
        by_generator(accesses, units, ACCESS_##operation, bytes, true);                            \
    }                                                                                              \
    NOINLINE static void generator_##operation##_##bytes(struct accesses *accesses,                \
                                                         uint64_t units)                           \
    {                                                                                              \
        by_generator(accesses, units, ACCESS_##operation, bytes, false);                           \
    }                                                                                              \
    static void generated_##operation##_##bytes(struct accesses *accesses, uint64_t units)         \
    {                                                                                              \
        if (accesses->blocks == accesses->round)                                                   \
            power_##operation##_##bytes(accesses, units);                                          \
        else                                                                                       \
            generator_##operation##_##bytes(accesses, units);                                      \
    }
#define FOR_EACH_SIZE(M, operation)                                                                \
    M(operation, 1)                                                                                \
    M(operation, 2)                                                                                \
    M(operation, 4)                                                                                \
    M(operation, 8)                                                                                \
    M(operation, 16)                                                                               \
    M(operation, 32)                                                                               \
    M(operation, 64)

FOR_EACH_SIZE(LOOPS, READ)
FOR_EACH_SIZE(LOOPS, WRITE)
FOR_EACH_SIZE(LOOPS, UPDATE)
FOR_EACH_SIZE(LOOPS, NONE)
FOR_EACH_SIZE(LOOPS, NONE_AHEAD)

static const struct {
    enum access_operation operation;
    size_t bytes;
    access_function *by_index, *by_generator;
} loops[] = {
#define ROW(what, size) {ACCESS_##what, size, index_##what##_##size, generated_##what##_##size},
    FOR_EACH_SIZE(ROW, READ) FOR_EACH_SIZE(ROW, WRITE) FOR_EACH_SIZE(ROW, UPDATE)
        FOR_EACH_SIZE(ROW, NONE) FOR_EACH_SIZE(ROW, NONE_AHEAD)};

access_function *accesses_loop(enum access_operation operation, bool index, size_t block_bytes)
{
    size_t i = 0;
    while (loops[i].operation != operation || loops[i].bytes != block_bytes)
        i++;
    return index ? loops[i].by_index : loops[i].by_generator;
}

access_function *accesses_empty_loop(enum access_operation operation, bool index,
                                     size_t block_bytes)
{
    return accesses_loop(asks_ahead(operation) ? ACCESS_NONE_AHEAD : ACCESS_NONE, index,
                         block_bytes);
}

void accesses_begin_generator(struct accesses *accesses)
{
    accesses->bits = 4; /* a round is at least one unit */
    while ((uint64_t)1 << accesses->bits < accesses->blocks)
        accesses->bits++;
    accesses->round = (uint64_t)1 << accesses->bits;
    accesses->mask = accesses->round - 1;
    accesses->lanes[0] = 0;
    for (int i = 1; i < LANES; i++)
        accesses->lanes[i] = accesses->lanes[i - 1] * MULTIPLIER + INCREMENT;
}

uint64_t accesses_done(const struct accesses *accesses)
{
    return accesses->rounds * accesses->round + accesses->at;
}

void accesses_units(struct accesses *accesses, access_function *loop, uint64_t units)
{
    while (units > 0) {
        uint64_t left = (accesses->round - accesses->at) / ACCESSES_UNROLLED;
        uint64_t now = units < left ? units : left;
        loop(accesses, now);
        accesses->at += now * ACCESSES_UNROLLED;
        units -= now;
        if (accesses->at < accesses->round)
            continue;
        accesses->at = 0;
        accesses->rounds++;
    }
}

/* ---- the check ------------------------------------------------------------------------------ */

/* The order of a round once more, in a plain loop. */
struct replay {
    uint64_t done, number;
};

static uint64_t next_block(const struct accesses *accesses, struct replay *replay)
{
    uint64_t number = replay->number;
    replay->number = number * MULTIPLIER + INCREMENT;
    if (accesses->index)
        return accesses->index[replay->done++];
    replay->done++;
    return block_of(number, accesses->mask, accesses->blocks, accesses->bits);
}

static size_t word_bytes(const struct accesses *accesses)
{
    return accesses->block_bytes < WORD_BYTES ? accesses->block_bytes : WORD_BYTES;
}

/* The i-th integer of a block. */
static uint64_t word_get(const struct accesses *accesses, uint64_t block, size_t i)
{
    uint64_t word = 0; /* little-endian, as both architectures run under Linux */
    size_t bytes = word_bytes(accesses);
    memcpy(&word, accesses->memory + block * accesses->block_bytes + i * bytes, bytes);
    return word;
}

static void word_put(struct accesses *accesses, uint64_t block, size_t i, uint64_t word)
{
    size_t bytes = word_bytes(accesses);
    memcpy(accesses->memory + block * accesses->block_bytes + i * bytes, &word, bytes);
}

static size_t words_of(const struct accesses *accesses)
{
    return accesses->block_bytes / word_bytes(accesses);
}

static bool sum_is_right(const struct accesses *accesses)
{
    struct replay replay = {0};
    uint64_t whole = 0, part = 0;
    while (replay.done < accesses->round) {
        bool again = replay.done < accesses->at;
        uint64_t block = next_block(accesses, &replay), sum = 0;
        for (size_t i = 0; i < words_of(accesses); i++)
            sum += word_get(accesses, block, i);
        whole += sum;
        part += again ? sum : 0;
    }
    return accesses->sum == accesses->rounds * whole + part;
}

static bool is_zero(const struct accesses *accesses)
{
    size_t bytes = accesses->blocks * accesses->block_bytes;
    return accesses->memory[0] == 0 && !memcmp(accesses->memory, accesses->memory + 1, bytes - 1);
}

/* Takes back every addition: zeros are left. */
static bool updates_are_right(struct accesses *accesses)
{
    struct replay replay = {0};
    while (replay.done < accesses->round) {
        uint64_t times = accesses->rounds + (replay.done < accesses->at);
        uint64_t block = next_block(accesses, &replay);
        for (size_t i = 0; i < words_of(accesses); i++)
            word_put(accesses, block, i, word_get(accesses, block, i) - times);
    }
    return is_zero(accesses);
}

/* What a round writes into one integer of a block. */
static uint64_t written(const struct accesses *accesses, uint64_t block, uint64_t round)
{
    return value_of(block, round) & UINT64_MAX >> (64 - 8 * word_bytes(accesses));
}

static bool holds(const struct accesses *accesses, uint64_t block, uint64_t word)
{
    bool right = true;
    for (size_t i = 0; i < words_of(accesses); i++)
        right &= word_get(accesses, block, i) == word;
    return right;
}

static void put(struct accesses *accesses, uint64_t block, uint64_t word)
{
    for (size_t i = 0; i < words_of(accesses); i++)
        word_put(accesses, block, i, word);
}

/* Each block must hold what the last round that came to it wrote. The generator comes to some blocks
 * twice in a round: those that were looked at get a number that no round writes. Zeros are left. */
static bool writes_are_right(struct accesses *accesses)
{
    enum { SEEN = 2 };
    struct replay looking = {0}, taking = {0};
    uint64_t covered = accesses->rounds ? accesses->round : accesses->at;
    bool right = true;
    while (looking.done < covered) {
        uint64_t round = accesses->rounds - (looking.done >= accesses->at);
        uint64_t block = next_block(accesses, &looking);
        right &=
            holds(accesses, block, written(accesses, block, round)) || holds(accesses, block, SEEN);
        put(accesses, block, SEEN);
    }
    while (taking.done < covered)
        put(accesses, next_block(accesses, &taking), 0);
    return right && is_zero(accesses);
}

/* The order itself must have gone on by as many accesses as were counted: the integers of small
 * blocks show the number of rounds only up to a multiple. */
static bool order_is_right(const struct accesses *accesses)
{
    uint64_t done = accesses_done(accesses), multiplier, number;
    bool right = true;
    if (accesses->index)
        return accesses->walked == done;
    leap(done, &multiplier, &number);
    for (int i = 0; i < LANES; i++) {
        right &= accesses->lanes[i] == number; /* the first number is 0 */
        number = number * MULTIPLIER + INCREMENT;
    }
    return right;
}

bool accesses_are_right(struct accesses *accesses, enum access_operation operation)
{
    if (!order_is_right(accesses))
        return false;
    if (operation == ACCESS_READ)
        return sum_is_right(accesses);
    return operation == ACCESS_WRITE ? writes_are_right(accesses) : updates_are_right(accesses);
}
