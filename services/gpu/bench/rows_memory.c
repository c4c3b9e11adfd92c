/* The rows of the workloads in the device's memory. */
#include "chase.h"
#include "gpu_workloads.h"
#include "rows.h"
#include "stream.h"

static const char *const automatic[] = {"auto", NULL};
static const char *const levels[] = {"auto", "l1", "l2", "dram", NULL};
static const char *const caches[] = {"auto", "l1", "l2", NULL};
static const char *const paths[] = {"kernel", "driver", NULL};

/* clang-format off */
#define PARAM_SIZE(words, in_words, text)                                                          \
    {.name = "size_bytes",                                                                         \
     .type = PARAM_COUNT,                                                                          \
     .unit = "byte",                                                                               \
     .initial = "auto",                                                                            \
     .min = 128,                                                                                   \
     .max = 1e15,                                                                                  \
     .choices = words,                                                                             \
     .roles = ROLE_AXIS,                                                                           \
     .title = in_words,                                                                            \
     .help = text}

#define PARAM_ARRAY                                                                                \
    PARAM_SIZE(automatic, NULL,                                                                    \
               "Bytes of each array, a multiple of 32768; auto: four times the L2 cache and at "   \
               "least 512 MiB, 2 GiB on a GPU with 16 GiB or more, if there is room.")
/* clang-format on */

static const struct param stream_params[] = {PARAM_ARRAY, ROWS_PARAMS, {.name = NULL}};

static const struct param copy_params[] = {
    PARAM_ARRAY,
    {.name = "path",
     .type = PARAM_CHOICE,
     .initial = "kernel",
     .choices = paths,
     .roles = ROLE_TAG,
     .title = "who copies",
     .help = "What copies: a kernel of this program, or the driver's own copy within the device."},
    ROWS_PARAMS,
    {.name = NULL},
};

static const struct param chase_params[] = {
    PARAM_SIZE(levels, "working set",
               "Total size of the 128-byte nodes. l1: 16 KiB (8 KiB without CUDA); l2: an eighth "
               "of the L2 cache; dram and auto: four times the L2 cache and at least 512 MiB."),
    {.name = "cached_in",
     .type = PARAM_CHOICE,
     .initial = "auto",
     .choices = caches,
     .title = "cache",
     .resolved = "auto",
     .help = "Which caches may keep what is loaded. l1: L1 and L2 (ld.global.ca); l2: L2 only "
             "(ld.global.cg); auto: l1 if size_bytes is at most that of l1, otherwise l2. With "
             "OpenCL, l1 is a plain load and l2 a volatile one."},
    ROWS_PARAMS,
    {.name = NULL},
};

static const struct metric stream_metrics[] = {GPU_METRICS("byte/s", HIGHER_IS_BETTER),
                                               {.name = NULL}};
static const struct metric chase_metrics[] = {
    {"access_cycles", "cycle", LOWER_IS_BETTER,
     "The figure x core_clock_hertz: cycles of the core clock per access."},
    GPU_METRICS("s", LOWER_IS_BETTER),
    {.name = NULL},
};

const struct workload read_workload = {
    .name = "read",
    .description = "Reads an array in device memory and sums its words.",
    .params = stream_params,
    .metrics = stream_metrics,
    .own = &stream_read.kind,
    .setup_s = ROWS_SETUP_S,
    ROWS_BYTES("Bytes read."),
    ROWS_BULK,
};

const struct workload write_workload = {
    .name = "write",
    .description = "Writes an array in device memory.",
    .params = stream_params,
    .metrics = stream_metrics,
    .own = &stream_write.kind,
    .setup_s = ROWS_SETUP_S,
    ROWS_BYTES("Bytes written."),
    ROWS_BULK,
};

const struct workload copy_workload = {
    .name = "copy",
    .description = "Copies an array in device memory to another array.",
    .params = copy_params,
    .metrics = stream_metrics,
    .own = &stream_copy.kind,
    .setup_s = ROWS_SETUP_S,
    ROWS_BYTES("Bytes read and written: twice the array."),
    ROWS_BULK,
};

const struct workload triad_workload = {
    .name = "triad",
    .description = "STREAM's triad in device memory, in single precision: a = b + scalar * c.",
    .params = stream_params,
    .metrics = stream_metrics,
    .own = &stream_triad.kind,
    .setup_s = ROWS_SETUP_S,
    ROWS_BYTES("Bytes read and written: three times the array. Based on a variant of the STREAM "
               "benchmark."),
    ROWS_BULK,
};

const struct workload pointer_chase_workload = {
    .name = "pointer_chase",
    .description = "One work-item follows pointers through 128-byte nodes in random order: the "
                   "latency of one dependent load.",
    .params = chase_params,
    .metrics = chase_metrics,
    .own = &chase_kind,
    .setup_s = ROWS_SETUP_S,
    .rate = {.name = "access_time_s",
             .unit = "s",
             .description = "Time of one dependent access, on the device's clock: median over "
                            "windows of at least 100 ms.",
             .combine = COMBINE_MEDIAN,
             .time = true},
    ROWS_BULK,
};
