/* The bandwidth workloads: kernels chosen by parameters or by trying them, walked over arrays. */
#ifndef MEM_BENCH_STREAM_H
#define MEM_BENCH_STREAM_H

#include "walk.h"
#include "workload.h"

/* What a bandwidth workload is: its `own`. */
struct stream_kind {
    enum operation operation;
    const char *store; /* of one without this parameter: libc has no isa and no streams either, what
                          only reads has plain ones; NULL: it has them all */
};

/* The functions of a workload whose `own` is a stream_kind. */
#define STREAM_FUNCTIONS                                                                           \
    .resolve = stream_resolve, .unsupported = stream_unsupported,                                  \
    .unconfirmed = stream_unconfirmed, .check = stream_check, .open = stream_open,                 \
    .close = stream_close, .setup = stream_setup, .calibrate = stream_calibrate,                   \
    .step = stream_step, .empty_loop = stream_empty_loop, .verify = stream_verify,                 \
    .finish = stream_finish, .teardown = stream_teardown

void stream_resolve(struct run *run);
const char *stream_unsupported(const struct run *run);
const char *stream_unconfirmed(const struct run *run);
int stream_check(struct run *run);
int stream_open(struct run *run);
void stream_close(struct run *run);
int stream_setup(struct thread *thread);
int stream_calibrate(struct thread *thread);
int stream_step(struct thread *thread, uint64_t batch);
void stream_empty_loop(struct thread *thread, uint64_t batch);
int stream_verify(struct thread *thread, uint64_t units);
void stream_finish(struct thread *thread);
void stream_teardown(struct thread *thread);

/* What allocating and filling the arrays of the default size takes, and trying the kernels. */
#define STREAM_SETUP_S 0.5
#define STREAM_SETUP_S_PER_BYTE 4.5e-10

#define STREAM_RATE(what)                                                                          \
    {.name = "bytes_per_second",                                                                   \
     .unit = "byte/s",                                                                             \
     .description = what ": each thread's median clean slice, summed over the threads. Based on "  \
                         "a variant of the STREAM benchmark.",                                     \
     .combine = COMBINE_SUM,                                                                       \
     .work = "byte"}

extern const char *const stream_patterns[];
#define PARAM_PATTERN PARAM_PATTERN_ON("sequential")
#define PARAM_PATTERN_ON(default_pattern)                                                          \
    {.name = "pattern",                                                                            \
     .type = PARAM_CHOICE,                                                                         \
     .initial = (default_pattern),                                                                 \
     .choices = stream_patterns,                                                                   \
     .roles = ROLE_TAG,                                                                            \
     .help = "Order of the blocks; random: an order computed beforehand that visits each block "   \
             "once per round."}
#define PARAM_BLOCK_BYTES(first, text)                                                             \
    {.name = "block_bytes",                                                                        \
     .type = PARAM_COUNT,                                                                          \
     .unit = "byte",                                                                               \
     .initial = (first),                                                                           \
     .min = 1,                                                                                     \
     .max = 1 << 30,                                                                               \
     .roles = ROLE_AXIS,                                                                           \
     .help = "Bytes of each array that one call works on. " text}

#define METRIC_BYTES_PER_CYCLE                                                                     \
    {"bytes_per_cycle", "byte/cycle", HIGHER_IS_BETTER,                                            \
     "Mean rate of one thread divided by the core clock. A chain of dependent additions measures " \
     "the clock on the first thread's core right after the timed region."}
#define METRICS_BLOCK_TIME                                                                         \
    {"block_time_s_median", "s", LOWER_IS_BETTER,                                                  \
     "Median time of one block, over the blocks of at least 8192 bytes that were timed one by "    \
     "one."},                                                                                      \
        {"block_time_s_p99", "s", LOWER_IS_BETTER,                                                 \
         "Time that 99 % of such blocks do not exceed, with 95 % confidence."},                    \
        {"block_time_s_p999", "s", LOWER_IS_BETTER,                                                \
         "Time that 99.9 % of such blocks do not exceed, with 95 % confidence."},                  \
        {"block_time_s_max", "s", LOWER_IS_BETTER, "Longest time of one of these blocks."}

#endif
