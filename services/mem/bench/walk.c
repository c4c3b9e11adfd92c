#include "walk.h"

#include "monotonic.h"
#include "order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    WHOLE_BLOCK_MOST = 1 << 16, /* larger ones, of whole lines, may be done in several steps */
    TIMED_EVERY_BYTES = 1 << 20,
    TIMES_KEPT = 1 << 15,
    FACTORS = 1024, /* of scale and triad: products stay exact */
    BYTE_VALUES = 255,
    MARK_EVERY = (1 << 15) + 8, /* elements; the line more spreads them over the sets of a cache */
    MARKED_LEAST_BYTES = 1 << 18, /* of an array, that are worked on from one marking to the next */
};

/* ---- what the arrays hold ------------------------------------------------------------------- */

/* Whole numbers of 20 bits, different from element to element: all results are exact. */
static inline double filling(uint64_t element, uint32_t salt)
{
    return (double)(1 + (((uint32_t)element * 2654435761u + salt) >> 12));
}

static uint64_t elements_of(const struct ground *ground)
{
    return (ground->set.array_bytes + ELEMENT_BYTES - 1) / ELEMENT_BYTES;
}

/* A new one each round, so that a round in which something was left out shows. */
static double factor_of(enum operation operation, uint64_t round)
{
    double factor;
    if (operation != OPERATION_WRITE)
        return (double)(1 + round % FACTORS);
    memset(&factor, (int)(1 + round % BYTE_VALUES), sizeof factor);
    return factor;
}

/* ---- marks ---------------------------------------------------------------------------------- */

/* Copy and add have no factor. For them one element in each MARK_EVERY of their source is another
 * one in each round, or where arrays are small in some rounds, so that it costs nothing beside the
 * work. */
static uint64_t marks_of(const struct ground *ground)
{
    if (ground->operation != OPERATION_COPY && ground->operation != OPERATION_ADD)
        return 0;
    return (elements_of(ground) + MARK_EVERY - 1) / MARK_EVERY;
}

static unsigned mark_shift_of(const struct ground *ground)
{
    unsigned shift = 0;
    while (ground->set.array_bytes << shift < MARKED_LEAST_BYTES)
        shift++;
    return shift;
}

/* The salt of the marked elements in a round. From one salt to the next no element stays the same. */
static uint32_t mark_salt(const struct walk *walk, uint64_t round)
{
    return walk->salt + (uint32_t)(round >> walk->mark_shift) * 0x85ebca6bu;
}

/* In the source, with a salt. */
static void mark(const struct walk *walk, uint32_t salt)
{
    double *values = (double *)walk->b;
    for (uint64_t i = 0; i < walk->marks; i++)
        values[i * MARK_EVERY] = filling(i * MARK_EVERY, salt);
}

static uint32_t salt_of(const struct walk *walk, uint64_t element, uint64_t round)
{
    return walk->marks > 0 && element % MARK_EVERY == 0 ? mark_salt(walk, round) : walk->salt;
}

/* ---- results -------------------------------------------------------------------------------- */

/* Of an element of the first source with one salt, and of the second with another. */
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

static void fill(unsigned char *array, uint64_t elements, uint32_t salt)
{
    double *values = (double *)array;
    for (uint64_t i = 0; i < elements; i++)
        values[i] = filling(i, salt);
}

/* ---- ground --------------------------------------------------------------------------------- */

unsigned walk_arrays(enum operation operation)
{
    switch (operation) {
    case OPERATION_READ:
    case OPERATION_WRITE:
        return 1;
    case OPERATION_COPY:
    case OPERATION_SCALE:
        return 2;
    default:
        return 3;
    }
}

static bool has_b(const struct ground *ground)
{
    return ground->operation != OPERATION_WRITE;
}

static bool has_c(const struct ground *ground)
{
    return ground->operation == OPERATION_ADD || ground->operation == OPERATION_TRIAD;
}

void ground_divide(struct ground *ground, size_t array_bytes, size_t block_bytes)
{
    bool whole_lines = block_bytes % LINE_BYTES == 0;
    ground->blocks = block_bytes > 0;
    ground->block_bytes = block_bytes ? block_bytes : array_bytes;
    ground->timed = block_bytes >= TIMED_BLOCK_LEAST;
    ground->unit_bytes =
        !block_bytes || (whole_lines && block_bytes > WHOLE_BLOCK_MOST) ? LINE_BYTES : block_bytes;
}

static uint64_t blocks_of(const struct ground *ground, size_t array_bytes)
{
    return array_bytes / ground->block_bytes;
}

double ground_beside_bytes(const struct run *run, const struct ground *ground, size_t array_bytes)
{
    double bytes = ground->timed ? TIMES_KEPT * sizeof(double) : 0;
    if (ground->random)
        bytes += (double)index_bytes(order_round(blocks_of(ground, array_bytes)));
    return bytes * run_threads(run);
}

/* ---- life ----------------------------------------------------------------------------------- */

static int lacks_memory(const struct thread *thread)
{
    run_reason(thread->run,
               "no memory for the order and times of the blocks of thread %u: use "
               "fewer threads or larger blocks",
               thread->index);
    return EXIT_RESOURCE;
}

/* The first array is `a`, of a read `b`; those an operation does not need are not looked at. */
static void place_arrays(struct walk *walk, const struct thread *thread)
{
    const struct ground *ground = walk->ground;
    unsigned char *first = working_set_array(&ground->set, thread->index, 0);
    walk->a = walk->b = walk->c = first;
    if (has_b(ground)) {
        if (ground->set.arrays > 1)
            walk->b = working_set_array(&ground->set, thread->index, 1);
        fill(walk->b, elements_of(ground), walk->salt);
    }
    if (has_c(ground)) {
        walk->c = working_set_array(&ground->set, thread->index, 2);
        fill(walk->c, elements_of(ground), ~walk->salt);
    }
}

int walk_begin(struct walk *walk, const struct ground *ground, const struct thread *thread)
{
    uint64_t blocks = blocks_of(ground, ground->set.array_bytes);
    *walk = (struct walk){
        .ground = ground,
        .blocks = ground->random ? order_round(blocks) : blocks,
        .factor = factor_of(ground->operation, 0),
        .salt = thread->index * 0x9e3779b9u,
        .untimed = ground->timed ? 0 : UINT64_MAX,
        .clock_read_s = run_clock_read_s(thread->run),
    };
    int failure = working_set_touch(thread, &ground->set);
    if (failure || run_stopping(thread->run))
        return failure;
    place_arrays(walk, thread);
    walk->marks = marks_of(ground);
    walk->mark_shift = mark_shift_of(ground);
    if (ground->random)
        walk->index = index_make(blocks, walk->salt);
    if ((ground->random && !walk->index) ||
        (ground->timed && reservoir_init(&walk->times, TIMES_KEPT)))
        return lacks_memory(thread);
    return EXIT_OK;
}

void walk_forget_times(struct walk *walk)
{
    walk->times.kept = 0;
    walk->times.seen = 0;
    walk->longest_s = 0;
}

void walk_end(struct walk *walk)
{
    free(walk->index);
    reservoir_free(&walk->times);
}

/* ---- walking -------------------------------------------------------------------------------- */

/* The distance of a block from the beginning of the arrays. */
static inline size_t place_of(const struct walk *walk, uint64_t block)
{
    return (walk->index ? walk->index[block] : block) * walk->ground->block_bytes;
}

static inline uint64_t work_at(const struct walk *walk, size_t place, size_t bytes)
{
    return walk->kernel(walk->a + place, walk->b + place, walk->c + place, bytes, walk->factor);
}

/* The source for the round that begins. */
static void mark_round(const struct walk *walk)
{
    uint64_t rounds_each = (uint64_t)1 << walk->mark_shift;
    if ((walk->rounds & (rounds_each - 1)) == 0)
        mark(walk, mark_salt(walk, walk->rounds));
}

static void pass_blocks(struct walk *walk, uint64_t blocks)
{
    walk->block += blocks;
    if (walk->block < walk->blocks)
        return;
    walk->block = 0;
    walk->factor = factor_of(walk->ground->operation, ++walk->rounds);
    if (walk->marks > 0)
        mark_round(walk);
}

static void fence(const struct walk *walk)
{
    if (walk->fenced)
        kernel_fence();
}

/* Bytes of the present block, against the clock. */
static void work_timed(struct walk *walk, size_t bytes)
{
    fence(walk);
    double start_s = now_s();
    walk->sum += work_at(walk, place_of(walk, walk->block) + walk->offset, bytes);
    fence(walk);
    walk->block_s += fmax(now_s() - start_s - walk->clock_read_s, 0);
}

static void note_time(struct walk *walk)
{
    reservoir_add(&walk->times, walk->block_s);
    walk->longest_s = fmax(walk->longest_s, walk->block_s);
    walk->block_s = 0;
    /* An even number, with the timed one an odd period: an even number of blocks then meets all
     * places in turn. Of large blocks each is timed. */
    walk->untimed = (TIMED_EVERY_BYTES / walk->ground->block_bytes) & ~(uint64_t)1;
}

/* Blocks in a row that nobody times. */
static void work_blocks(struct walk *walk, uint64_t blocks)
{
    uint64_t sum = 0;
    for (uint64_t block = walk->block; block < walk->block + blocks; block++)
        sum += work_at(walk, place_of(walk, block), walk->ground->block_bytes);
    walk->sum += sum;
    if (walk->untimed != UINT64_MAX)
        walk->untimed -= blocks;
    pass_blocks(walk, blocks);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void walk_blocks(struct walk *walk, uint64_t blocks)
{
    while (blocks > 0) {
        uint64_t now = smaller(smaller(blocks, walk->blocks - walk->block), walk->untimed);
        if (now > 0) {
            work_blocks(walk, now);
        } else {
            now = 1;
            work_timed(walk, walk->ground->block_bytes);
            note_time(walk);
            pass_blocks(walk, 1);
        }
        blocks -= now;
    }
}

/* Of blocks that need not end within a step. */
static void walk_bytes(struct walk *walk, uint64_t bytes)
{
    while (bytes > 0) {
        size_t now = smaller(bytes, walk->ground->block_bytes - walk->offset);
        bool timed = walk->untimed == 0;
        if (timed)
            work_timed(walk, now);
        else
            walk->sum += work_at(walk, place_of(walk, walk->block) + walk->offset, now);
        walk->offset += now;
        bytes -= now;
        if (walk->offset < walk->ground->block_bytes)
            continue;
        walk->offset = 0;
        if (timed)
            note_time(walk);
        else if (walk->untimed != UINT64_MAX)
            walk->untimed--;
        pass_blocks(walk, 1);
    }
}

void walk_to_block(struct walk *walk)
{
    if (walk->offset > 0)
        walk_bytes(walk, walk->ground->block_bytes - walk->offset);
}

size_t walk_part(struct walk *walk)
{
    size_t left = walk->ground->block_bytes - walk->offset, part = walk->ground->libc_bytes;
    size_t bytes = left / 2 < part ? left : part;
    walk_bytes(walk, bytes);
    return bytes;
}

void walk_to_part(struct walk *walk)
{
    size_t part = walk->ground->libc_bytes, beyond = walk->offset % part;
    if (walk->ground->block_bytes - walk->offset < part)
        walk_to_block(walk);
    else if (beyond > 0)
        walk_bytes(walk, part - beyond);
    if (walk->ground->block_bytes - walk->offset < part)
        walk_to_block(walk);
}

void walk_units(struct walk *walk, uint64_t units)
{
    const struct ground *ground = walk->ground;
    if (ground->unit_bytes == ground->block_bytes)
        walk_blocks(walk, units);
    else if (ground->unit_bytes == ground->libc_bytes)
        for (uint64_t i = 0; i < units; i++)
            walk_part(walk);
    else
        walk_bytes(walk, units * ground->unit_bytes);
    fence(walk);
}

void walk_empty(const struct walk *walk, uint64_t units)
{
    struct walk empty = *walk;
    empty.kernel = kernel_empty;
    empty.fenced = false;
    empty.marks = 0;
    empty.untimed = UINT64_MAX;
    walk_units(&empty, units);
}

/* ---- the check ------------------------------------------------------------------------------ */

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
    double factor = factor_of(walk->ground->operation, round);
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
    enum operation operation = walk->ground->operation;
    double expected = result_of(operation, element, salt_of(walk, element, round), ~walk->salt,
                                factor_of(operation, round));
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

/* A block of which `done` bytes belong to the present round. */
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

int walk_verify(const struct thread *thread, struct walk *walk)
{
    if (is_right(walk))
        return EXIT_OK;
    run_reason(thread->run,
               "the arrays of thread %u, CPU %d, do not hold what the kernel must have made of "
               "them: this CPU, its memory or this build works wrongly, trust no figure of it",
               thread->index, thread->cpu);
    return EXIT_WRONG;
}

/* ---- times of blocks ------------------------------------------------------------------------ */

static const struct {
    const char *metric;
    double share;
    size_t least; /* of so many times such a quantile says something */
} quantiles[] = {
    {"block_time_s_median", 0.5, 1},
    {"block_time_s_p99", 0.99, 100},
    {"block_time_s_p999", 0.999, 1000},
};

struct walk *walks_make(unsigned threads)
{
    size_t bytes = threads * sizeof(struct walk);
    struct walk *walks = aligned_alloc(_Alignof(struct walk), bytes);
    if (walks)
        memset(walks, 0, bytes);
    return walks;
}

/* The times of all walks, sorted; to be freed. */
static double *collect_times(const struct walk *walks, unsigned threads, size_t *count)
{
    double *times = calloc((size_t)threads * TIMES_KEPT, sizeof *times);
    *count = 0;
    for (unsigned i = 0; times && i < threads; i++) {
        memcpy(times + *count, walks[i].times.values, walks[i].times.kept * sizeof *times);
        *count += walks[i].times.kept;
    }
    if (times && *count)
        median(times, *count);
    return times;
}

static void report_no_times(struct run *run, const char *why)
{
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++)
        run_no_metric(run, quantiles[i].metric, why);
    run_no_metric(run, "block_time_s_max", why);
}

static void report_quantiles(struct run *run, const double *times, size_t count)
{
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++)
        if (count < quantiles[i].least)
            run_no_metric(run, quantiles[i].metric, "too few blocks were timed");
        else
            run_metric(run, quantiles[i].metric,
                       times[(size_t)ceil(quantiles[i].share * (double)count) - 1]);
}

void walks_report_times(struct run *run, const struct walk *walks, const struct ground *ground)
{
    size_t count;
    double longest_s = 0;
    if (!ground->timed) {
        report_no_times(run, "there are no blocks of at least 8192 bytes");
        return;
    }
    double *times = collect_times(walks, run_threads(run), &count);
    for (unsigned i = 0; i < run_threads(run); i++)
        longest_s = fmax(longest_s, walks[i].longest_s);
    if (!times || count == 0) {
        report_no_times(run, "no block was completed");
    } else {
        report_quantiles(run, times, count);
        run_metric(run, "block_time_s_max", longest_s);
    }
    free(times);
}
