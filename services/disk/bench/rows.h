/* Rows that the tables of several workloads have. */
#ifndef DISK_BENCH_ROWS_H
#define DISK_BENCH_ROWS_H

#include "workload.h"

#include <stddef.h>

/* ---- parameters ----------------------------------------------------------------------------- */

#define PARAM_BLOCK_BYTES(block, more)                                                             \
    {.name = "block_bytes",                                                                        \
     .type = PARAM_COUNT,                                                                          \
     .unit = "byte",                                                                               \
     .initial = block,                                                                             \
     .min = 1,                                                                                     \
     .max = 268435456,                                                                             \
     .roles = ROLE_AXIS,                                                                           \
     .help = "Bytes per operation. " more}

#define PARAM_FILE_BYTES                                                                           \
    {.name = "file_bytes",                                                                         \
     .type = PARAM_COUNT,                                                                          \
     .unit = "byte",                                                                               \
     .initial = "1073741824",                                                                      \
     .min = 4096,                                                                                  \
     .max = 1e15,                                                                                  \
     .help = "Size of the scratch file. The program fills it with real writes before the trial "   \
             "and uses whole blocks of it (covered_bytes)."}

/* The harness's own would take one thread per CPU, while the disk's figures are by queue depth. */
#define PARAM_THREADS                                                                              \
    {.name = "threads",                                                                            \
     .type = PARAM_COUNT,                                                                          \
     .initial = "1",                                                                               \
     .min = 1,                                                                                     \
     .max = 512,                                                                                   \
     .choices = disk_all_cpus,                                                                     \
     .roles = ROLE_AXIS | ROLE_TAG,                                                                \
     .noun = "thread",                                                                             \
     .help = "Number of threads; all: one per CPU that this process may use."}

#define PARAM_TOTAL_BYTES                                                                          \
    {.name = "total_bytes",                                                                        \
     .type = PARAM_COUNT,                                                                          \
     .unit = "byte",                                                                               \
     .min = 1,                                                                                     \
     .max = 1e18,                                                                                  \
     .ends_trial = true,                                                                           \
     .help = "Bytes to transfer, rounded down to whole blocks and split over the threads. With "   \
             "duration_s the trial ends at whichever limit comes first; without it, when all "     \
             "bytes are transferred."}

#define PARAM_SCRATCH_FD                                                                           \
    {.name = "scratch_fd",                                                                         \
     .type = PARAM_COUNT,                                                                          \
     .scope = SCOPE_HOST,                                                                          \
     .min = 3,                                                                                     \
     .max = 1048576,                                                                               \
     .help = "File descriptor of an unnamed file that a job keeps between its trials. Default: "   \
             "the program creates its own file in HOSTBENCH_SCRATCH."}

/* ---- metrics -------------------------------------------------------------------------------- */

#define METRIC_READ_THERE                                                                          \
    {"device_read_ratio", "1", HIGHER_IS_BETTER,                                                   \
     "Bytes that this process read from block devices (/proc/self/io), divided by the bytes that " \
     "the workload read: 0 if they came from the page cache, 1 or more (read-ahead) if they came " \
     "from the device. A hypervisor's cache stays invisible."}

#define METRIC_WRITTEN_THERE                                                                       \
    {"device_write_ratio", "1", LOWER_IS_BETTER,                                                   \
     "Bytes that this process sent to block devices or made dirty, divided by the bytes that the " \
     "workload wrote: more than 1 if a block covers only part of a page."}

#define METRICS_EVIDENCE                                                                           \
    {"cached_ratio_before", "1", LOWER_IS_BETTER,                                                  \
     "Share of the file in the page cache right before the timed region."},                        \
        {"cached_ratio_after", "1", LOWER_IS_BETTER,                                               \
         "Share of the file in the page cache at the end of the timed region."},                   \
        {"diskstats_read_bytes", "byte", HIGHER_IS_BETTER,                                         \
         "Bytes that the device read in the timed region, for all processes."},                    \
        {"diskstats_write_bytes", "byte", HIGHER_IS_BETTER,                                        \
         "Bytes that the device wrote in the timed region, for all processes, the file system's "  \
         "journal included."},                                                                     \
        {"device_busy_ratio", "1", HIGHER_IS_BETTER,                                               \
         "Share of the timed region in which the device was busy."},                               \
        {"planned_write_bytes", "byte", LOWER_IS_BETTER,                                           \
         "Most bytes that the trial was going to write, computed before it began: the missing "    \
         "part of the scratch file plus the workload's writes, where a write to part of a page "   \
         "counts as a whole page. The trial may write less if duration_s ends it first. Null if "  \
         "duration_s alone limits the writes."},                                                   \
        {"prefilled_bytes", "byte", LOWER_IS_BETTER,                                               \
         "Bytes that were missing from the scratch file and that the program wrote before the "    \
         "trial."},                                                                                \
        {"prefill_s", "s", LOWER_IS_BETTER,                                                        \
         "Time of these writes, including the fsync after them."},                                 \
        {"covered_bytes", "byte", HIGHER_IS_BETTER,                                                \
         "Bytes of the file that the workload uses: whole blocks, within each thread's part if "   \
         "every thread has its own."}

/* ---- both ----------------------------------------------------------------------------------- */

/* A gibibyte, filled at some hundred megabytes a second. */
#define FILL_S 3

extern const char *const disk_all_cpus[];
extern const char *const disk_excludes[];

#define BYTES_PER_SECOND(text)                                                                     \
    {.name = "bytes_per_second",                                                                   \
     .unit = "byte/s",                                                                             \
     .description = text,                                                                          \
     .combine = COMBINE_SUM,                                                                       \
     .work = "byte"}

#endif
