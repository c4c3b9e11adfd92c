/* What the rows of the table have in common: parameters and functions. */
#ifndef GPU_BENCH_ROWS_H
#define GPU_BENCH_ROWS_H

#include "figures.h"
#include "gpu.h"
#include "windows.h"
#include "workload.h"

enum { ROWS_STACK_BYTES = 8 << 20 }; /* drivers bring compilers */

/* Until a driver has begun, made a context and loaded its kernels. Like what stands in single rows, it
 * is that of one trial of each on an H200 (benchmarks/gpu/results/nvidia-h200/once.csv): wall_s less the
 * timed region, the warm-up, and the 0.1 s that an estimate has for every trial. */
#define ROWS_SETUP_S 0.4

extern const char *const rows_backends[];
extern const char *const rows_excludes[];

/* clang-format off */
#define ROWS_PARAMS                                                                                \
    {.name = "device",                                                                             \
     .type = PARAM_TEXT,                                                                           \
     .initial = "auto",                                                                            \
     .named = true,                                                                                \
     .resolved = "auto",                                                                           \
     .facts = {"device_uuid", "pci"},                                                              \
     .help = "Index, UUID or PCI address of a device listed by gpu-bench --list-devices; auto: "   \
             "the first GPU. A device that is not a GPU runs only if it is named here."},          \
    {.name = "backend",                                                                            \
     .type = PARAM_CHOICE,                                                                         \
     .initial = "auto",                                                                            \
     .choices = rows_backends,                                                                     \
     .roles = ROLE_TAG,                                                                            \
     .resolved = "auto",                                                                           \
     .help = "Driver interface; auto: cuda if the device supports it, otherwise opencl."},         \
    {.name = "warmup_s",                                                                           \
     .type = PARAM_NUMBER,                                                                         \
     .unit = "s",                                                                                  \
     .initial = "0.5",                                                                             \
     .min = 0,                                                                                     \
     .max = 60,                                                                                    \
     .roles = ROLE_HOW,                                                                            \
     .help = "Length of the warm-up before the timed region, which is not measured: it lets the "  \
             "card's clocks rise."}

#define ROWS_DTYPE(usual, words, text)                                                             \
    {.name = "dtype",                                                                              \
     .type = PARAM_CHOICE,                                                                         \
     .initial = usual,                                                                             \
     .choices = words,                                                                             \
     .roles = ROLE_TAG,                                                                            \
     .title = "data type",                                                                         \
     .help = text}
/* clang-format on */

/* Of every workload. */
#define ROWS_SHARED                                                                                \
    .excludes = rows_excludes, .stack_bytes = ROWS_STACK_BYTES, .threads = gpu_job_threads,        \
    .unsupported = gpu_job_unsupported, .unconfirmed = gpu_job_unconfirmed,                        \
    .check = gpu_job_check, .open = gpu_job_open, .close = gpu_job_close, .setup = gpu_job_setup,  \
    .teardown = gpu_job_teardown, .observe = gpu_job_observe

/* Of those of the measuring engine. */
#define ROWS_BULK                                                                                  \
    ROWS_SHARED, .prepare = windows_prepare, .loop = windows_loop, .moved = windows_moved,         \
        .verify = windows_verify, .finish = windows_finish

#define ROWS_CLOCK                                                                                 \
    " Work divided by the time that the device took for it, on the device's clock: median over "   \
    "windows of at least 100 ms."

#define ROWS_OPERATIONS(text)                                                                      \
    .rate = {.name = "operations_per_second",                                                      \
             .unit = "operation/s",                                                                \
             .description = text ROWS_CLOCK,                                                       \
             .combine = COMBINE_SUM}

#define ROWS_BYTES(text)                                                                           \
    .rate = {.name = "bytes_per_second",                                                           \
             .unit = "byte/s",                                                                     \
             .description = text ROWS_CLOCK,                                                       \
             .combine = COMBINE_SUM,                                                               \
             .work = "byte"}

#endif
