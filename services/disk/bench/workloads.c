/* The rows of the table. All workloads share their functions: what differs is data. */
#include "content.h"
#include "disk.h"
#include "disk_loop.h"
#include "disk_workloads.h"
#include "evidence.h"
#include "file.h"
#include "job.h"
#include "readback.h"
#include "rows.h"
#include "steady.h"

#include <stddef.h>

/* ---- parameters ----------------------------------------------------------------------------- */

const char *const disk_all_cpus[] = {"all", NULL};
static const char *const switches[] = {"off", "on", NULL};
static const char *const engines[] = {"auto",  "io_uring_fixed", "io_uring", "libaio",
                                      "psync", "mmap",           NULL};
static const char *const read_modes[] = {"direct", "buffered", NULL};
static const char *const write_modes[] = {
    "direct",         "direct+fsync_end", "direct+dsync",
    "direct+sync",    "buffered",         "buffered+fsync_end",
    "buffered+dsync", "buffered+sync",    NULL};
/* What is measured where the file system has no O_DIRECT. */
static const char *const without_direct[] = {"direct",
                                             "buffered",
                                             "direct+fsync_end",
                                             "buffered+fsync_end",
                                             "direct+dsync",
                                             "buffered+dsync",
                                             "direct+sync",
                                             "buffered+sync",
                                             NULL};
static const char *const distributions[] = {"uniform", "zipf", NULL};

#define PARAMS_ALL(block)                                                                          \
    PARAM_BLOCK_BYTES(block,                                                                       \
                      "cache_mode direct needs a multiple of the device's logical block size."),   \
        PARAM_FILE_BYTES, PARAM_THREADS, PARAM_TOTAL_BYTES,                                        \
        {.name = "rate",                                                                           \
         .type = PARAM_NUMBER,                                                                     \
         .unit = "operation/s",                                                                    \
         .min = 0.001,                                                                             \
         .max = 1e9,                                                                               \
         .roles = ROLE_AXIS,                                                                       \
         .help = "Open loop: operations of all threads together are due at this rate, and "        \
                 "latency counts from the moment an operation was due. Not set: closed loop, "     \
                 "each operation begins when another has ended."},                                 \
        {.name = "compressible",                                                                   \
         .type = PARAM_NUMBER,                                                                     \
         .unit = "1",                                                                              \
         .initial = "0",                                                                           \
         .min = 0,                                                                                 \
         .max = 1,                                                                                 \
         .help =                                                                                   \
             "Share of zeros in each 4 KiB page written; the rest is random and never repeats."},  \
        {.name = "steady_state",                                                                   \
         .type = PARAM_CHOICE,                                                                     \
         .initial = "off",                                                                         \
         .choices = switches,                                                                      \
         .help = "Whether to check by SNIA's rule that the rate was steady; this does not change " \
                 "the length of the trial."},                                                      \
        PARAM_SCRATCH_FD

#define PARAMS_QUEUED(modes)                                                                       \
    {.name = "queue_depth",                                                                        \
     .type = PARAM_COUNT,                                                                          \
     .initial = "1",                                                                               \
     .min = 1,                                                                                     \
     .max = 1024,                                                                                  \
     .roles = ROLE_AXIS,                                                                           \
     .help = "Operations in flight per thread."},                                                  \
        {.name = "engine",                                                                         \
         .type = PARAM_CHOICE,                                                                     \
         .initial = "auto",                                                                        \
         .choices = engines,                                                                       \
         .roles = ROLE_TAG,                                                                        \
         .resolved = "auto",                                                                       \
         .resolved_once = true,                                                                    \
         .help = "Interface to the kernel; auto: the first that works on this host of io_uring, "  \
                 "libaio and psync (pread and pwrite)."},                                          \
        {.name = "cache_mode",                                                                     \
         .type = PARAM_CHOICE,                                                                     \
         .initial = "direct",                                                                      \
         .choices = modes,                                                                         \
         .roles = ROLE_TAG,                                                                        \
         .fallbacks = without_direct,                                                              \
         .help = "direct: O_DIRECT; dsync: each write returns when its data is on the disk "       \
                 "(O_DSYNC); sync: when its data and all metadata are on the disk (O_SYNC); "      \
                 "fsync_end: one fdatasync() at the end, inside the timed region. Buffered reads " \
                 "start with none of the file in the page cache."},                                \
        {.name = "verify",                                                                         \
         .type = PARAM_CHOICE,                                                                     \
         .initial = "off",                                                                         \
         .choices = switches,                                                                      \
         .help = "Whether each block has a header and the program compares what it reads with "    \
                 "what was written."}

#define PARAM_READ_SHARE                                                                           \
    {.name = "read_share",                                                                         \
     .type = PARAM_NUMBER,                                                                         \
     .unit = "1",                                                                                  \
     .initial = "0.5",                                                                             \
     .min = 0,                                                                                     \
     .max = 1,                                                                                     \
     .help = "Share of reads among the operations."}

#define PARAMS_RANDOM                                                                              \
    {.name = "distribution",                                                                       \
     .type = PARAM_CHOICE,                                                                         \
     .initial = "uniform",                                                                         \
     .choices = distributions,                                                                     \
     .help = "Which blocks the operations choose. uniform: each block once before any block "      \
             "repeats; zipf: a few blocks often, most rarely, scattered over the file."},          \
        {.name = "zipf_theta",                                                                     \
         .type = PARAM_NUMBER,                                                                     \
         .unit = "1",                                                                              \
         .initial = "1.2",                                                                         \
         .min = 0.01,                                                                              \
         .max = 5,                                                                                 \
         .help = "Exponent of the zipf distribution."}

#define SEQUENTIAL_BLOCK "1048576"
#define SMALL_BLOCK "4096"

static const struct param seq_read_params[] = {
    PARAMS_ALL(SEQUENTIAL_BLOCK), PARAMS_QUEUED(read_modes), {.name = NULL}};
static const struct param seq_write_params[] = {
    PARAMS_ALL(SEQUENTIAL_BLOCK), PARAMS_QUEUED(write_modes), {.name = NULL}};
static const struct param seq_rw_params[] = {
    PARAMS_ALL(SEQUENTIAL_BLOCK), PARAMS_QUEUED(write_modes), PARAM_READ_SHARE, {.name = NULL}};
static const struct param rand_read_params[] = {
    PARAMS_ALL(SMALL_BLOCK), PARAMS_QUEUED(read_modes), PARAMS_RANDOM, {.name = NULL}};
static const struct param rand_write_params[] = {
    PARAMS_ALL(SMALL_BLOCK), PARAMS_QUEUED(write_modes), PARAMS_RANDOM, {.name = NULL}};
static const struct param rand_rw_params[] = {PARAMS_ALL(SMALL_BLOCK),
                                              PARAMS_QUEUED(write_modes),
                                              PARAMS_RANDOM,
                                              PARAM_READ_SHARE,
                                              {.name = NULL}};
static const struct param commit_params[] = {PARAMS_ALL(SMALL_BLOCK), {.name = NULL}};

/* total_bytes stands for work; there are no slices. */
const char *const disk_excludes[] = {"work", "slice_s", NULL};
static const char *const mix_streams[] = {"read", "write", NULL};

/* ---- metrics -------------------------------------------------------------------------------- */

static const struct metric metrics[] = {
    METRIC_READ_THERE,
    METRIC_WRITTEN_THERE,
    METRICS_EVIDENCE,
    {"fsync_s", "s", LOWER_IS_BETTER,
     "Time of the fdatasync() at the end of the timed region; the longest of the threads."},
    {"steady_state_range_ratio", "1", LOWER_IS_BETTER,
     "Largest less smallest rate of the five rounds of the timed region, divided by their average: "
     "at most 0.2 if the rate is steady (SNIA SSS PTS 2.0.2)."},
    {"steady_state_slope_ratio", "1", LOWER_IS_BETTER,
     "Rise or fall of the line fitted to the five rounds, divided by their average: at most 0.1 if "
     "the rate is steady."},
    {"verified_blocks", "operation", HIGHER_IS_BETTER,
     "Blocks that the program read and compared with what was written, including those of the "
     "warm-up and those read back at the end."},
    {.name = NULL},
};

/* ---- functions ------------------------------------------------------------------------------ */

static int setup(struct thread *thread)
{
    int failure = file_fill(thread);
    return failure ? failure : disk_loop_open(thread);
}

/* The first thread takes the evidence before anything is read back. */
static int verify(struct thread *thread, uint64_t units)
{
    (void)units;
    if (thread->index == 0)
        evidence_end(disk_job_of(thread));
    return readback_verify(thread);
}

static void finish(struct thread *thread)
{
    struct disk_job *job = disk_job_of(thread);
    evidence_report(job);
    disk_loop_report(job);
    steady_report(job, disk_loop_worked_s(job));
    file_conclude(job);
}

#define SHARED                                                                                     \
    .excludes = disk_excludes, .metrics = metrics, .setup_s = FILL_S,                              \
    .unsupported = disk_job_unsupported, .check = disk_job_check, .open = disk_job_open,           \
    .close = disk_job_close, .setup = setup, .loop = disk_loop, .verify = verify,                  \
    .finish = finish, .teardown = disk_loop_close

/* ---- the table ------------------------------------------------------------------------------ */

static const struct disk_kind seq_read = {.reads = true, .sequential = true};
static const struct disk_kind seq_write = {.writes = true, .sequential = true};
static const struct disk_kind seq_rw = {.reads = true, .writes = true, .sequential = true};
static const struct disk_kind rand_read = {.reads = true};
static const struct disk_kind rand_write = {.writes = true};
static const struct disk_kind rand_rw = {.reads = true, .writes = true};
static const struct disk_kind commit = {.writes = true, .sequential = true, .commit = true};

#define OPERATIONS_PER_SECOND(text)                                                                \
    {.name = "operations_per_second",                                                              \
     .unit = "operation/s",                                                                        \
     .description = text,                                                                          \
     .combine = COMBINE_SUM}

const struct workload seq_read_workload = {
    .name = "seq_read",
    .description = "Reads a file sequentially, block by block; each thread reads its own part "
                   "again and again.",
    .rate = BYTES_PER_SECOND("Bytes read per second, all threads together."),
    .params = seq_read_params,
    .own = &seq_read,
    SHARED,
};

const struct workload seq_write_workload = {
    .name = "seq_write",
    .description =
        "Overwrites a file sequentially, block by block; each thread writes its own part.",
    .rate = BYTES_PER_SECOND("Bytes written per second, all threads together."),
    .params = seq_write_params,
    .own = &seq_write,
    SHARED,
};

const struct workload seq_rw_workload = {
    .name = "seq_rw",
    .description = "Reads and overwrites a file sequentially, block by block; each thread works on "
                   "its own part.",
    .rate = BYTES_PER_SECOND("Bytes read and written per second, all threads together."),
    .params = seq_rw_params,
    .streams = mix_streams,
    .own = &seq_rw,
    SHARED,
};

const struct workload rand_read_workload = {
    .name = "rand_read",
    .description = "Reads blocks of a file in random order.",
    .rate = OPERATIONS_PER_SECOND("Reads per second, all threads together."),
    .params = rand_read_params,
    .own = &rand_read,
    SHARED,
};

const struct workload rand_write_workload = {
    .name = "rand_write",
    .description = "Overwrites blocks of a file in random order.",
    .rate = OPERATIONS_PER_SECOND("Writes per second, all threads together."),
    .params = rand_write_params,
    .own = &rand_write,
    SHARED,
};

const struct workload rand_rw_workload = {
    .name = "rand_rw",
    .description = "Reads and overwrites blocks of a file in random order.",
    .rate = OPERATIONS_PER_SECOND("Reads and writes per second, all threads together."),
    .params = rand_rw_params,
    .streams = mix_streams,
    .own = &rand_rw,
    SHARED,
};

const struct workload fsync_latency_workload = {
    .name = "fsync_latency",
    .description = "Writes a block through the page cache and commits it with fdatasync(), like "
                   "the log of a database.",
    .rate = {.name = "commit_time_s",
             .unit = "s",
             .description = "Median time of one commit: the write and the fdatasync() after it.",
             .combine = COMBINE_MEDIAN,
             .time = true},
    .params = commit_params,
    .own = &commit,
    SHARED,
};
