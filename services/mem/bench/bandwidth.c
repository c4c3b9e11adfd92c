/* read, write, copy, scale, add, triad: STREAM's kernels and byte counts. */
#include "isa.h"
#include "mem_workloads.h"
#include "stream.h"

static const char *const stores[] = {"best", "plain", "nt", NULL};
static const char *const stores_with_libc[] = {"best", "plain", "nt", "libc", NULL};
static const char *const streams[] = {"best", "1", "4", "8", NULL};
static const char *const prefetches[] = {"best", "none", "pages", NULL};

#define PARAM_STORE(names, text)                                                                   \
    {.name = "store",                                                                              \
     .type = PARAM_CHOICE,                                                                         \
     .initial = "best",                                                                            \
     .choices = (names),                                                                           \
     .roles = ROLE_AXIS,                                                                           \
     .resolved = "best",                                                                           \
     .resolved_once = true,                                                                        \
     .help =                                                                                       \
         "How results are stored. nt: with non-temporal stores, which bypass the caches; " text    \
         "best: the fastest on this host, compared on the arrays with all threads at once."}
#define PARAM_STREAMS                                                                              \
    {.name = "streams",                                                                            \
     .type = PARAM_CHOICE,                                                                         \
     .initial = "best",                                                                            \
     .choices = streams,                                                                           \
     .roles = ROLE_AXIS,                                                                           \
     .noun = "stream",                                                                             \
     .resolved = "best",                                                                           \
     .resolved_once = true,                                                                        \
     .help = "Neighbouring pages of an array that the loop works on at the same time, which "      \
             "keeps more of a core's prefetchers busy; best: the fastest on this host, compared "  \
             "together with the store."}
#define PARAM_PREFETCH                                                                             \
    {.name = "prefetch",                                                                           \
     .type = PARAM_CHOICE,                                                                         \
     .initial = "best",                                                                            \
     .choices = prefetches,                                                                        \
     .roles = ROLE_AXIS,                                                                           \
     .named = true,                                                                                \
     .resolved = "best",                                                                           \
     .resolved_once = true,                                                                        \
     .help = "What the loop prefetches. pages: once per page, one line of each array eight pages " \
             "ahead, so that its address is translated in time; best: the fastest on this host, "  \
             "compared together with the streams."}
#define PARAMS_KERNEL                                                                              \
    PARAM_ISA_BEST("the fastest on this host, compared together with the streams."),               \
        PARAM_STREAMS, PARAM_PREFETCH
#define PARAMS_BLOCKS                                                                              \
    PARAM_PATTERN,                                                                                 \
        PARAM_BLOCK_BYTES(                                                                         \
            NULL,                                                                                  \
            "Default: no blocks; each thread goes through its arrays from one end to the other.")

static const struct param read_params[] = {
    PARAMS_KERNEL, PARAMS_BLOCKS, PARAMS_WORKING_SET, {.name = NULL}};
static const struct param params[] = {
    PARAM_STORE(stores, ""), PARAMS_KERNEL, PARAMS_BLOCKS, PARAMS_WORKING_SET, {.name = NULL}};
static const struct param params_with_libc[] = {
    PARAM_STORE(stores_with_libc, "libc: the C library's memcpy() or memset(); "),
    PARAMS_KERNEL,
    PARAMS_BLOCKS,
    PARAMS_WORKING_SET,
    {.name = NULL}};

#define METRIC_OF_STORE(store, text)                                                               \
    {"bytes_per_second_" store, "byte/s", HIGHER_IS_BETTER,                                        \
     "Rate with " text " in the comparison that chose the store before the trial."}

static const struct metric read_metrics[] = {
    METRIC_BYTES_PER_CYCLE, METRIC_HUGE_PAGE_RATIO, METRICS_BLOCK_TIME, {.name = NULL}};
static const struct metric metrics[] = {METRIC_OF_STORE("plain", "plain stores"),
                                        METRIC_OF_STORE("nt", "non-temporal stores"),
                                        METRIC_BYTES_PER_CYCLE,
                                        METRIC_HUGE_PAGE_RATIO,
                                        METRICS_BLOCK_TIME,
                                        {.name = NULL}};
static const struct metric metrics_with_libc[] = {
    METRIC_OF_STORE("plain", "plain stores"),
    METRIC_OF_STORE("nt", "non-temporal stores"),
    METRIC_OF_STORE("libc", "the C library's routine"),
    METRIC_BYTES_PER_CYCLE,
    METRIC_HUGE_PAGE_RATIO,
    METRICS_BLOCK_TIME,
    {.name = NULL}};

#define KIND(name, what, stored) static const struct stream_kind name = {OPERATION_##what, stored}
KIND(reading, READ, "plain");
KIND(writing, WRITE, NULL);
KIND(copying, COPY, NULL);
KIND(scaling, SCALE, NULL);
KIND(adding, ADD, NULL);
KIND(triads, TRIAD, NULL);

const struct workload read_workload = {
    .name = "read",
    .description = "Reads an array and sums its elements: 8 bytes per element, as STREAM counts.",
    .rate = STREAM_RATE("Bytes read per second"),
    .params = read_params,
    .metrics = read_metrics,
    .own = &reading,
    .setup_s = STREAM_SETUP_S,
    .setup_s_per_byte = STREAM_SETUP_S_PER_BYTE,
    STREAM_FUNCTIONS,
};

const struct workload write_workload = {
    .name = "write",
    .description = "Fills an array, a = s: 8 bytes per element, as STREAM counts.",
    .rate = STREAM_RATE("Bytes written per second"),
    .params = params_with_libc,
    .metrics = metrics_with_libc,
    .own = &writing,
    .setup_s = STREAM_SETUP_S,
    .setup_s_per_byte = STREAM_SETUP_S_PER_BYTE,
    STREAM_FUNCTIONS,
};

const struct workload copy_workload = {
    .name = "copy",
    .description = "STREAM's copy, a = b: 16 bytes per element.",
    .rate = STREAM_RATE("Bytes read and written per second"),
    .params = params_with_libc,
    .metrics = metrics_with_libc,
    .own = &copying,
    .setup_s = STREAM_SETUP_S,
    .setup_s_per_byte = STREAM_SETUP_S_PER_BYTE,
    STREAM_FUNCTIONS,
};

const struct workload scale_workload = {
    .name = "scale",
    .description = "STREAM's scale, a = s b: 16 bytes per element.",
    .rate = STREAM_RATE("Bytes read and written per second"),
    .params = params,
    .metrics = metrics,
    .own = &scaling,
    .setup_s = STREAM_SETUP_S,
    .setup_s_per_byte = STREAM_SETUP_S_PER_BYTE,
    STREAM_FUNCTIONS,
};

const struct workload add_workload = {
    .name = "add",
    .description = "STREAM's add, a = b + c: 24 bytes per element.",
    .rate = STREAM_RATE("Bytes read and written per second"),
    .params = params,
    .metrics = metrics,
    .own = &adding,
    .setup_s = STREAM_SETUP_S,
    .setup_s_per_byte = STREAM_SETUP_S_PER_BYTE,
    STREAM_FUNCTIONS,
};

const struct workload triad_workload = {
    .name = "triad",
    .description = "STREAM's triad, a = b + s c: 24 bytes per element.",
    .rate = STREAM_RATE("Bytes read and written per second"),
    .params = params,
    .metrics = metrics,
    .own = &triads,
    .setup_s = STREAM_SETUP_S,
    .setup_s_per_byte = STREAM_SETUP_S_PER_BYTE,
    STREAM_FUNCTIONS,
};
