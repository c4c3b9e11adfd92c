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
               "least 512 MiB, 2 GiB on a GPU with 16 GiB or more, where there is room for it.")
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
     .help = "Who copies: a kernel of ours, or the driver's own copy from device to device."},
    ROWS_PARAMS,
    {.name = NULL},
};

static const struct param chase_params[] = {
    PARAM_SIZE(levels, "working set",
               "Bytes of the nodes, of 128 each; l1: 16 KiB (8 KiB without CUDA), "
               "l2: an eighth of the L2 cache, dram and auto: four times the L2 cache and "
               "at least 512 MiB."),
    {.name = "cached_in",
     .type = PARAM_CHOICE,
     .initial = "auto",
     .choices = caches,
     .title = "cache",
     .resolved = "auto",
     .help = "Where loads may be kept: l1 (ld.global.ca) or l2 alone (ld.global.cg); auto: l1 "
             "for nodes of no more than size_bytes l1. In OpenCL a plain load or a volatile one."},
    ROWS_PARAMS,
    {.name = NULL},
};

static const struct metric stream_metrics[] = {GPU_METRICS("byte/s", HIGHER_IS_BETTER),
                                               {.name = NULL}};
static const struct metric chase_metrics[] = {
    {"access_cycles", "cycle", LOWER_IS_BETTER,
     "The figure x core_clock_hertz: cycles of the core clock that an access takes."},
    GPU_METRICS("s", LOWER_IS_BETTER),
    {.name = NULL},
};

const struct workload read_workload = {
    .name = "read",
    .description = "Reads an array in device memory and adds up its words.",
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
    .description = "Copies an array in device memory to another one.",
    .params = copy_params,
    .metrics = stream_metrics,
    .own = &stream_copy.kind,
    .setup_s = ROWS_SETUP_S,
    ROWS_BYTES("Bytes read and written: twice the array."),
    ROWS_BULK,
};

const struct workload triad_workload = {
    .name = "triad",
    .description = "STREAM's triad in device memory, of single precision: a = b + scalar * c.",
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
    .description = "One work-item follows pointers through nodes of 128 bytes in random order: the "
                   "latency of one dependent load.",
    .params = chase_params,
    .metrics = chase_metrics,
    .own = &chase_kind,
    .setup_s = ROWS_SETUP_S,
    .rate = {.name = "access_time_s",
             .unit = "s",
             .description = "Time of one access that depends on the one before, by the device's "
                            "clock: median over windows of at least 100 ms.",
             .combine = COMBINE_MEDIAN,
             .time = true},
    ROWS_BULK,
};
