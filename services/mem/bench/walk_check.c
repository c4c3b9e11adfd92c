/* The check of what a walk has left: every byte of the arrays, or the sum of what was read. */
#include "walk.h"

#include "checked.h"
#include "walk_contents.h"

#include <string.h>

/* What becomes of an element of the first source with one salt, and of the second with another. */
static inline double result_of(enum operation operation, uint64_t element, uint32_t salt,
                               uint32_t other_salt, double factor)
{
    switch (operation) {
    case OPERATION_COPY:
        return filling(element, salt);
    case OPERATION_SCALE:
        return factor * filling(element, salt);
    case OPERATION_ADD:
        return filling(element, salt) + filling(element, other_salt);
    case OPERATION_TRIAD:
        return filling(element, salt) + factor * filling(element, other_salt);
    default:
        return factor;
    }
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Whether whole elements of the written array are what a factor makes of them. The loop is the same
 * for all operations, so that each is compiled by itself. */
static inline __attribute__((always_inline)) bool
elements_hold(enum operation operation, const uint64_t *elements, uint64_t first, uint64_t end,
              uint32_t salt, uint32_t other_salt, double factor)
{
    uint64_t differences = 0;
    for (uint64_t element = first; element < end; element++) {
        double expected = result_of(operation, element, salt, other_salt, factor);
        uint64_t bits;
        memcpy(&bits, &expected, sizeof bits);
        differences |= elements[element] ^ bits;
    }
    return differences == 0;
}

/* Of elements whose sources have the same salt. */
static bool alike_hold(const struct walk *walk, uint64_t first, uint64_t end, uint32_t salt,
                       double factor)
{
    const uint64_t *elements = (const uint64_t *)walk->a;
    uint32_t other = ~walk->salt;
    switch (walk->ground->operation) {
    case OPERATION_COPY:
        return elements_hold(OPERATION_COPY, elements, first, end, salt, other, factor);
    case OPERATION_SCALE:
        return elements_hold(OPERATION_SCALE, elements, first, end, salt, other, factor);
    case OPERATION_ADD:
        return elements_hold(OPERATION_ADD, elements, first, end, salt, other, factor);
    case OPERATION_TRIAD:
        return elements_hold(OPERATION_TRIAD, elements, first, end, salt, other, factor);
    default:
        return elements_hold(OPERATION_WRITE, elements, first, end, salt, other, factor);
    }
}

/* Of any elements: marked ones, and those between them. */
static bool whole_elements_hold(const struct walk *walk, uint64_t first, uint64_t end,
                                uint64_t round)
{
    double factor = factor_of(walk, round);
    bool right = true;
    while (right && first < end) {
        uint64_t in_run = first % MARK_EVERY;
        uint64_t run_end = smaller(end, first + (in_run ? MARK_EVERY - in_run : 1));
        right = alike_hold(walk, first, run_end, salt_of(walk, first, round), factor);
        first = run_end;
    }
    return right;
}

/* The same of some bytes of one element. */
static bool part_holds(const struct walk *walk, size_t first, size_t end, uint64_t round)
{
    uint64_t element = first / ELEMENT_BYTES;
    double expected = result_of(walk->ground->operation, element, salt_of(walk, element, round),
                                ~walk->salt, factor_of(walk, round));
    return !memcmp(walk->a + first, (unsigned char *)&expected + first % ELEMENT_BYTES,
                   end - first);
}

static bool is_zero(const unsigned char *at, size_t bytes)
{
    return bytes == 0 || (*at == 0 && !memcmp(at, at + 1, bytes - 1));
}

/* The same of bytes that may begin and end within elements. */
static bool result_holds(const struct walk *walk, size_t first, size_t end, uint64_t round)
{
    size_t whole = (first + ELEMENT_BYTES - 1) / ELEMENT_BYTES * ELEMENT_BYTES;
    size_t whole_end = end / ELEMENT_BYTES * ELEMENT_BYTES;
    if (first == end)
        return true;
    if (whole > whole_end) /* within one element */
        return part_holds(walk, first, end, round);
    return (first == whole || part_holds(walk, first, whole, round)) &&
           whole_elements_hold(walk, whole / ELEMENT_BYTES, whole_end / ELEMENT_BYTES, round) &&
           (whole_end == end || part_holds(walk, whole_end, end, round));
}

/* Whether bytes of the written array are what the last of so many rounds makes of them; 0: what
 * they were at first. Then makes them zero. */
static bool take_result(struct walk *walk, size_t first, size_t bytes, uint64_t rounds)
{
    if (rounds == 0)
        return is_zero(walk->a + first, bytes);
    bool right = result_holds(walk, first, first + bytes, rounds - 1);
    memset(walk->a + first, 0, bytes);
    return right;
}

/* A block; `done` bytes of it belong to the present round. */
static bool take_block(struct walk *walk, uint64_t block, size_t done)
{
    size_t place = place_of(walk, block), bytes = walk->ground->block_bytes;
    bool right = take_result(walk, place, done, walk->rounds + 1);
    return take_result(walk, place + done, bytes - done, walk->rounds) && right;
}

static size_t done_of(const struct walk *walk, uint64_t block)
{
    if (block == walk->block)
        return walk->offset;
    return block < walk->block ? walk->ground->block_bytes : 0;
}

/* Every block is right, and nothing else was written to. */
static bool results_are_right(struct walk *walk)
{
    bool right = true;
    for (uint64_t block = 0; block < walk->blocks; block++)
        right &= take_block(walk, block, done_of(walk, block));
    return right && is_zero(walk->a, walk->ground->set.array_step);
}

static uint64_t sum_of(const unsigned char *at, size_t bytes)
{
    uint64_t sum = 0, element;
    size_t i = 0;
    for (; i + sizeof element <= bytes; i += sizeof element) {
        memcpy(&element, at + i, sizeof element);
        sum += element;
    }
    for (; i < bytes; i++)
        sum += at[i];
    return sum;
}

static bool sum_is_right(const struct walk *walk)
{
    uint64_t whole = 0, part = 0;
    for (uint64_t block = 0; block < walk->blocks; block++) {
        const unsigned char *at = walk->b + place_of(walk, block);
        uint64_t sum = sum_of(at, walk->ground->block_bytes);
        size_t done = done_of(walk, block);
        whole += sum;
        part += done == walk->ground->block_bytes ? sum : sum_of(at, done);
    }
    return walk->sum == walk->rounds * whole + part;
}

static bool is_filled(const unsigned char *array, uint64_t elements, uint32_t salt)
{
    const double *values = (const double *)array;
    bool right = true;
    for (uint64_t i = 0; i < elements; i++)
        right &= values[i] == filling(i, salt);
    return right;
}

/* Whether the source has the marks of this round; then takes them back. */
static bool take_marks(const struct walk *walk)
{
    const double *values = (const double *)walk->b;
    uint32_t salt = mark_salt(walk, walk->rounds);
    bool right = true;
    for (uint64_t i = 0; i < walk->marks; i++)
        right &= values[i * MARK_EVERY] == filling(i * MARK_EVERY, salt);
    mark(walk, walk->salt);
    return right;
}

static bool is_right(struct walk *walk)
{
    const struct ground *ground = walk->ground;
    uint64_t elements = elements_of(ground);
    if (!take_marks(walk))
        return false;
    if (has_b(ground) && !is_filled(walk->b, elements, walk->salt))
        return false;
    if (has_c(ground) && !is_filled(walk->c, elements, ~walk->salt))
        return false;
    return ground->operation == OPERATION_READ ? sum_is_right(walk) : results_are_right(walk);
}

int walk_verify(const struct thread *thread, struct walk *walk, uint64_t units)
{
    int failure = run_check_units(thread, walk_units_done(walk), units);
    if (failure || !RESULTS_ARE_CHECKED)
        return failure;
    if (is_right(walk))
        return EXIT_OK;
    run_reason(
        thread->run,
        "the arrays of thread %u, CPU %d, do not hold what the kernel must have made of them: this "
        "CPU, its memory or this build does not work correctly; do not trust its figures",
        thread->index, thread->cpu);
    return EXIT_WRONG;
}
