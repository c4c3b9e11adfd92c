#include "stream.h"

#include "core_clock.h"
#include "isa.h"
#include "libc_routines.h"
#include "mem_workloads.h"
#include "store.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double LIBC_CALL_THRESHOLDS = 1.25;

/* What the threads of a run share. */
struct stream {
    struct ground ground;
    struct wish wish; /* before `best` was replaced */
    struct candidates candidates;
    struct walk *walks; /* one a thread */
    double clock_hertz; /* of the first thread's core, right after the timed region */
};

const char *const stream_patterns[] = {"sequential", "random", NULL};

/* ---- parameters ----------------------------------------------------------------------------- */

static const struct stream_kind *kind_of(const struct run *run)
{
    return run_own(run);
}

static bool is_libc(const struct stream_kind *kind)
{
    return kind->store && !strcmp(kind->store, "libc");
}

/* NULL: best. */
static const char *wish_for(const struct run *run, const char *param)
{
    const char *word = run_choice(run, param);
    return strcmp(word, "best") != 0 ? word : NULL;
}

static struct wish wish_of(const struct run *run)
{
    const struct stream_kind *kind = kind_of(run);
    struct wish wish = {.operation = kind->operation, .store = kind->store};
    if (is_libc(kind))
        return wish;
    wish.isa = wish_for(run, "isa");
    wish.streams = wish_for(run, "streams");
    wish.prefetch = wish_for(run, "prefetch");
    if (!kind->store)
        wish.store = wish_for(run, "store");
    return wish;
}

static size_t block_bytes_of(const struct run *run)
{
    return run_param_set(run, "block_bytes") ? run_count(run, "block_bytes") : 0;
}

static bool is_random(const struct run *run)
{
    return !strcmp(run_choice(run, "pattern"), "random");
}

void stream_resolve(struct run *run)
{
    const struct stream_kind *kind = kind_of(run);
    const char *store = wish_of(run).store;
    if ((kind->operation == OPERATION_WRITE || kind->operation == OPERATION_COPY) &&
        (!store || !strcmp(store, "libc")))
        run_library(run, libc_routines());
}

const char *stream_unsupported(const struct run *run)
{
    const char *reason = is_libc(kind_of(run)) ? NULL : isa_unsupported(run);
    return reason ? reason : working_set_unsupported(run);
}

const char *stream_unconfirmed(const struct run *run)
{
    return is_libc(kind_of(run)) ? NULL : isa_unconfirmed(run);
}

/* ---- what the parameters mean together ------------------------------------------------------ */

/* The C library's routines choose their way by the size of a call. A program that copies arrays calls
 * them with all of one; parts that are a little larger than where that way ends are as good, and no
 * slice gets much longer. */
static size_t libc_bytes(const struct ground *ground)
{
    double enough = LIBC_CALL_THRESHOLDS * libc_nt_threshold();
    if (ground->blocks || enough == 0 || enough > (double)ground->block_bytes)
        return ground->block_bytes;
    size_t parts = (size_t)((double)ground->block_bytes / enough);
    return parts > 1 ? ground->block_bytes / parts / LINE_BYTES * LINE_BYTES : ground->block_bytes;
}

static struct ground ground_of(const struct run *run, size_t array_bytes)
{
    struct ground ground = {.operation = kind_of(run)->operation, .random = is_random(run)};
    ground_divide(&ground, array_bytes, block_bytes_of(run));
    ground.libc_bytes = libc_bytes(&ground);
    return ground;
}

static double beside_bytes(const struct run *run, size_t array_bytes)
{
    struct ground ground = ground_of(run, array_bytes);
    return ground_beside_bytes(run, &ground, array_bytes);
}

static struct demand demand_of(const struct run *run)
{
    size_t block_bytes = block_bytes_of(run);
    return (struct demand){
        .arrays = walk_arrays(kind_of(run)->operation),
        .granule = block_bytes ? block_bytes : LINE_BYTES,
        .granule_name = block_bytes ? "block" : "cache line",
        .beside_bytes = beside_bytes,
        .beside_name = "order and times of the blocks",
        .beyond_caches = true,
    };
}

static bool takes_elements(enum operation operation)
{
    return operation >= OPERATION_SCALE;
}

static int check_blocks(struct run *run)
{
    size_t block_bytes = block_bytes_of(run);
    if (is_random(run) && !block_bytes) {
        run_reason(run, "--pattern random is a random order of blocks: give --block-bytes");
        return EXIT_USAGE;
    }
    if (takes_elements(kind_of(run)->operation) && block_bytes % ELEMENT_BYTES) {
        run_reason(run,
                   "--block-bytes %zu: this workload works on elements of 8 bytes: use a multiple "
                   "of 8, or the workload copy, read or write",
                   block_bytes);
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

static int check_order(struct run *run, const struct ground *ground, size_t array_bytes)
{
    uint64_t blocks = array_bytes / ground->block_bytes, most = (uint64_t)1 << 32;
    if (!ground->random || blocks <= most)
        return EXIT_OK;
    run_reason(run,
               "--block-bytes %zu makes %" PRIu64 " blocks of a thread's array, a random order "
               "counts to %" PRIu64 ": use larger blocks, more threads or a smaller --size-bytes",
               ground->block_bytes, blocks, most);
    return EXIT_USAGE;
}

static void lacks_pages(struct run *run, const struct wish *wish)
{
    if (wish->store && !strcmp(wish->store, "libc"))
        run_reason(run, "--prefetch pages: the C library's routines decide that themselves: use "
                        "--prefetch best or none");
    else if (wish->streams && strcmp(wish->streams, "1") != 0)
        run_reason(run,
                   "--prefetch pages works on one page at a time, not on %s: use --streams best or "
                   "1, or --prefetch none",
                   wish->streams);
    else
        run_reason(run,
                   "--prefetch pages needs blocks, or an array of each thread, of at least %d "
                   "bytes: use --prefetch best or none",
                   2 * PAGE_BYTES);
}

static int check_kernels(struct run *run, const struct ground *ground)
{
    struct candidates candidates;
    struct wish wish = wish_of(run);
    if (candidates_find(&candidates, &wish, ground))
        return EXIT_OK;
    if (wish.store && !strcmp(wish.store, "nt") && ground->block_bytes % LINE_BYTES)
        run_reason(run,
                   "--store nt writes whole cache lines: --block-bytes %zu is not a multiple "
                   "of %d",
                   ground->block_bytes, LINE_BYTES);
    else if (wish.prefetch && !strcmp(wish.prefetch, "pages"))
        lacks_pages(run, &wish);
    else if (wish.store && !strcmp(wish.store, "libc"))
        run_reason(run,
                   "--streams %s: the C library's routines decide that themselves: use "
                   "--streams best or 1",
                   wish.streams);
    else
        run_reason(run,
                   "--streams %s works on as many pages side by side: it needs blocks, or an "
                   "array of each thread, of at least %zu bytes",
                   wish.streams, (size_t)2 * PAGE_BYTES * strtoul(wish.streams, NULL, 10));
    return EXIT_USAGE;
}

int stream_check(struct run *run)
{
    struct demand demand = demand_of(run);
    int failure = check_blocks(run);
    if (!failure)
        failure = working_set_check(run, &demand);
    if (failure)
        return failure;
    size_t array_bytes = working_set_array_bytes(run, &demand);
    struct ground ground = ground_of(run, array_bytes);
    failure = check_order(run, &ground, array_bytes);
    return failure ? failure : check_kernels(run, &ground);
}

/* ---- life ----------------------------------------------------------------------------------- */

static int lacks_memory(struct run *run)
{
    run_reason(run, "not enough memory for %u threads: use fewer", run_threads(run));
    return EXIT_RESOURCE;
}

/* Where the last part of an array is longer, a unit counts as the mean of the parts. */
static uint64_t counted_bytes(const struct ground *ground, size_t unit_bytes)
{
    return ground->block_bytes / (ground->block_bytes / unit_bytes);
}

static void set_unit(struct run *run, struct ground *ground, size_t unit_bytes)
{
    uint64_t counted = counted_bytes(ground, unit_bytes) * walk_arrays(ground->operation);
    ground->unit_bytes = unit_bytes;
    run_set_unit(run, counted, UINT64_MAX / counted);
}

int stream_open(struct run *run)
{
    struct demand demand = demand_of(run);
    struct stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return lacks_memory(run);
    run_set_shared(run, stream);
    stream->wish = wish_of(run);
    stream->ground = ground_of(run, working_set_array_bytes(run, &demand));
    candidates_find(&stream->candidates, &stream->wish, &stream->ground);
    stream->walks = walks_make(run_threads(run));
    if (!stream->walks)
        return lacks_memory(run);
    set_unit(run, &stream->ground, stream->ground.unit_bytes);
    int failure = candidates_prepare(&stream->candidates, run);
    return failure ? failure : working_set_reserve(run, &stream->ground.set, &demand);
}

void stream_close(struct run *run)
{
    struct stream *stream = run_shared(run);
    if (!stream)
        return;
    working_set_release(&stream->ground.set);
    candidates_free(&stream->candidates);
    free(stream->walks);
    free(stream);
}

int stream_setup(struct thread *thread)
{
    struct stream *stream = run_shared(thread->run);
    thread->state = &stream->walks[thread->index];
    int failure = walk_begin(thread->state, &stream->ground, thread);
    if (failure)
        walk_end(thread->state);
    return failure;
}

void stream_teardown(struct thread *thread)
{
    walk_end(thread->state);
}

int stream_calibrate(struct thread *thread)
{
    struct stream *stream = run_shared(thread->run);
    struct walk *walk = thread->state;
    int failure = candidates_try(&stream->candidates, thread, walk);
    walk_count_anew(walk);
    if (failure || thread->index > 0 || !stream->candidates.chosen)
        return failure;
    working_set_inspect(thread->run, &stream->ground.set);
    if (!strcmp(stream->candidates.chosen->store, "libc"))
        set_unit(thread->run, &stream->ground, stream->ground.libc_bytes);
    if (is_libc(kind_of(thread->run)))
        return EXIT_OK;
    run_set_choice(thread->run, "isa", stream->candidates.chosen->isa);
    run_set_choice(thread->run, "streams", stream->candidates.chosen->streams);
    run_set_choice(thread->run, "prefetch", stream->candidates.chosen->prefetch);
    if (!kind_of(thread->run)->store)
        run_set_choice(thread->run, "store", stream->candidates.chosen->store);
    return EXIT_OK;
}

int stream_step(struct thread *thread, uint64_t batch)
{
    walk_units(thread->state, batch);
    return EXIT_OK;
}

void stream_empty_loop(struct thread *thread, uint64_t batch)
{
    walk_empty(thread->state, batch);
}

int stream_verify(struct thread *thread, uint64_t units)
{
    struct stream *stream = run_shared(thread->run);
    /* While the other threads check their arrays: the clock that all cores reach together. */
    if (thread->index == 0)
        stream->clock_hertz = core_clock_hertz();
    return walk_verify(thread, thread->state, units);
}

/* ---- metrics -------------------------------------------------------------------------------- */

/* Why there is no rate of such stores. */
static const char *why_no_rate(const struct stream *stream, const char *store)
{
    const struct wish *wish = &stream->wish;
    if (wish->store)
        return "the store was given, so none was compared";
    if (!strcmp(store, "nt") && stream->ground.block_bytes % LINE_BYTES)
        return "the blocks are not whole cache lines";
    if (!strcmp(store, "libc") && wish->streams && strcmp(wish->streams, "1") != 0)
        return "streams were given, and the C library's routines have none";
    if (!strcmp(store, "libc") && wish->prefetch && strcmp(wish->prefetch, "none") != 0)
        return "a prefetch was given, and the C library's routines have none";
    return "only one kernel suits these blocks, so none was compared";
}

static void report_rate(struct run *run, const struct stream *stream, const char *store,
                        const char *metric)
{
    double rate = candidates_rate(&stream->candidates, store);
    if (rate > 0 && run_oversubscribed(run))
        run_no_metric(run, metric, "threads share a CPU: rates of different moments do not add up");
    else if (rate > 0)
        run_metric(run, metric, rate);
    else
        run_no_metric(run, metric, why_no_rate(stream, store));
}

static void report_rates(struct run *run, const struct stream *stream)
{
    const struct stream_kind *kind = kind_of(run);
    if (kind->store)
        return;
    report_rate(run, stream, "plain", "bytes_per_second_plain");
    report_rate(run, stream, "nt", "bytes_per_second_nt");
    if (!takes_elements(kind->operation))
        report_rate(run, stream, "libc", "bytes_per_second_libc");
}

static void report_cycles(struct run *run, const struct stream *stream)
{
    double per_cycle = core_rate_per_cycle(run, "bytes_per_cycle", stream->clock_hertz);
    if (isfinite(per_cycle))
        run_metric(run, "bytes_per_cycle", per_cycle);
}

void stream_finish(struct thread *thread)
{
    struct run *run = thread->run;
    const struct stream *stream = run_shared(run);
    report_rates(run, stream);
    report_cycles(run, stream);
    run_metric(run, "huge_page_ratio", stream->ground.set.huge_page_ratio);
    walks_report_times(run, stream->walks, &stream->ground);
}
