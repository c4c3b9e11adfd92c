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
     .help = "Which block is next in the thread's part; random: rand() and a seek for each. Its "
             "seed is never set, so each trial takes the same ones, and of a part of more than "
             "2147483648 blocks none behind those."},
    PARAM_BLOCK_BYTES("8192", "Through the page cache: any number."),
    PARAM_FILE_BYTES,
    {.name = "calls",
     .type = PARAM_CHOICE,
     .initial = "stdio",
     .choices = ways,
     .help = "stdio: fread, fwrite and fseek with the library's buffer of a page; unbuffered: the "
             "same after setbuf(NULL), which takes that buffer away and not the page cache; "
             "syscalls: read, write and lseek."},
    {.name = "sync",
     .type = PARAM_CHOICE,
     .initial = "none",
     .choices = syncs,
     .named = true,
     .help = "each: the file is opened with O_SYNC: each write that reaches the kernel waits for "
             "the disk, and reads are served from memory as before."},
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
     "Blocks a second, all threads together; one that is read and written back counts once."},
    {"sync_after_s", "s", LOWER_IS_BETTER,
     "What an fsync took after the clock was stopped: the time that the figure leaves out."},
    {"synced_bytes_per_second", "byte/s", HIGHER_IS_BETTER,
     "The same bytes over the time with that fsync."},
    METRIC_READ_THERE,
    METRICS_EVIDENCE,
    {"verified_blocks", "operation", HIGHER_IS_BETTER,
     "Blocks compared after the timed region: the last one of each thread with the file, after a "
     "write read back from the disk."},
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
    .description = "Reads blocks of a file that is in the page cache, timed by gettimeofday before "
                   "and after.",
    .rate = BYTES_PER_SECOND("Bytes that the calls gave over the time of all, all threads "
                             "together."),
    .own = &reading,
    SHARED,
};

const struct workload naive_write_workload = {
    .name = "naive_write",
    .description = "Overwrites blocks of a file in the page cache, timed by gettimeofday before "
                   "and after, with nothing that waits for the disk unless sync says so.",
    .rate = BYTES_PER_SECOND("Bytes that the calls took over the time of all, all threads "
                             "together."),
    .own = &writing,
    SHARED,
};

const struct workload naive_rw_workload = {
    .name = "naive_rw",
    .description = "Reads blocks of a file that is in the page cache and writes each back, timed "
                   "by gettimeofday before and after.",
    .rate = BYTES_PER_SECOND("Bytes of the blocks, each counted once, over the time of all, all "
                             "threads together."),
    .own = &both,
    SHARED,
};
