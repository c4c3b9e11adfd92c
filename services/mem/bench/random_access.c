/* random_access: the amortised time of small accesses at random places that do not wait
 * for each other. */
#include "accesses.h"
#include "kernels.h"
#include "mem_workloads.h"
#include "order.h"
#include "working_set.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct random_access {
    struct working_set set;
    enum access_operation operation;
    bool index;
    size_t block_bytes;
    access_function *loop, *empty_loop;
};

struct random_thread {
    _Alignas(128) struct accesses accesses;
    uint32_t *index;
};

static const char *const operations[] = {"read", "write", "update", NULL};
static const char *const indexes[] = {"precomputed", "lcg", NULL};

/* ---- parameters ----------------------------------------------------------------------------- */

static enum access_operation operation_of(const struct run *run)
{
    const char *operation = run_choice(run, "operation");
    if (!strcmp(operation, "read"))
        return ACCESS_READ;
    return strcmp(operation, "write") ? ACCESS_UPDATE : ACCESS_WRITE;
}

static bool has_index(const struct run *run)
{
    return !strcmp(run_choice(run, "index"), "precomputed");
}

static uint64_t round_of(uint64_t blocks)
{
    return order_round(blocks) / ACCESSES_UNROLLED * ACCESSES_UNROLLED;
}

static double beside_bytes(const struct run *run, size_t array_bytes)
{
    uint64_t blocks = array_bytes / run_count(run, "block_bytes");
    return has_index(run) ? (double)index_bytes(order_round(blocks)) * run_threads(run) : 0;
}

static struct demand demand_of(const struct run *run)
{
    size_t unit_bytes = run_count(run, "block_bytes") * ACCESSES_UNROLLED;
    return (struct demand){
        .arrays = 1,
        .granule = unit_bytes > LINE_BYTES ? unit_bytes : LINE_BYTES,
        .granule_name = "unit",
        .beside_bytes = beside_bytes,
        .beside_name = "index",
        .beyond_caches = true,
    };
}

static int check_blocks(struct run *run)
{
    uint64_t block_bytes = run_count(run, "block_bytes");
    if ((block_bytes & (block_bytes - 1)) == 0)
        return EXIT_OK;
    run_reason(run, "--block-bytes %" PRIu64 ": an access is one of 1, 2, 4, 8, 16, 32 or 64 bytes",
               block_bytes);
    return EXIT_USAGE;
}

static int check(struct run *run)
{
    int failure = check_blocks(run);
    struct demand demand = demand_of(run);
    if (!failure)
        failure = working_set_check(run, &demand);
    if (failure)
        return failure;
    uint64_t most = (uint64_t)1 << 32;
    uint64_t blocks = working_set_array_bytes(run, &demand) / run_count(run, "block_bytes");
    if (blocks <= most)
        return EXIT_OK;
    run_reason(run,
               "a thread's part of the working set has %" PRIu64 " blocks, more than %" PRIu64
               ": use larger --block-bytes, more threads or a smaller --size-bytes",
               blocks, most);
    return EXIT_USAGE;
}

/* ---- life ----------------------------------------------------------------------------------- */

static int lacks_memory(struct run *run)
{
    run_reason(run, "not enough memory for the index of %u threads: use fewer, or --index lcg",
               run_threads(run));
    return EXIT_RESOURCE;
}

static int open_random(struct run *run)
{
    struct demand demand = demand_of(run);
    struct random_access *shared = calloc(1, sizeof *shared);
    if (!shared)
        return lacks_memory(run);
    run_set_shared(run, shared);
    shared->operation = operation_of(run);
    shared->index = has_index(run);
    shared->block_bytes = run_count(run, "block_bytes");
    shared->loop = accesses_loop(shared->operation, shared->index, shared->block_bytes);
    shared->empty_loop = accesses_empty_loop(shared->operation, shared->index, shared->block_bytes);
    run_set_unit(run, ACCESSES_UNROLLED, UINT64_MAX / ACCESSES_UNROLLED);
    return working_set_reserve(run, &shared->set, &demand);
}

static void close_random(struct run *run)
{
    struct random_access *shared = run_shared(run);
    if (shared)
        working_set_release(&shared->set);
    free(shared);
}

/* Each integer another one. */
static inline uint64_t filling(size_t i)
{
    return (i + 1) * 0x9e3779b97f4a7c15u;
}

static void fill(void *memory, size_t bytes)
{
    uint64_t *words = memory;
    for (size_t i = 0; i < bytes / sizeof *words; i++)
        words[i] = filling(i);
}

static bool is_filled(const void *memory, size_t bytes)
{
    const uint64_t *words = memory;
    uint64_t differences = 0;
    for (size_t i = 0; i < bytes / sizeof *words; i++)
        differences |= words[i] ^ filling(i);
    return differences == 0;
}

static int begin(struct thread *thread, struct random_thread *state)
{
    const struct random_access *shared = run_shared(thread->run);
    struct accesses *accesses = &state->accesses;
    accesses->memory = working_set_array(&shared->set, thread->index, 0);
    accesses->block_bytes = shared->block_bytes;
    accesses->blocks = shared->set.array_bytes / shared->block_bytes;
    if (shared->operation == ACCESS_READ)
        fill(accesses->memory, shared->set.array_bytes);
    if (!shared->index) {
        accesses_begin_generator(accesses);
        return EXIT_OK;
    }
    state->index = index_make(accesses->blocks, thread->index);
    accesses->index = state->index;
    accesses->round = round_of(accesses->blocks);
    return state->index ? EXIT_OK : lacks_memory(thread->run);
}

static void teardown(struct thread *thread)
{
    struct random_thread *state = thread->state;
    if (state)
        free(state->index);
    free(state);
}

static int setup(struct thread *thread)
{
    const struct random_access *shared = run_shared(thread->run);
    int failure = working_set_touch(thread, &shared->set);
    if (failure || run_stopping(thread->run))
        return failure;
    struct random_thread *state = aligned_alloc(_Alignof(struct random_thread), sizeof *state);
    if (!state)
        return lacks_memory(thread->run);
    memset(state, 0, sizeof *state);
    thread->state = state;
    failure = begin(thread, state);
    if (failure)
        teardown(thread);
    return failure;
}

static int calibrate(struct thread *thread)
{
    struct random_access *shared = run_shared(thread->run);
    if (thread->index == 0)
        working_set_inspect(thread->run, &shared->set);
    return EXIT_OK;
}

/* ---- step ----------------------------------------------------------------------------------- */

static int step(struct thread *thread, uint64_t batch)
{
    const struct random_access *shared = run_shared(thread->run);
    struct random_thread *state = thread->state;
    accesses_units(&state->accesses, shared->loop, batch);
    return EXIT_OK;
}

static void empty_loop(struct thread *thread, uint64_t batch)
{
    const struct random_access *shared = run_shared(thread->run);
    const struct random_thread *state = thread->state;
    struct accesses accesses = state->accesses;
    accesses_units(&accesses, shared->empty_loop, batch);
}

/* The sum of a read is compared with the memory's, so that must be as it was made. */
static bool is_right(const struct random_access *shared, struct accesses *accesses)
{
    if (shared->operation == ACCESS_READ && !is_filled(accesses->memory, shared->set.array_bytes))
        return false;
    return accesses_are_right(accesses, shared->operation);
}

static int verify(struct thread *thread, uint64_t units)
{
    const struct random_access *shared = run_shared(thread->run);
    struct random_thread *state = thread->state;
    uint64_t done = accesses_done(&state->accesses) / ACCESSES_UNROLLED;
    int failure = run_check_units(thread, done, units);
    if (failure)
        return failure;
    if (is_right(shared, &state->accesses))
        return EXIT_OK;
    run_reason(
        thread->run,
        "the memory of thread %u, CPU %d, does not hold what its accesses must have left: this "
        "CPU, its memory or this build does not work correctly; do not trust its figures",
        thread->index, thread->cpu);
    return EXIT_WRONG;
}

static void finish(struct thread *thread)
{
    const struct random_access *shared = run_shared(thread->run);
    run_metric(thread->run, "accesses_per_second", run_rate(thread->run));
    run_metric(thread->run, "huge_page_ratio", shared->set.huge_page_ratio);
}

/* ---- table ---------------------------------------------------------------------------------- */

static const struct param params[] = {
    {.name = "operation",
     .type = PARAM_CHOICE,
     .initial = "read",
     .choices = operations,
     .roles = ROLE_TAG,
     .help = "What an access does to its block; update: adds one to it."},
    {.name = "block_bytes",
     .type = PARAM_COUNT,
     .unit = "byte",
     .initial = "8",
     .min = 1,
     .max = ACCESS_BYTES_MOST,
     .roles = ROLE_AXIS,
     .help = "Bytes of one access: 1, 2, 4, 8, 16, 32 or 64; each access is aligned to its size."},
    {.name = "index",
     .type = PARAM_CHOICE,
     .initial = "precomputed",
     .choices = indexes,
     .roles = ROLE_TAG,
     .help = "Source of the access order. precomputed: an array of block numbers; lcg: a linear "
             "congruential generator in registers."},
    PARAMS_WORKING_SET,
    {.name = NULL}};

static const struct metric metrics[] = {{"accesses_per_second", "operation/s", HIGHER_IS_BETTER,
                                         "Accesses per second, all threads together."},
                                        METRIC_HUGE_PAGE_RATIO,
                                        {.name = NULL}};

const struct workload random_access_workload = {
    .name = "random_access",
    .description = "Reads, writes or updates small blocks at random places, with as many accesses "
                   "in flight as the core supports.",
    .rate = {.name = "access_time_s",
             .unit = "s",
             .description = "Amortised time of one access; no access waits for another: median "
                            "over the threads of each thread's median clean slice.",
             .combine = COMBINE_MEDIAN,
             .time = true},
    .params = params,
    .metrics = metrics,
    .setup_s = 1.2,
    .setup_s_per_byte = 1.1e-9,
    .unsupported = working_set_unsupported,
    .check = check,
    .open = open_random,
    .close = close_random,
    .setup = setup,
    .calibrate = calibrate,
    .step = step,
    .empty_loop = empty_loop,
    .verify = verify,
    .finish = finish,
    .teardown = teardown,
};
