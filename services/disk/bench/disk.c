#define _GNU_SOURCE
#include "disk.h"

#include "content.h"
#include "engine.h"
#include "engines.h"
#include "environment.h"
#include "file.h"
#include "io_error.h"
#include "job.h"
#include "memory.h"
#include "readback.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PAGE = 4096,
    FILL_MEMORY_BYTES = 32 << 20, /* of all threads together */
    REQUEST_BYTES = 512,          /* for one place in a queue: ours, the engine's, the kernel's */
};

static const double USABLE_SHARE = 0.95; /* of the memory: whatever else grows meanwhile */
static const double WRITE_BUDGET_BYTES = 0x1p40;

/* ---- reading -------------------------------------------------------------------------------- */

static const struct {
    const char *word;
    enum cache_mode mode;
    int open_flags;
    bool fsync_end;
} modes[] = {
    {"direct", CACHE_DIRECT, O_DIRECT, false},
    {"direct+fsync_end", CACHE_DIRECT_FSYNC_END, O_DIRECT, true},
    {"direct+dsync", CACHE_DIRECT_DSYNC, O_DIRECT | O_DSYNC, false},
    {"direct+sync", CACHE_DIRECT_SYNC, O_DIRECT | O_SYNC, false},
    {"buffered", CACHE_BUFFERED, 0, false},
    {"buffered+fsync_end", CACHE_BUFFERED_FSYNC_END, 0, true},
    {"buffered+dsync", CACHE_BUFFERED_DSYNC, O_DSYNC, false},
    {"buffered+sync", CACHE_BUFFERED_SYNC, O_SYNC, false},
};

static void read_mode(struct disk_job *job, const char *word)
{
    size_t i = 0;
    while (strcmp(modes[i].word, word) != 0)
        i++;
    job->mode = modes[i].mode;
    job->open_flags = modes[i].open_flags;
    job->direct = modes[i].open_flags & O_DIRECT;
    job->synced = modes[i].open_flags & O_DSYNC; /* which is a part of O_SYNC */
    job->fsync_end = modes[i].fsync_end;
}

static const struct disk_kind *kind_of(const struct run *run)
{
    return run_own(run);
}

/* Whether the primary figure counts bytes. */
static bool counts_bytes(const struct run *run)
{
    return kind_of(run)->naive || (kind_of(run)->sequential && !kind_of(run)->commit);
}

static bool chosen(const struct run *run, const char *param, const char *word)
{
    return !strcmp(run_choice(run, param), word);
}

static void divide(struct disk_job *job)
{
    job->apart = job->sequential || job->verify || job->naive;
    job->region_blocks = job->file_bytes / (job->apart ? job->threads : 1) / job->block_bytes;
    job->blocks = job->region_blocks * (job->apart ? job->threads : 1);
}

/* Of all but the naive ones, which have none of these. */
static void read_loop_params(struct run *run, struct disk_job *job)
{
    const struct disk_kind *kind = kind_of(run);
    job->rate = run_param_set(run, "rate") ? run_number(run, "rate") : 0;
    job->compressible = run_number(run, "compressible");
    job->steady_state = chosen(run, "steady_state", "on");
    if (kind->reads && kind->writes)
        job->read_share = run_number(run, "read_share");
    if (!kind->commit) {
        job->depth = (unsigned)run_count(run, "queue_depth");
        job->verify = chosen(run, "verify", "on");
        read_mode(job, run_choice(run, "cache_mode"));
    }
    if (!kind->sequential) {
        job->zipf = chosen(run, "distribution", "zipf");
        job->zipf_theta = run_number(run, "zipf_theta");
    }
}

static void read_naive_params(struct run *run, struct disk_job *job)
{
    job->sequential = chosen(run, "pattern", "sequential");
    job->read_share = !job->writes; /* a block that is read is written, too: all are writes */
    read_mode(job, chosen(run, "sync", "each") ? "buffered+sync" : "buffered");
}

static void read_params(struct run *run, struct disk_job *job)
{
    const struct disk_kind *kind = kind_of(run);
    *job = (struct disk_job){
        .run = run,
        .reads = kind->reads,
        .writes = kind->writes,
        .sequential = kind->sequential,
        .commit = kind->commit,
        .naive = kind->naive,
        .read_share = kind->reads,
        .block_bytes = run_count(run, "block_bytes"),
        .file_bytes = run_count(run, "file_bytes"),
        .threads = run_threads(run),
        .depth = 1,
        .mode = CACHE_BUFFERED,
        .alignment = 1,
        .scratch = {.fd = -1},
        .fill = {.fd = -1},
        .fd = -1,
    };
    if (kind->naive)
        read_naive_params(run, job);
    else
        read_loop_params(run, job);
    divide(job);
}

/* The table asks this, too, before there are threads. */
const char *disk_job_unsupported(const struct run *run)
{
    if (kind_of(run)->commit || kind_of(run)->naive)
        return NULL;
    const struct disk_job job = {
        .block_bytes = run_count(run, "block_bytes"),
        .threads = run_threads(run) ? run_threads(run) : 1,
        .depth = (unsigned)run_count(run, "queue_depth"),
    };
    return engine_why_not(run_choice(run, "engine"), &job);
}

/* ---- what they mean together ---------------------------------------------------------------- */

static int check_size(const struct disk_job *job)
{
    uint64_t least = job->block_bytes * (job->apart ? job->threads : 1);
    if (job->blocks > 0)
        return EXIT_OK;
    if (job->apart && job->threads > 1)
        run_reason(job->run,
                   "--file-bytes %" PRIu64 " is less than a block of %" PRIu64
                   " bytes for each of %u threads, which have parts of their own: use at least "
                   "--file-bytes %" PRIu64,
                   job->file_bytes, job->block_bytes, job->threads, least);
    else
        run_reason(job->run,
                   "--block-bytes %" PRIu64 " is more than the file of --file-bytes %" PRIu64
                   ": use smaller blocks or a larger file",
                   job->block_bytes, job->file_bytes);
    return EXIT_USAGE;
}

static int check_verify(const struct disk_job *job)
{
    if (!job->verify || job->block_bytes >= CONTENT_HEADER_BYTES)
        return EXIT_OK;
    run_reason(job->run,
               "--block-bytes %" PRIu64 ": --verify on needs room for the header of a block: use "
               "at least %d bytes, or --verify off",
               job->block_bytes, CONTENT_HEADER_BYTES);
    return EXIT_USAGE;
}

/* The harness counts work in what the rate counts. */
static int check_total(struct run *run, const struct disk_job *job)
{
    if (!run_param_set(run, "total_bytes"))
        return EXIT_OK;
    uint64_t total = run_count(run, "total_bytes"), operations = total / job->block_bytes;
    if (operations == 0) {
        run_reason(run,
                   "--total-bytes %" PRIu64 " is less than a block of %" PRIu64
                   " bytes: use at least that, or smaller --block-bytes",
                   total, job->block_bytes);
        return EXIT_USAGE;
    }
    run_set_count(run, "work", operations * (counts_bytes(run) ? job->block_bytes : 1));
    return EXIT_OK;
}

static double memory_needed(const struct disk_job *job)
{
    double queue = (double)job->depth * REQUEST_BYTES;
    double each = (double)engine_thread_bytes(job) + queue + sizeof(struct disk_thread);
    return job->threads * each + FILL_MEMORY_BYTES + run_thread_bytes(job->run);
}

static int check_memory(const struct disk_job *job)
{
    struct memory_budget budget;
    double needed = memory_needed(job);
    if (!run_memory_budget(job->run, &budget) || needed <= USABLE_SHARE * budget.bytes)
        return EXIT_OK;
    char needed_words[MEMORY_WORDS], usable_words[MEMORY_WORDS];
    run_reason(job->run,
               "--threads %u x --queue-depth %u x --block-bytes %" PRIu64
               ": %s of memory are needed, %s may be taken (95 %% of %s): use fewer or smaller "
               "ones",
               job->threads, job->depth, job->block_bytes, memory_in_words(needed, needed_words),
               memory_in_words(USABLE_SHARE * budget.bytes, usable_words), budget.limit);
    return EXIT_RESOURCE;
}

int disk_job_check(struct run *run)
{
    struct disk_job job;
    read_params(run, &job);
    int failure = check_size(&job);
    if (!failure)
        failure = check_verify(&job);
    if (!failure)
        failure = check_total(run, &job);
    return failure ? failure : check_memory(&job);
}

/* ---- what the file system makes of them ----------------------------------------------------- */

static const char *modes_buffered(enum cache_mode direct)
{
    switch (direct) {
    case CACHE_DIRECT_SYNC:
        return "buffered+sync";
    case CACHE_DIRECT_DSYNC:
        return "buffered+dsync";
    case CACHE_DIRECT_FSYNC_END:
        return "buffered+fsync_end";
    default:
        return "buffered";
    }
}

/* The same mode through the page cache. */
static void fall_back(struct disk_job *job)
{
    const char *word = modes_buffered(job->mode);
    run_warning(job->run, "direct_unavailable",
                "cache_mode %s instead of %s: the file system of %s refuses O_DIRECT", word,
                run_choice(job->run, "cache_mode"), job->scratch.directory);
    run_set_choice(job->run, "cache_mode", word);
    read_mode(job, word);
}

static int settle_mode(struct disk_job *job)
{
    uint64_t alignment = job->direct ? scratch_alignment(&job->scratch) : 1;
    if (alignment == 0)
        fall_back(job);
    else
        job->alignment = alignment;
    if (job->block_bytes % job->alignment == 0)
        return EXIT_OK;
    run_reason(
        job->run,
        "--block-bytes %" PRIu64 ": cache_mode %s needs a multiple of %" PRIu64
        " here (what this device and file system take at once): use one, or --cache-mode buffered",
        job->block_bytes, run_choice(job->run, "cache_mode"), job->alignment);
    return EXIT_USAGE;
}

static int choose_engine(struct disk_job *job)
{
    return job->naive ? EXIT_OK : engine_choose(job->run, job);
}

static int open_measured(struct disk_job *job)
{
    job->fd = scratch_reopen(&job->scratch, job->open_flags);
    return job->fd < 0 ? io_error_of(job->run, "opening", errno) : EXIT_OK;
}

/* ---- the write budget ----------------------------------------------------------------------- */

/* What reaches the device for one write, at least: parts of a page that are not put together with
 * others are written as pages. */
static double device_bytes_per_write(const struct disk_job *job)
{
    bool together = job->direct || (job->sequential && !job->synced && !job->commit);
    uint64_t pages = (job->block_bytes + PAGE - 1) / PAGE;
    return (double)(together ? job->block_bytes : pages * PAGE);
}

/* Requested operations, at most; NaN: the time alone decides. */
static double operations_planned(const struct disk_job *job)
{
    struct run *run = job->run;
    double due = job->rate > 0 && run_param_set(run, "duration_s")
                     ? job->rate * run_number(run, "duration_s")
                     : NAN;
    double total = disk_job_total(job);
    return fmin(due, total > 0 ? total : NAN); /* of a number and NaN: the number */
}

/* What is certain to be written. */
static double operations_certain(const struct disk_job *job)
{
    bool timed = run_param_set(job->run, "duration_s");
    return timed && disk_job_total(job) > 0 ? NAN : operations_planned(job);
}

/* A trial of fixed work is refused beforehand and no more afterwards: neither for what its ramp writes
 * nor for a mix with a few writes more than its share. One of fixed time ends where the budget does.
 */
static int check_budget(struct disk_job *job)
{
    double budget = WRITE_BUDGET_BYTES, fill = (double)(job->fill.to - job->fill.from);
    int failure = environment_bytes(job->run, "HOSTBENCH_DISK_WRITE_BUDGET_BYTES", &budget);
    if (failure)
        return failure;
    double each = device_bytes_per_write(job);
    double share = (1 - job->read_share) * each;
    double writes = job->writes ? share * operations_certain(job) : 0;
    job->planned_write_bytes = fill + (job->writes ? share * operations_planned(job) : 0);
    if (fill + (isnan(writes) ? 0 : writes) <= budget) {
        bool planned = !isnan(writes);
        job->write_limit = planned ? UINT64_MAX : (uint64_t)((budget - fill) / each / job->threads);
        return EXIT_OK;
    }
    run_reason(job->run,
               "%.0f bytes would be written (%.0f of them to fill the file), more than the write "
               "budget of %.0f (HOSTBENCH_DISK_WRITE_BUDGET_BYTES): use a smaller --file-bytes, "
               "less to write, or raise it",
               fill + (isnan(writes) ? 0 : writes), fill, budget);
    return EXIT_RESOURCE;
}

/* ---- life ----------------------------------------------------------------------------------- */

static int lacks_memory(struct run *run)
{
    run_reason(run, "not enough memory for %u threads: use fewer", run_threads(run));
    return EXIT_RESOURCE;
}

static int make_own(struct disk_job *job)
{
    size_t bytes = job->threads * sizeof *job->own;
    job->own = aligned_alloc(_Alignof(struct disk_thread), bytes);
    if (!job->own)
        return lacks_memory(job->run);
    memset(job->own, 0, bytes);
    return EXIT_OK;
}

static void set_unit(struct run *run, const struct disk_job *job)
{
    run_set_unit(run, counts_bytes(run) ? job->block_bytes : 1, 1);
    run_set_block_bytes(run, job->block_bytes);
}

int disk_job_open(struct run *run)
{
    struct disk_job *job = malloc(sizeof *job);
    if (!job)
        return lacks_memory(run);
    signal(SIGXFSZ, SIG_IGN); /* then a file size limit is an error like others: EFBIG */
    read_params(run, job);
    run_set_shared(run, job);
    set_unit(run, job);
    int (*const steps[])(struct disk_job *) = {make_own,      readback_open, settle_mode,
                                               choose_engine, file_plan,     check_budget,
                                               file_prepare,  open_measured};
    int failure = scratch_open(run, &job->scratch);
    for (size_t i = 0; i < sizeof steps / sizeof *steps && !failure; i++)
        failure = steps[i](job);
    return failure;
}

void disk_job_close(struct run *run)
{
    struct disk_job *job = run_shared(run);
    if (!job)
        return;
    if (job->fd >= 0)
        close(job->fd);
    if (job->fill.fd >= 0)
        close(job->fill.fd);
    scratch_close(&job->scratch);
    readback_close(job);
    free(job->own);
    free(job);
}
