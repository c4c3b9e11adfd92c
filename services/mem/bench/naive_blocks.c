/* naive_copy and naive_set: memcpy() and memset() on blocks, measured the way that course work does
 * it. Their figures are wrong on purpose: they stand beside read_write and memset_write. */
#include "mem_workloads.h"
#include "naive_life.h"
#include "working_set.h"

static const char *const patterns[] = {"sequential", "random", NULL};
static const char *const clocks[] = {"once", "each", NULL};
static const char *const locks[] = {"none", "each", NULL};

static const struct param params[] = {
    {.name = "pattern",
     .type = PARAM_CHOICE,
     .initial = "sequential",
     .choices = patterns,
     .roles = ROLE_TAG,
     .help = "Order of the blocks; random: calls rand() for each block, which costs more than a "
             "small block and takes a lock that threads wait for."},
    {.name = "block_bytes",
     .type = PARAM_COUNT,
     .unit = "byte",
     .initial = "4096",
     .min = 1,
     .max = 1 << 30,
     .roles = ROLE_AXIS,
     .help = "Each block is one call of the C library's routine."},
    {.name = "clock",
     .type = PARAM_CHOICE,
     .initial = "once",
     .choices = clocks,
     .named = true,
     .help = "When the program reads gettimeofday(), which counts microseconds. once: before and "
             "after all blocks; each: before and after each block, and the sum is the time."},
    {.name = "lock",
     .type = PARAM_CHOICE,
     .initial = "none",
     .choices = locks,
     .named = true,
     .help = "each: all threads go over the same blocks and hold a mutex while they process and "
             "count a block, so that only one thread works at a time."},
    PARAMS_WORKING_SET_ON("4k"),
    {.name = NULL}};

static const struct metric metrics[] = {
    {"bytes_per_second_makespan", "byte/s", HIGHER_IS_BETTER,
     "The same bytes divided by the time from the first thread's start to the last thread's stop "
     "on the harness's clock, which includes the time that the figure leaves out."},
    METRIC_HUGE_PAGE_RATIO,
    {.name = NULL}};

static const struct naive_kind copying = {.set = false};
static const struct naive_kind filling = {.set = true};

/* What touching the memory on pages of 4 KiB and checking it takes, of a copy filling it too. */
#define COPY_SETUP .setup_s = 0.7, .setup_s_per_byte = 7e-10
#define SET_SETUP .setup_s = 0.5, .setup_s_per_byte = 5e-10

#define NAIVE_RATE(what)                                                                           \
    {.name = "bytes_per_second",                                                                   \
     .unit = "byte/s",                                                                             \
     .description =                                                                                \
         what " divided by the time that gettimeofday() shows: from the first thread's start to "  \
              "the last thread's stop or, with clock each, the longest sum of one thread.",        \
     .combine = COMBINE_SUM,                                                                       \
     .work = "byte"}

#define NAIVE_FUNCTIONS                                                                            \
    .naive = true, .resolve = naive_resolve, .unsupported = working_set_unsupported,               \
    .check = naive_check, .open = naive_open, .close = naive_close, .setup = naive_setup,          \
    .calibrate = naive_calibrate, .loop = naive_run, .moved = naive_moved, .verify = naive_verify, \
    .finish = naive_finish

const struct workload naive_copy_workload = {
    .name = "naive_copy",
    .description = "Copies each block with memcpy() to the same temporary buffer, which stays in a "
                   "cache unless blocks are large; a copied byte counts once.",
    .rate = NAIVE_RATE("Bytes copied"),
    .params = params,
    .metrics = metrics,
    .own = &copying,
    COPY_SETUP,
    NAIVE_FUNCTIONS,
};

const struct workload naive_set_workload = {
    .name = "naive_set",
    .description = "Fills blocks with memset().",
    .rate = NAIVE_RATE("Bytes written"),
    .params = params,
    .metrics = metrics,
    .own = &filling,
    SET_SETUP,
    NAIVE_FUNCTIONS,
};
