/* numa: for each pair of NUMA nodes, one with CPUs and one with memory: the time of an access, idle
 * and under load, and the bandwidth. */
#include "crew.h"
#include "isa.h"
#include "mem_workloads.h"
#include "monotonic.h"
#include "nodes.h"
#include "numa_matrix.h"
#include "numa_sizes.h"
#include "store.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum {
    PASS_UNITS = 16, /* of the chain: some 100 µs */
    PASS_HOPS = PASS_UNITS * CHASE_UNROLLED,
};

static const double WINDOW_S = 0.002; /* of a rate: many chunks of each thread */
/* Long enough for a thread that was called to get its CPU. */
static const double PATIENCE_S = 0.1;
static const double LATE_S = 1;

static const char *const figure_names[FIGURES] = {
    [IDLE_TIME] = "access_time_s",
    [LOADED_TIME] = "loaded_access_time_s",
    [BANDWIDTH] = "bytes_per_second",
    [LOAD] = "load_bytes_per_second",
};

/* One thread that reads. */
struct reader {
    _Atomic uint64_t chunks;
    uint64_t noted; /* of them, when it was called */
};

/* ---- life ----------------------------------------------------------------------------------- */

/* As loaded_latency's load. */
static int find_kernel(struct run *run, struct matrix *matrix)
{
    struct candidates candidates;
    struct ground ground = {.operation = OPERATION_READ};
    struct wish wish = {.operation = OPERATION_READ,
                        .isa = run_choice(run, "isa"),
                        .store = "plain",
                        .streams = "8",
                        .prefetch = "none"};
    ground_divide(&ground, NUMA_CHUNK_BYTES, 0);
    if (!candidates_find(&candidates, &wish, &ground)) {
        wish.streams = "1";
        if (!candidates_find(&candidates, &wish, &ground))
            return numa_lacks_memory(run);
    }
    matrix->read = candidates.kernels[0]->function;
    return EXIT_OK;
}

static int open_numa(struct run *run)
{
    int failure = crew_open(run, sizeof(struct matrix), sizeof(struct reader));
    if (!failure)
        failure = numa_matrix_open(run, crew_state(run));
    return failure ? failure : find_kernel(run, crew_state(run));
}

static void close_numa(struct run *run)
{
    struct matrix *matrix = crew_state(run);
    if (matrix)
        numa_matrix_close(matrix);
    crew_close(run);
}

static int setup(struct thread *thread)
{
    if (thread->index == 0)
        run_set_unit(thread->run, 1, 1);
    return numa_matrix_fill(thread, crew_state(thread->run));
}

/* ---- work ----------------------------------------------------------------------------------- */

static struct reader *reader_of(const struct run *run, unsigned thread)
{
    return crew_member(run, thread);
}

/* Each thread of a side goes round through a part of its own, and in each step on from where it was:
 * what it reads again has left the caches. */
static uint64_t next_chunk(const struct thread *thread, const struct pair *pair, uint64_t done)
{
    uint64_t rank = 0, count = pair->side->count, chunks = pair->home->chunks;
    while (pair->side->threads[rank] != thread->index)
        rank++;
    uint64_t first = chunks * rank / count, end = chunks * (rank + 1) / count;
    return first + (end > first ? done % (end - first) : 0);
}

static int read_chunk(const struct thread *thread, const struct matrix *matrix,
                      const struct pair *pair)
{
    struct reader *reader = reader_of(thread->run, thread->index);
    const struct home *home = pair->home;
    uint64_t done = atomic_load_explicit(&reader->chunks, memory_order_relaxed);
    uint64_t next = next_chunk(thread, pair, done);
    unsigned char *chunk = numa_chunk(home, next);
    uint64_t sum = matrix->read(chunk, chunk, chunk, NUMA_CHUNK_BYTES, 0, 1);
    if (sum != home->sums[next]) {
        run_reason(thread->run,
                   "thread %u, CPU %d, has read wrong values from NUMA node %d: this CPU, its "
                   "memory or this build works wrongly, do not trust its figures",
                   thread->index, thread->cpu, home->node);
        return EXIT_WRONG;
    }
    atomic_store_explicit(&reader->chunks, done + 1, memory_order_relaxed);
    return EXIT_OK;
}

static int read_while_wanted(const struct thread *thread, const struct matrix *matrix,
                             const struct pair *pair)
{
    int failure = EXIT_OK;
    while (!failure && crew_wanted(thread))
        failure = read_chunk(thread, matrix, pair);
    return failure;
}

/* The time of one access. */
static double chase(struct home *home)
{
    double start_s = now_s();
    chase_units(&home->chase, PASS_UNITS);
    home->units += PASS_UNITS;
    return (now_s() - start_s) / PASS_HOPS;
}

/* ---- a step: one kind of figure of one pair ------------------------------------------------- */

static void note(const struct thread *thread, struct pair *pair, enum figure which, double value)
{
    if (run_loop_timed(thread))
        reservoir_add(&pair->seen[which], value);
}

static uint64_t chunks_read(const struct run *run, const struct side *side)
{
    uint64_t chunks = 0;
    for (unsigned i = 0; i < side->count; i++)
        chunks +=
            atomic_load_explicit(&reader_of(run, side->threads[i])->chunks, memory_order_relaxed);
    return chunks;
}

static void call_others(const struct run *run, const struct side *side)
{
    for (unsigned i = 1; i < side->count; i++) {
        struct reader *reader = reader_of(run, side->threads[i]);
        reader->noted = atomic_load(&reader->chunks);
        crew_call(run, side->threads[i]);
    }
}

static bool are_at_work(const struct run *run, const struct side *side)
{
    for (unsigned i = 1; i < side->count; i++) {
        const struct reader *reader = reader_of(run, side->threads[i]);
        if (atomic_load_explicit(&reader->chunks, memory_order_relaxed) == reader->noted)
            return false;
    }
    return true;
}

/* Until they sleep: then nothing reads while the next figure is taken. */
static void dismiss_others(const struct run *run, const struct side *side)
{
    for (unsigned i = 1; i < side->count; i++)
        crew_dismiss(run, side->threads[i]);
    for (unsigned i = 1; i < side->count; i++)
        crew_join(run, side->threads[i]);
}

static bool goes_on(const struct run *run, double until_s)
{
    return now_s() < until_s && !run_stopping(run);
}

static int measure_idle(struct thread *thread, struct matrix *matrix, struct pair *pair)
{
    double start_s = now_s();
    uint64_t hops = 0;
    for (; goes_on(thread->run, start_s + matrix->step_s); hops += PASS_HOPS)
        note(thread, pair, IDLE_TIME, chase(pair->home));
    if (run_loop_timed(thread))
        crew_note(thread->run, hops, now_s() - start_s);
    return EXIT_OK;
}

/* Notes the rate of each window; a thread that had no CPU in one takes from that one alone. */
static int measure_bandwidth(struct thread *thread, struct matrix *matrix, struct pair *pair)
{
    const struct run *run = thread->run;
    const struct side *side = pair->side;
    double until_s = now_s() + PATIENCE_S;
    int failure = EXIT_OK;
    call_others(run, side);
    while (!failure && !are_at_work(run, side) && goes_on(run, until_s))
        failure = read_chunk(thread, matrix, pair);
    if (!failure && are_at_work(run, side)) {
        uint64_t chunks = chunks_read(run, side);
        double start_s = now_s();
        until_s = start_s + matrix->step_s;
        while (!failure && goes_on(run, until_s)) {
            failure = read_chunk(thread, matrix, pair);
            double window_s = now_s() - start_s;
            if (window_s < WINDOW_S)
                continue;
            uint64_t more = chunks_read(run, side) - chunks;
            note(thread, pair, BANDWIDTH, (double)(more * NUMA_CHUNK_BYTES) / window_s);
            chunks += more;
            start_s += window_s;
        }
    }
    dismiss_others(run, side);
    return failure;
}

static int measure_loaded(struct thread *thread, struct matrix *matrix, struct pair *pair)
{
    const struct run *run = thread->run;
    const struct side *side = pair->side;
    double until_s = now_s() + PATIENCE_S;
    if (side->count < 2)
        return EXIT_OK;
    call_others(run, side);
    while (!are_at_work(run, side) && goes_on(run, until_s))
        chase(pair->home);
    if (are_at_work(run, side)) {
        uint64_t chunks = chunks_read(run, side);
        double start_s = now_s();
        while (goes_on(run, start_s + matrix->step_s))
            note(thread, pair, LOADED_TIME, chase(pair->home));
        chunks = chunks_read(run, side) - chunks;
        note(thread, pair, LOAD, (double)(chunks * NUMA_CHUNK_BYTES) / (now_s() - start_s));
    }
    dismiss_others(run, side);
    return EXIT_OK;
}

static int (*const steps[NUMA_STEPS])(struct thread *, struct matrix *, struct pair *) = {
    measure_idle, measure_bandwidth, measure_loaded};

/* ---- rounds --------------------------------------------------------------------------------- */

static struct pair *pair_of_step(const struct matrix *matrix)
{
    return &matrix->pairs[matrix->step / NUMA_STEPS % matrix->pair_count];
}

static void call_leader(const struct run *run, const struct matrix *matrix)
{
    crew_call(run, pair_of_step(matrix)->side->threads[0]);
}

/* A round that has begun is finished, so that each pair has its figures, unless others hold the CPUs
 * for so long that it takes twice the time, or a second more; one that would end too late is not begun. */
static bool is_over(const struct thread *thread, const struct matrix *matrix)
{
    uint64_t done = matrix->step - matrix->first_step;
    uint64_t round = NUMA_STEPS * matrix->pair_count;
    double at_s = now_s(), taken_s = at_s - matrix->began_s;
    if (!run_loop_timed(thread))
        return run_loop_over(thread, 0, at_s);
    if (done % round)
        return run_loop_over(thread, 0, at_s - fmax(run_number(thread->run, "duration_s"), LATE_S));
    return run_loop_over(thread, 0, at_s + taken_s * (double)round / (double)done);
}

static int lead(struct thread *thread, struct matrix *matrix)
{
    int failure = steps[matrix->step % NUMA_STEPS](thread, matrix, pair_of_step(matrix));
    matrix->step++;
    if (failure || is_over(thread, matrix))
        crew_end(thread->run);
    else
        call_leader(thread->run, matrix);
    return failure;
}

static int loop(struct thread *thread)
{
    struct matrix *matrix = crew_state(thread->run);
    int failure = EXIT_OK;
    if (thread->index == 0)
        call_leader(thread->run, matrix);
    while (!failure && crew_wait(thread)) {
        const struct pair *pair = pair_of_step(matrix);
        failure = thread->index == pair->side->threads[0] ? lead(thread, matrix)
                                                          : read_while_wanted(thread, matrix, pair);
    }
    return failure;
}

static int prepare(struct thread *thread)
{
    struct matrix *matrix = crew_state(thread->run);
    if (thread->index == 0) {
        matrix->first_step = matrix->step;
        matrix->began_s = now_s();
    }
    return crew_prepare(thread);
}

/* ---- figures -------------------------------------------------------------------------------- */

static double median_of(const struct reservoir *seen)
{
    return seen->kept > 0 ? median(seen->values, seen->kept) : NAN;
}

/* The medians of the pairs that this thread leads, as its own rate. */
static void work_out_own(struct thread *thread, struct matrix *matrix)
{
    double *times_s = calloc(matrix->pair_count, sizeof *times_s);
    size_t count = 0;
    uint64_t passes = 0;
    for (size_t i = 0; i < matrix->pair_count; i++) {
        struct pair *pair = &matrix->pairs[i];
        if (pair->side->threads[0] != thread->index)
            continue;
        for (enum figure which = 0; which < FIGURES; which++)
            pair->figures[which] = median_of(&pair->seen[which]);
        passes += pair->seen[IDLE_TIME].seen;
        if (times_s && isfinite(pair->figures[IDLE_TIME]))
            times_s[count++] = pair->figures[IDLE_TIME];
    }
    if (count > 0)
        run_bulk_done(thread, passes * PASS_HOPS, 1 / median(times_s, count));
    else
        run_bulk_none(thread, 0,
                      "this thread leads no pair of nodes: it reads beside one that does");
    free(times_s);
}

static int verify(struct thread *thread, uint64_t units)
{
    struct matrix *matrix = crew_state(thread->run);
    (void)units;
    int failure = numa_matrix_verify(thread, matrix);
    work_out_own(thread, matrix);
    return failure;
}

static void report_pairs(struct run *run, const struct matrix *matrix)
{
    for (size_t i = 0; i < matrix->pair_count; i++) {
        const struct pair *pair = &matrix->pairs[i];
        int from = pair->side->node, to = pair->home->node;
        double distance = nodes_distance(from, to, "/sys");
        for (enum figure which = 0; which < FIGURES; which++)
            if (isfinite(pair->figures[which]))
                run_node_figure(run, from, to, figure_names[which], pair->figures[which]);
        if (isfinite(distance))
            run_node_figure(run, from, to, "distance", distance);
    }
}

/* All that there are of one figure, in order; how many. */
static size_t collect(const struct matrix *matrix, enum figure which, double *values)
{
    size_t count = 0;
    for (size_t i = 0; i < matrix->pair_count; i++)
        if (isfinite(matrix->pairs[i].figures[which]))
            values[count++] = matrix->pairs[i].figures[which];
    if (count > 0)
        median(values, count);
    return count;
}

static void report_extremes(struct run *run, const char *lowest, const char *highest,
                            const double *values, size_t count)
{
    run_metric(run, lowest, count > 0 ? values[0] : NAN);
    run_metric(run, highest, count > 0 ? values[count - 1] : NAN);
}

static void report_loaded(struct run *run, double *values, size_t count)
{
    if (count > 0)
        run_metric(run, "loaded_access_time_s", median(values, count));
    else
        run_no_metric(run, "loaded_access_time_s",
                      "no node has a second CPU of this process that got to make load");
}

static double huge_page_ratio(const struct matrix *matrix)
{
    double sum = 0;
    for (size_t i = 0; i < matrix->home_count; i++)
        sum += pages_huge_ratio(&matrix->homes[i].pages);
    return sum / (double)matrix->home_count;
}

static void warn_of_small_pages(const struct run *run, const struct matrix *matrix)
{
    for (size_t i = 0; i < matrix->home_count; i++) {
        const struct home *home = &matrix->homes[i];
        double ratio = pages_huge_ratio(&home->pages);
        if (home->pages.mode == PAGES_HUGE && ratio < ENOUGH_HUGE_PAGES)
            run_warning(run, "huge_pages_missing",
                        "only %.0f %% of the memory on NUMA node %d lies in huge pages: its times "
                        "include the translation of addresses",
                        100 * ratio, home->node);
    }
}

static void finish(struct thread *thread)
{
    struct run *run = thread->run;
    struct matrix *matrix = crew_state(run);
    double *values = calloc(matrix->pair_count, sizeof *values);
    if (!values)
        abort();
    report_pairs(run, matrix);
    size_t count = collect(matrix, IDLE_TIME, values);
    run_metric(run, "node_pairs_measured", (double)count);
    run_bulk_rate(run, count > 0 ? median(values, count) : NAN);
    report_extremes(run, "access_time_s_nearest", "access_time_s_farthest", values, count);
    count = collect(matrix, LOADED_TIME, values);
    report_loaded(run, values, count);
    count = collect(matrix, BANDWIDTH, values);
    report_extremes(run, "bytes_per_second_lowest", "bytes_per_second_highest", values, count);
    run_metric(run, "huge_page_ratio", huge_page_ratio(matrix));
    warn_of_small_pages(run, matrix);
    free(values);
}

/* ---- table ---------------------------------------------------------------------------------- */

/* No hugetlb: the pool is the host's, and a node's part of it is not what is free there. */
static const char *const modes[] = {"4k", "huge", NULL};

static const struct param params[] = {
    PARAM_ISA,
    {.name = "pages",
     .type = PARAM_CHOICE,
     .initial = "huge",
     .choices = modes,
     .roles = ROLE_TAG,
     .title = "page mode",
     .help = "Page size of the memory. huge: requests transparent huge pages of 2 MiB "
             "(huge_page_ratio reports the share obtained)."},
    {.name = NUMA_SIZE,
     .type = PARAM_COUNT,
     .unit = "byte",
     .initial = "auto",
     .min = NUMA_GRANULE,
     .max = 0x1p39, /* what a chase leads through */
     .choices = size_words,
     .roles = ROLE_AXIS,
     .title = "memory of each node",
     .help = "Memory of each node, in whole 4 MiB: pointers lead through one half, the other one "
             "is read; auto: 8 times the last-level caches of a node's CPUs, at least 640 MB, at "
             "most 60 % of the memory there is."},
    {.name = NULL}};

static const struct metric metrics[] = {
    {"access_time_s_nearest", "s", LOWER_IS_BETTER, "The same of the fastest pair of nodes."},
    {"access_time_s_farthest", "s", LOWER_IS_BETTER, "The same of the slowest pair of nodes."},
    {"loaded_access_time_s", "s", LOWER_IS_BETTER,
     "Time of such an access while all other threads on the node read from the same memory: median "
     "over the pairs of nodes."},
    {"bytes_per_second_lowest", "byte/s", HIGHER_IS_BETTER,
     "What all threads on a node read together from the memory of one node: the slowest pair."},
    {"bytes_per_second_highest", "byte/s", HIGHER_IS_BETTER, "The same of the fastest pair."},
    {"node_pairs_measured", "pair", HIGHER_IS_BETTER,
     "Pairs measured, of a node with threads of this trial and a node with enough free memory: all "
     "pairs or, where these do not fit into duration_s, some of each node with threads."},
    METRIC_HUGE_PAGE_RATIO,
    {.name = NULL}};

static const char *const excludes[] = {"work", NULL};

const struct workload numa_workload = {
    .name = "numa",
    .description =
        "Follows pointers through the memory of each NUMA node from the CPUs of each "
        "node, idle and under load, and reads it with all of them. A pair of nodes takes "
        "at least 15 ms: where duration_s is too short for all of them, it measures a "
        "part.",
    .rate = {.name = "access_time_s",
             .unit = "s",
             .description = "Time of one access that depends on the one before, with nothing "
                            "beside it: median over the pairs of nodes of the median of some "
                            "1000 accesses in a row.",
             .combine = COMBINE_MEDIAN,
             .time = true},
    .excludes = excludes,
    .params = params,
    .metrics = metrics,
    .setup_s = 1,
    .setup_s_per_byte = 1e-9,
    .resolve = isa_resolve,
    .unsupported = numa_unsupported,
    .unconfirmed = isa_unconfirmed,
    .check = numa_check,
    .open = open_numa,
    .close = close_numa,
    .setup = setup,
    .loop = loop,
    .prepare = prepare,
    .moved = crew_moved,
    .verify = verify,
    .finish = finish,
};
