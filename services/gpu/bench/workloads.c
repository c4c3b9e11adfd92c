/* The rows of the table. What they share is data and functions; what differs is a kind. */
#include "compute.h"
#include "figures.h"
#include "gpu_workloads.h"

#include <stddef.h>

enum { STACK_BYTES = 8 << 20 }; /* drivers bring compilers */

/* ---- parameters ----------------------------------------------------------------------------- */

static const char *const backends[] = {"auto", "cuda", "opencl", NULL};
static const char *const vector_floats[] = {"fp64", "fp32", "fp16", "bf16", NULL};
static const char *const vector_integers[] = {"int32", "int64", NULL};
static const char *const no_threads[] = {"threads", NULL};

/* clang-format off */
#define PARAMS_ALL                                                                                 \
    {.name = "device",                                                                             \
     .type = PARAM_TEXT,                                                                           \
     .initial = "auto",                                                                            \
     .help = "Index, UUID or PCI address of a device of gpu-bench --list-devices; auto: the "      \
             "first GPU. A device that is no GPU runs only by name."},                             \
    {.name = "backend",                                                                            \
     .type = PARAM_CHOICE,                                                                         \
     .initial = "auto",                                                                            \
     .choices = backends,                                                                          \
     .help = "Through which driver; auto: cuda where the device has it, else opencl."},            \
    {.name = "warmup_s",                                                                           \
     .type = PARAM_NUMBER,                                                                         \
     .unit = "s",                                                                                  \
     .initial = "0.5",                                                                             \
     .min = 0,                                                                                     \
     .max = 60,                                                                                    \
     .help = "Time to run before measuring, not counted: the card's clocks rise in it."}

#define PARAM_DTYPE(usual, words, text)                                                            \
    {.name = "dtype", .type = PARAM_CHOICE, .initial = usual, .choices = words, .help = text}
/* clang-format on */

static const struct param fma_params[] = {
    PARAM_DTYPE("fp32", vector_floats,
                "fp64: double, fp32: single, fp16 and bf16: half precision, in pairs."),
    PARAMS_ALL,
    {.name = NULL},
};
static const struct param integer_params[] = {
    PARAM_DTYPE("int32", vector_integers, "Width of the integers."),
    PARAMS_ALL,
    {.name = NULL},
};
static const struct param plain_params[] = {PARAMS_ALL, {.name = NULL}};

/* ---- metrics --------------------------------------------------------------------------------- */

static const struct metric compute_metrics[] = {
    GPU_METRICS("operation/s", HIGHER_IS_BETTER), GPU_CYCLE_METRICS, {.name = NULL}};

/* ---- the table ------------------------------------------------------------------------------- */

#define SHARED                                                                                     \
    .setup_s = 0.5, .excludes = no_threads, .stack_bytes = STACK_BYTES,                            \
    .threads = gpu_job_threads, .unsupported = gpu_job_unsupported,                                \
    .unconfirmed = gpu_job_unconfirmed, .check = gpu_job_check, .open = gpu_job_open,              \
    .close = gpu_job_close, .setup = gpu_job_setup, .teardown = gpu_job_teardown,                  \
    .observe = gpu_job_observe

#define BULK                                                                                       \
    SHARED, .prepare = windows_prepare, .loop = windows_loop, .moved = windows_moved,              \
        .verify = windows_verify, .finish = windows_finish

#define COMPUTES(text)                                                                             \
    .rate = {.name = "operations_per_second",                                                      \
             .unit = "operation/s",                                                                \
             .description = text " Work over the time that the device was at it by its own "       \
                                 "clock: median over windows of at least 100 ms.",                 \
             .combine = COMBINE_SUM},                                                              \
    .metrics = compute_metrics, BULK

static const struct workload fma_workload = {
    .name = "fma",
    .description = "Fused multiply-adds in registers, chains of them in every lane of the device.",
    .params = fma_params,
    .own = &fma_kind,
    COMPUTES("A fused multiply-add is two operations."),
};

static const struct workload int_add_workload = {
    .name = "int_add",
    .description = "Integer additions in registers.",
    .params = integer_params,
    .own = &int_add_kind,
    COMPUTES("An addition is one operation."),
};

static const struct workload int_mul_add_workload = {
    .name = "int_mul_add",
    .description = "Integer multiply-adds in registers.",
    .params = integer_params,
    .own = &int_mul_add_kind,
    COMPUTES("A multiply-add is two operations."),
};

static const struct workload dp4a_workload = {
    .name = "dp4a",
    .description = "Dot products of four 8-bit integers, added to a 32-bit one, in registers.",
    .params = plain_params,
    .own = &dp4a_kind,
    COMPUTES("A dot product with its addition is eight operations."),
};

const struct workload *const gpu_workloads[] = {
    &fma_workload, &int_add_workload, &int_mul_add_workload, &dp4a_workload, NULL,
};
