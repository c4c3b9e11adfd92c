#include "naive_life.h"

#include "kernels.h"
#include "libc_routines.h"
#include "monotonic.h"
#include "naive_walk.h"
#include "working_set.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How often a thread checks whether to go on: reading its clock is no part of the figure. */
static const double PIECE_S = 1e-3;

/* Of one thread. */
struct naive_thread {
    struct naive_walk walk;
    struct naive_cursor cursor; /* where it shares none */
    /* Of this phase. */
    uint64_t blocks;
    int64_t begun_us, ended_us;
    /* What the samples are made from, by another thread. */
    pthread_mutex_t lock;
    uint64_t moved;
    double moved_at_s;
};

/* What the threads share. */
struct naive {
    struct working_set set;
    struct pages temporaries;
    size_t temporary_step;
    struct naive_way way;
    naive_blocks *loop;
    size_t block_bytes;
    struct naive_cursor cursor; /* of all threads, where they take turns */
    struct naive_thread *threads;
};

/* ---- parameters ----------------------------------------------------------------------------- */

static bool is(const struct run *run, const char *param, const char *word)
{
    return !strcmp(run_choice(run, param), word);
}

static bool sets(const struct run *run)
{
    const struct naive_kind *kind = run_own(run);
    return kind->set;
}

static struct naive_way way_of(const struct run *run)
{
    return (struct naive_way){
        .set = sets(run),
        .random = is(run, "pattern", "random"),
        .clocked = is(run, "clock", "each"),
        .locked = is(run, "lock", "each"),
    };
}

static size_t temporary_step(const struct run *run)
{
    size_t block_bytes = run_count(run, "block_bytes");
    return (block_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static double beside_bytes(const struct run *run, size_t array_bytes)
{
    (void)array_bytes;
    return sets(run) ? 0 : (double)temporary_step(run) * run_threads(run);
}

static struct demand demand_of(const struct run *run)
{
    return (struct demand){
        .arrays = 1,
        .granule = run_count(run, "block_bytes"),
        .granule_name = "block",
        .beside_bytes = beside_bytes,
        .beside_name = "temporary blocks",
        .beyond_caches = true,
    };
}

void naive_resolve(struct run *run)
{
    run_library(run, libc_routines());
}

int naive_check(struct run *run)
{
    struct demand demand = demand_of(run);
    return working_set_check(run, &demand);
}

/* ---- life ----------------------------------------------------------------------------------- */

static int lacks_memory(struct run *run)
{
    run_reason(run, "not enough memory for %u threads: use fewer", run_threads(run));
    return EXIT_RESOURCE;
}

static struct naive_cursor cursor_over(const struct naive *naive, unsigned first, unsigned parts)
{
    uint64_t part_blocks = naive->set.array_bytes / naive->block_bytes;
    return (struct naive_cursor){
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .memory = working_set_array(&naive->set, first, 0),
        .part_step = naive->set.thread_step,
        .part_blocks = part_blocks,
        .parts = parts,
        .block_bytes = naive->block_bytes,
        .blocks = part_blocks * parts,
    };
}

int naive_open(struct run *run)
{
    struct demand demand = demand_of(run);
    unsigned threads = run_threads(run);
    struct naive *naive = aligned_alloc(_Alignof(struct naive), sizeof *naive);
    if (!naive)
        return lacks_memory(run);
    memset(naive, 0, sizeof *naive);
    run_set_shared(run, naive);
    naive->threads = aligned_alloc(_Alignof(struct naive_thread), threads * sizeof *naive->threads);
    if (!naive->threads)
        return lacks_memory(run);
    memset(naive->threads, 0, threads * sizeof *naive->threads);
    naive->way = way_of(run);
    naive->loop = naive_loop(&naive->way);
    naive->block_bytes = run_count(run, "block_bytes");
    naive->temporary_step = temporary_step(run);
    run_set_unit(run, naive->block_bytes, UINT64_MAX / naive->block_bytes);
    int failure = working_set_reserve(run, &naive->set, &demand);
    if (failure)
        return failure;
    naive->cursor = cursor_over(naive, 0, threads);
    return sets(run) ? EXIT_OK
                     : pages_reserve(run, &naive->temporaries, naive->temporary_step * threads,
                                     naive->set.pages.mode);
}

void naive_close(struct run *run)
{
    struct naive *naive = run_shared(run);
    if (!naive)
        return;
    working_set_release(&naive->set);
    pages_release(&naive->temporaries);
    free(naive->threads);
    free(naive);
}

int naive_setup(struct thread *thread)
{
    struct naive *naive = run_shared(thread->run);
    struct naive_thread *own = &naive->threads[thread->index];
    thread->state = own;
    pthread_mutex_init(&own->lock, NULL);
    own->cursor = cursor_over(naive, thread->index, 1);
    own->walk.cursor = naive->way.locked ? &naive->cursor : &own->cursor;
    int failure = working_set_touch(thread, &naive->set);
    if (failure || naive->way.set || run_stopping(thread->run))
        return failure;
    naive_fill(own->cursor.memory, naive->set.array_bytes);
    own->walk.temporary =
        (unsigned char *)naive->temporaries.base + thread->index * naive->temporary_step;
    return pages_touch(thread->run, &naive->temporaries, own->walk.temporary,
                       naive->temporary_step);
}

int naive_calibrate(struct thread *thread)
{
    struct naive *naive = run_shared(thread->run);
    if (thread->index == 0)
        working_set_inspect(thread->run, &naive->set);
    return EXIT_OK;
}

/* ---- a phase -------------------------------------------------------------------------------- */

/* As many blocks, or what is left of this thread's work. */
static uint64_t within_work(const struct thread *thread, uint64_t blocks, uint64_t more)
{
    while (more > 1 && run_loop_over(thread, blocks + more - 1, 0))
        more /= 2;
    return more;
}

static uint64_t adapted(uint64_t piece, double taken_s)
{
    if (taken_s < PIECE_S / 2)
        return piece * 2;
    return taken_s > PIECE_S * 2 && piece > 1 ? piece / 2 : piece;
}

static void show(struct naive_thread *own, uint64_t bytes, double at_s)
{
    pthread_mutex_lock(&own->lock);
    own->moved = bytes;
    own->moved_at_s = at_s;
    pthread_mutex_unlock(&own->lock);
}

uint64_t naive_moved(const struct thread *thread, double *at_s)
{
    struct naive_thread *own = thread->state;
    pthread_mutex_lock(&own->lock);
    uint64_t bytes = own->moved;
    *at_s = own->moved_at_s;
    pthread_mutex_unlock(&own->lock);
    return bytes;
}

/* The time that counts, of one thread in this phase. */
static int64_t taken_us(const struct naive *naive, const struct naive_thread *own)
{
    return naive->way.clocked ? own->walk.clocked_us : own->ended_us - own->begun_us;
}

static double rate_of(double bytes, int64_t time_us)
{
    return time_us > 0 ? bytes / ((double)time_us * 1e-6) : NAN;
}

/* Where the clock was set within a block, the sum over the blocks holds that, and is no longer a part
 * of the time between the first block and the last. */
static void leave_out_setting(const struct run *run, struct naive_thread *own)
{
    int64_t clocked_us = own->walk.clocked_us;
    if (clocked_us < 0 || clocked_us > own->ended_us - own->begun_us)
        own->walk.clocked_us -= run_wall_set_us(run);
}

int naive_run(struct thread *thread)
{
    const struct naive *naive = run_shared(thread->run);
    struct naive_thread *own = thread->state;
    double begun_s = now_s(), at_s = begun_s;
    uint64_t piece = 1;
    own->blocks = 0;
    own->walk.clocked_us = 0;
    show(own, 0, begun_s);
    own->begun_us = run_wall_us(thread->run);
    while (!run_loop_over(thread, own->blocks, at_s)) {
        uint64_t blocks = within_work(thread, own->blocks, piece);
        naive->loop(&own->walk, blocks);
        own->blocks += blocks;
        double now = now_s();
        piece = adapted(piece, now - at_s);
        at_s = now;
        show(own, own->blocks * naive->block_bytes,
             naive->way.clocked ? begun_s + (double)own->walk.clocked_us * 1e-6 : at_s);
    }
    own->ended_us = run_wall_us(thread->run);
    leave_out_setting(thread->run, own);
    uint64_t bytes = own->blocks * naive->block_bytes;
    if (run_loop_timed(thread))
        run_bulk_done(thread, bytes, rate_of((double)bytes, taken_us(naive, own)));
    return EXIT_OK;
}

/* ---- the result ----------------------------------------------------------------------------- */

static bool copy_is_right(const struct naive *naive, const struct naive_thread *own)
{
    const struct naive_cursor *cursor = own->walk.cursor;
    if (!naive_is_filled(own->cursor.memory, naive->set.array_bytes))
        return false;
    /* Where threads take turns, the last block of all is in the temporary place of one. */
    return naive->way.locked || !cursor->last ||
           !memcmp(own->walk.temporary, cursor->last, naive->block_bytes);
}

static bool last_copy_is_right(const struct run *run, const struct naive *naive)
{
    const unsigned char *last = naive->cursor.last;
    for (unsigned i = 0; last && i < run_threads(run); i++)
        if (!memcmp(naive->threads[i].walk.temporary, last, naive->block_bytes))
            return true;
    return !last;
}

/* What all take turns at is looked at by the first. */
static bool is_right(const struct thread *thread, const struct naive *naive)
{
    const struct naive_thread *own = thread->state;
    bool first = thread->index == 0;
    if (!naive->way.set)
        return copy_is_right(naive, own) &&
               (!naive->way.locked || !first || last_copy_is_right(thread->run, naive));
    return (naive->way.locked && !first) || naive_set_is_right(own->walk.cursor, &naive->way);
}

int naive_verify(struct thread *thread, uint64_t units)
{
    (void)units; /* a loop counts for itself */
    const struct naive *naive = run_shared(thread->run);
    if (is_right(thread, naive))
        return EXIT_OK;
    run_reason(thread->run,
               "the memory of thread %u, CPU %d, does not hold what %s() must have left: this CPU, "
               "its memory or this build does not work correctly; do not trust its figures",
               thread->index, thread->cpu, naive->way.set ? "memset" : "memcpy");
    return EXIT_WRONG;
}

/* From the first reading of the clock to the last one, or what the thread that took longest has
 * added up. */
static int64_t whole_us(const struct run *run, const struct naive *naive)
{
    int64_t begun_us = INT64_MAX, ended_us = INT64_MIN, clocked_us = 0;
    for (unsigned i = 0; i < run_threads(run); i++) {
        const struct naive_thread *own = &naive->threads[i];
        begun_us = own->begun_us < begun_us ? own->begun_us : begun_us;
        ended_us = own->ended_us > ended_us ? own->ended_us : ended_us;
        clocked_us = own->walk.clocked_us > clocked_us ? own->walk.clocked_us : clocked_us;
    }
    return naive->way.clocked ? clocked_us : ended_us - begun_us;
}

void naive_finish(struct thread *thread)
{
    struct run *run = thread->run;
    const struct naive *naive = run_shared(run);
    double bytes = 0;
    for (unsigned i = 0; i < run_threads(run); i++)
        bytes += (double)(naive->threads[i].blocks * naive->block_bytes);
    run_bulk_rate(run, rate_of(bytes, whole_us(run, naive)));
    run_metric(run, "bytes_per_second_makespan", bytes / run_loop_elapsed_s(run));
    run_metric(run, "huge_page_ratio", naive->set.huge_page_ratio);
}
