/* The rows of the naive workloads. */
#include "disk.h"
#include "disk_workloads.h"
#include "file.h"
#include "job.h"
#include "naive.h"
#include "rows.h"

#include <stddef.h>

/* ---- parameters ----------------------------------------------------------------------------- */

static const char *const patterns[] = {"sequential", "random", NULL};
static const char *const ways[] = {"stdio", "unbuffered", "syscalls", NULL};
static const char *const syncs[] = {"none", "each", NULL};

static const struct param params[] = {
    {.name = "pattern",
     .type = PARAM_CHOICE,
     .initial = "sequential",
     .choices = patterns,
     .roles = ROLE_TAG,
     .help = "Which block of the thread's part comes next; random: calls rand() and seeks for each "
             "block. The program never seeds rand(), so every trial uses the same blocks, and none "
             "beyond block 2147483648 of a part."},
    PARAM_BLOCK_BYTES("8192", "Any number: blocks go through the page cache."),
    PARAM_FILE_BYTES,
    {.name = "calls",
     .type = PARAM_CHOICE,
     .initial = "stdio",
     .choices = ways,
     .help = "stdio: fread, fwrite and fseek with the library's buffer of one page; unbuffered: "
             "the same after setbuf(NULL), which removes that buffer but not the page cache; "
             "syscalls: read, write and lseek."},
    {.name = "sync",
     .type = PARAM_CHOICE,
     .initial = "none",
     .choices = syncs,
     .named = true,
     .help = "each: opens the file with O_SYNC, so that each write that reaches the kernel waits "
             "for the disk; reads still come from memory."},
    PARAM_THREADS,
    PARAM_TOTAL_BYTES,
    PARAM_SCRATCH_FD,
    {.name = NULL},
};

/* ---- metrics -------------------------------------------------------------------------------- */

/* Not what the process has written to devices: the kernel counts all of a large folio when a part of
 * it becomes dirty, and a file that is in the page cache is in such. */

static const struct metric metrics[] = {
    {"operations_per_second", "operation/s", HIGHER_IS_BETTER,
     "Blocks per second, all threads together; a block that is read and written back counts once."},
    {"sync_after_s", "s", LOWER_IS_BETTER,
     "Time of an fsync() after the clock was stopped, which the figure leaves out."},
    {"synced_bytes_per_second", "byte/s", HIGHER_IS_BETTER,
     "The same bytes divided by the time that includes this fsync()."},
    METRIC_READ_THERE,
    METRICS_EVIDENCE,
    {"verified_blocks", "operation", HIGHER_IS_BETTER,
     "Blocks compared after the timed region: the last block of each thread with the file, which "
     "is read back from the disk if it was written."},
    {.name = NULL},
};

/* ---- the table ------------------------------------------------------------------------------ */

static int setup(struct thread *thread)
{
    int failure = file_fill(thread);
    return failure ? failure : naive_open(thread);
}

#define SHARED                                                                                     \
    .params = params, .excludes = disk_excludes, .metrics = metrics, .setup_s = FILL_S,            \
    .naive = true, .check = disk_job_check, .open = disk_job_open, .close = disk_job_close,        \
    .setup = setup, .loop = naive_loop, .moved = naive_moved, .prepare = naive_prepare,            \
    .verify = naive_verify, .finish = naive_finish, .teardown = naive_close

static const struct disk_kind reading = {.reads = true, .naive = true};
static const struct disk_kind writing = {.writes = true, .naive = true};
static const struct disk_kind both = {.reads = true, .writes = true, .naive = true};

const struct workload naive_read_workload = {
    .name = "naive_read",
    .description = "Reads blocks of a file that is in the page cache, timed with gettimeofday().",
    .rate = BYTES_PER_SECOND(
        "Bytes that the calls returned, divided by the time of all calls; all threads together."),
    .own = &reading,
    SHARED,
};

const struct workload naive_write_workload = {
    .name = "naive_write",
    .description = "Overwrites blocks of a file in the page cache, timed with gettimeofday(); "
                   "nothing waits for the disk unless sync requires it.",
    .rate = BYTES_PER_SECOND(
        "Bytes that the calls accepted, divided by the time of all calls; all threads together."),
    .own = &writing,
    SHARED,
};

const struct workload naive_rw_workload = {
    .name = "naive_rw",
    .description = "Reads blocks of a file that is in the page cache and writes each back, timed "
                   "with gettimeofday().",
    .rate = BYTES_PER_SECOND("Bytes of the blocks, each counted once, divided by the time of all "
                             "calls; all threads together."),
    .own = &both,
    SHARED,
};
