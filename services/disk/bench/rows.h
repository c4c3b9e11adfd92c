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
     .help = "Bytes of one operation. " more}

#define PARAM_FILE_BYTES                                                                           \
    {.name = "file_bytes",                                                                         \
     .type = PARAM_COUNT,                                                                          \
     .unit = "byte",                                                                               \
     .initial = "1073741824",                                                                      \
     .min = 4096,                                                                                  \
     .max = 1e15,                                                                                  \
     .help = "Size of the scratch file, filled by real writes before; whole blocks of it are "     \
             "used (covered_bytes)."}

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
     .help = "Threads to run; all: one per CPU this process may use."}

#define PARAM_TOTAL_BYTES                                                                          \
    {.name = "total_bytes",                                                                        \
     .type = PARAM_COUNT,                                                                          \
     .unit = "byte",                                                                               \
     .min = 1,                                                                                     \
     .max = 1e18,                                                                                  \
     .ends_trial = true,                                                                           \
     .help = "Total to move, rounded down to whole blocks and split over the threads; with "       \
             "duration_s the trial ends at whichever is reached first, and without it when "       \
             "all is moved."}

#define PARAM_SCRATCH_FD                                                                           \
    {.name = "scratch_fd",                                                                         \
     .type = PARAM_COUNT,                                                                          \
     .scope = SCOPE_HOST,                                                                          \
     .min = 3,                                                                                     \
     .max = 1048576,                                                                               \
     .help = "File descriptor of an unnamed file that a job keeps between its trials. "            \
             "Default: one of its own in HOSTBENCH_SCRATCH."}

/* ---- metrics -------------------------------------------------------------------------------- */

#define METRIC_READ_THERE                                                                          \
    {"device_read_ratio", "1", HIGHER_IS_BETTER,                                                   \
     "Bytes that this process read from block devices (/proc/self/io) over those that the "        \
     "workload "                                                                                   \
     "read: 0 where the page cache had them, 1 or more (read-ahead) where it had not. A "          \
     "hypervisor's cache is not seen."}

#define METRIC_WRITTEN_THERE                                                                       \
    {"device_write_ratio", "1", LOWER_IS_BETTER,                                                   \
     "Bytes that this process sent to block devices, or made dirty, over those that the "          \
     "workload "                                                                                   \
     "wrote: more than 1 where blocks are parts of a page."}

#define METRICS_EVIDENCE                                                                           \
    {"cached_ratio_before", "1", LOWER_IS_BETTER,                                                  \
     "Share of the file in the page cache right before the timed region."},                        \
        {"cached_ratio_after", "1", LOWER_IS_BETTER, "The same at its end."},                      \
        {"diskstats_read_bytes", "byte", HIGHER_IS_BETTER,                                         \
         "Bytes that the device read in the timed region, for any process."},                      \
        {"diskstats_write_bytes", "byte", HIGHER_IS_BETTER,                                        \
         "Bytes that the device wrote in the timed region, for any process: journal and "          \
         "other "                                                                                  \
         "processes included."},                                                                   \
        {"device_busy_ratio", "1", HIGHER_IS_BETTER,                                               \
         "Share of the timed region in which the device had something to do."},                    \
        {"planned_write_bytes", "byte", LOWER_IS_BETTER,                                           \
         "Bytes to be written, known before the trial: what was missing of the file, and the "     \
         "workload's with parts of pages written as pages; at most so many of total_bytes where "  \
         "duration_s ends the trial. None where the time alone does."},                            \
        {"prefilled_bytes", "byte", LOWER_IS_BETTER,                                               \
         "Bytes of the file that were missing and were written before the trial."},                \
        {"prefill_s", "s", LOWER_IS_BETTER, "Time that took, with the fsync behind it."},          \
        {"covered_bytes", "byte", HIGHER_IS_BETTER,                                                \
         "Bytes of the file that the blocks cover: whole blocks, of each thread's own part where " \
         "it "                                                                                     \
         "has one."}

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
