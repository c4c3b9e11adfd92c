/* read_write and memset_write: the C library's memcpy() and memset() on blocks, which is what
 * course work and small benchmarks time. */
#include "mem_workloads.h"
#include "stream.h"

static const struct param params[] = {
    PARAM_PATTERN,
    PARAM_BLOCK_BYTES("4096", "Each block is one call of the C library's routine."),
    PARAMS_WORKING_SET,
    {.name = NULL}};
static const struct metric metrics[] = {
    METRIC_BYTES_PER_CYCLE, METRIC_HUGE_PAGE_RATIO, METRICS_BLOCK_TIME, {.name = NULL}};

static const struct stream_kind copying = {OPERATION_COPY, "libc"};
static const struct stream_kind filling = {OPERATION_WRITE, "libc"};

const struct workload read_write_workload = {
    .name = "read_write",
    .description =
        "Copies blocks with memcpy(); bytes read and bytes written both count, as in STREAM.",
    .rate = STREAM_RATE("Bytes read and written per second"),
    .params = params,
    .metrics = metrics,
    .own = &copying,
    .setup_s = STREAM_SETUP_S,
    .setup_s_per_byte = STREAM_SETUP_S_PER_BYTE,
    STREAM_FUNCTIONS,
};

const struct workload memset_write_workload = {
    .name = "memset_write",
    .description = "Fills blocks with memset().",
    .rate = STREAM_RATE("Bytes written per second"),
    .params = params,
    .metrics = metrics,
    .own = &filling,
    .setup_s = STREAM_SETUP_S,
    .setup_s_per_byte = STREAM_SETUP_S_PER_BYTE,
    STREAM_FUNCTIONS,
};
