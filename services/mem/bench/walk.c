#include "walk.h"

#include "histogram.h"
#include "monotonic.h"
#include "order.h"
#include "walk_contents.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    TIMED_BLOCK_LEAST = 8192,   /* what a reading of the clock takes is small beside it */
    WHOLE_BLOCK_MOST = 1 << 16, /* larger ones, of whole lines, may be done in several steps */
    TIMED_EVERY_BYTES = 1 << 20,
    TIMES_KEPT = 1 << 15, /* of a walk */
};

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

struct walk *walks_make(unsigned threads)
{
    size_t bytes = threads * sizeof(struct walk);
    struct walk *walks = aligned_alloc(_Alignof(struct walk), bytes);
    if (walks)
        memset(walks, 0, bytes);
    return walks;
}

static int lacks_memory(const struct thread *thread)
{
    run_reason(thread->run,
               "not enough memory for the order and times of the blocks of thread %u: use fewer "
               "threads or larger blocks",
               thread->index);
    return EXIT_RESOURCE;
}

static void fill(unsigned char *array, uint64_t elements, uint32_t salt)
{
    double *values = (double *)array;
    for (uint64_t i = 0; i < elements; i++)
        values[i] = filling(i, salt);
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
        .alike_shift = alike_shift_of(ground),
        .salt = thread->index * 0x9e3779b9u,
        .untimed = ground->timed ? 0 : UINT64_MAX,
        .clock_read_s = run_clock_read_s(thread->run),
    };
    int failure = working_set_touch(thread, &ground->set);
    if (failure || run_stopping(thread->run))
        return failure;
    place_arrays(walk, thread);
    walk->factor = factor_of(walk, 0);
    walk->marks = marks_of(ground);
    if (ground->random)
        walk->index = index_make(blocks, walk->salt);
    if ((ground->random && !walk->index) ||
        (ground->timed && reservoir_init(&walk->times, TIMES_KEPT)))
        return lacks_memory(thread);
    return EXIT_OK;
}

/* Of each array. */
static uint64_t walked_bytes(const struct walk *walk)
{
    return (walk->rounds * walk->blocks + walk->block) * walk->ground->block_bytes + walk->offset;
}

void walk_count_anew(struct walk *walk)
{
    walk->uncounted_bytes = walked_bytes(walk);
    walk->times.kept = 0;
    walk->times.seen = 0;
    walk->longest_s = 0;
}

/* The last unit of a block may be longer. */
static uint64_t units_in(const struct ground *ground, uint64_t bytes)
{
    uint64_t units_each = ground->block_bytes / ground->unit_bytes;
    return bytes / ground->block_bytes * units_each +
           bytes % ground->block_bytes / ground->unit_bytes;
}

uint64_t walk_units_done(const struct walk *walk)
{
    return units_in(walk->ground, walked_bytes(walk)) -
           units_in(walk->ground, walk->uncounted_bytes);
}

void walk_end(struct walk *walk)
{
    free(walk->index);
    reservoir_free(&walk->times);
}

/* ---- walking -------------------------------------------------------------------------------- */

static inline uint64_t work_at(const struct walk *walk, size_t place, size_t bytes)
{
    return walk->kernel(walk->a + place, walk->b + place, walk->c + place, bytes, walk->factor, 1);
}

/* From the present round on. */
static uint64_t alike_rounds_left(const struct walk *walk)
{
    uint64_t each = (uint64_t)1 << walk->alike_shift;
    return each - (walk->rounds & (each - 1));
}

/* At most those that are alike. */
static void pass_rounds(struct walk *walk, uint64_t rounds)
{
    bool change = rounds == alike_rounds_left(walk);
    walk->rounds += rounds;
    if (!change)
        return;
    walk->factor = factor_of(walk, walk->rounds);
    if (walk->marks > 0)
        mark(walk, mark_salt(walk, walk->rounds));
}

static void pass_blocks(struct walk *walk, uint64_t blocks)
{
    walk->block += blocks;
    if (walk->block < walk->blocks)
        return;
    walk->block = 0;
    pass_rounds(walk, 1);
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

/* Blocks in a row, not timed one by one. */
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

/* Where one block is all there is, and so many bytes are still to be done: as many rounds as one call
 * of the kernel may make. Gives the bytes that it has done, 0: none. */
static uint64_t work_rounds(struct walk *walk, uint64_t bytes)
{
    size_t block_bytes = walk->ground->block_bytes;
    bool possible = walk->blocks == 1 && walk->offset == 0 && !walk->ground->timed;
    uint64_t rounds = possible ? smaller(bytes / block_bytes, alike_rounds_left(walk)) : 0;
    if (rounds == 0)
        return 0;
    walk->sum += walk->kernel(walk->a, walk->b, walk->c, block_bytes, walk->factor, rounds);
    pass_rounds(walk, rounds);
    return rounds * block_bytes;
}

/* Of blocks that need not end within a step. */
static void walk_bytes(struct walk *walk, uint64_t bytes)
{
    while (bytes > 0) {
        uint64_t done = work_rounds(walk, bytes);
        if (done > 0) {
            bytes -= done;
            continue;
        }
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

/* ---- the times of blocks -------------------------------------------------------------------- */

static const struct {
    const char *metric;
    double share;
    bool is_bound; /* an upper one with 95 % confidence, of enough times */
} quantiles[] = {
    {"block_time_s_median", 0.5, false},
    {"block_time_s_p99", 0.99, true},
    {"block_time_s_p999", 0.999, true},
};

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
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++) {
        double share = quantiles[i].share;
        bool is_bound = quantiles[i].is_bound;
        if (is_bound && count < histogram_least(share)) {
            run_no_metric(run, quantiles[i].metric, "too few blocks were timed");
            continue;
        }
        size_t rank =
            is_bound ? histogram_upper_rank(count, share) : (size_t)ceil(share * (double)count);
        run_metric(run, quantiles[i].metric, times[rank - 1]);
    }
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
