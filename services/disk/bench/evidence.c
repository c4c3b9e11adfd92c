#define _GNU_SOURCE
#include "evidence.h"

#include "block_device.h"
#include "job.h"
#include "monotonic.h"

#include <math.h>
#include <stdio.h>

enum { PAGE = 4096 };

static const double ENOUGH_FROM_DEVICE = 0.95;
static const double LITTLE_CACHED = 0.01;
static const double LITTLE_THROUGH = 0.03; /* of what was moved */

static const char NO_IO_ACCOUNTING[] = "the kernel provides no /proc/self/io";
static const char NOTHING_MOVED[] = "no such operation was done";
static const char NO_DEVICE[] =
    "the file system reports no block device of its own (overlay, network)";
static const char NO_RESIDENCY[] = "the kernel reports it neither by cachestat() nor by mincore()";

/* ---- counters ------------------------------------------------------------------------------- */

/* Of all threads of this process; direct I/O and read-ahead count, what the page cache gave does
 * not. A buffered write counts when it makes a page dirty. */
static void read_own(struct io_counters *counters)
{
    char line[128];
    FILE *stream = fopen("/proc/self/io", "re");
    while (stream && fgets(line, sizeof line, stream)) {
        sscanf(line, "read_bytes: %lf", &counters->read_bytes);
        sscanf(line, "write_bytes: %lf", &counters->write_bytes);
    }
    if (stream)
        fclose(stream);
}

static struct io_counters counters_read(const struct disk_job *job)
{
    struct io_counters counters = {now_s(), NAN, NAN, NAN, NAN, NAN};
    read_own(&counters);
    block_device_counters(job->scratch.device, &counters.device_read_bytes,
                          &counters.device_write_bytes, &counters.device_busy_s);
    return counters;
}

void evidence_begin(struct disk_job *job)
{
    job->evidence.cached_before = disk_job_cached_ratio(job);
    job->evidence.before = counters_read(job);
}

/* ---- metrics -------------------------------------------------------------------------------- */

static void report(struct run *run, const char *name, double value, const char *why)
{
    if (isfinite(value))
        run_metric(run, name, value);
    else
        run_no_metric(run, name, why);
}

/* Bytes that the workload moved in the timed region. */
static double moved_bytes(const struct disk_job *job, enum op op)
{
    bool mix = job->reads && job->writes;
    double blocks =
        job->naive ? disk_job_naive_blocks(job) : run_loop_operations(job->run, mix ? op : 0);
    return blocks * (double)job->block_bytes;
}

static double report_reads(const struct disk_job *job, const struct io_counters *after)
{
    if (!job->reads) {
        run_no_metric(job->run, "device_read_ratio", "the workload only writes");
        return NAN;
    }
    double moved = moved_bytes(job, OP_READ);
    double ratio = (after->read_bytes - job->evidence.before.read_bytes) / moved;
    report(job->run, "device_read_ratio", ratio, moved > 0 ? NO_IO_ACCOUNTING : NOTHING_MOVED);
    return ratio;
}

/* A naive workload has no such metric. */
static double report_writes(const struct disk_job *job, const struct io_counters *after)
{
    if (job->naive)
        return NAN;
    if (!job->writes) {
        run_no_metric(job->run, "device_write_ratio", "the workload only reads");
        return NAN;
    }
    double moved = moved_bytes(job, OP_WRITE);
    double ratio = (after->write_bytes - job->evidence.before.write_bytes) / moved;
    report(job->run, "device_write_ratio", ratio, moved > 0 ? NO_IO_ACCOUNTING : NOTHING_MOVED);
    return ratio;
}

static void report_device(const struct disk_job *job, const struct io_counters *after)
{
    const struct io_counters *before = &job->evidence.before;
    report(job->run, "diskstats_read_bytes", after->device_read_bytes - before->device_read_bytes,
           NO_DEVICE);
    report(job->run, "diskstats_write_bytes",
           after->device_write_bytes - before->device_write_bytes, NO_DEVICE);
    report(job->run, "device_busy_ratio",
           (after->device_busy_s - before->device_busy_s) / (after->at_s - before->at_s),
           NO_DEVICE);
}

static void report_fill(const struct disk_job *job)
{
    struct run *run = job->run;
    report(run, "planned_write_bytes", job->planned_write_bytes,
           "a time was given and no total: the writes end with it");
    run_metric(run, "prefilled_bytes", (double)(job->fill.to - job->fill.from));
    run_metric(run, "prefill_s", job->fill.taken_s);
    run_metric(run, "covered_bytes", (double)job->blocks * (double)job->block_bytes);
}

static void report_threads(const struct disk_job *job)
{
    double sync_s = 0, verified = 0;
    for (unsigned i = 0; i < job->threads; i++) {
        sync_s = fmax(sync_s, job->own[i].sync_s);
        verified += (double)job->own[i].verified;
    }
    if (job->fsync_end)
        run_metric(job->run, "fsync_s", sync_s);
    else
        run_no_metric(job->run, "fsync_s", "only a cache_mode with fsync_end has it");
    if (job->verify)
        run_metric(job->run, "verified_blocks", verified);
    else
        run_no_metric(job->run, "verified_blocks", "verify is off");
}

/* ---- what they mean ------------------------------------------------------------------------- */

/* What is known of it, for a message. */
static void describe_evidence(char *text, size_t size, double read_ratio, double cached)
{
    char read[80] = "", before[80] = "";
    if (isfinite(read_ratio))
        snprintf(read, sizeof read, "%.0f %% of the bytes read came from the device (at least 95)",
                 100 * read_ratio);
    if (isfinite(cached))
        snprintf(before, sizeof before,
                 "%.1f %% of the file were in the page cache before (at most 1)", 100 * cached);
    snprintf(text, size, "%s%s%s", read, *read && *before ? ", and " : "", before);
}

static void warn_of_cache(const struct disk_job *job, double read_ratio)
{
    char evidence[200];
    double cached = job->evidence.cached_before;
    if (!job->reads || !(read_ratio < ENOUGH_FROM_DEVICE || cached > LITTLE_CACHED))
        return;
    describe_evidence(evidence, sizeof evidence, read_ratio, cached);
    run_warning(job->run, "cache_contaminated",
                "%s: this is not the disk's figure; use --cache-mode direct, on a file system that "
                "has it, or a larger --file-bytes, so that less is read twice",
                evidence);
}

/* The file was to be out of the page cache when it was read, and nothing says whether it was. */
static void warn_of_no_evidence(const struct disk_job *job, double read_ratio)
{
    bool moved = job->reads && moved_bytes(job, OP_READ) > 0;
    if (moved && isnan(read_ratio) && isnan(job->evidence.cached_before))
        run_warning(
            job->run, "no_cache_evidence",
            "the kernel reports neither /proc/self/io nor, by cachestat() or mincore(), what is in "
            "the page cache: nothing shows whether this is the disk's figure or memory's; compare "
            "it with the disk's data sheet, or measure outside the sandbox");
}

/* Some file systems take O_DIRECT and go through the page cache all the same. Of what they move,
 * no more than the file can be there afterwards. */
static bool went_through_cache(const struct disk_job *job, double cached_after)
{
    bool mix = job->reads && job->writes;
    double file = (double)job->blocks * (double)job->block_bytes;
    double moved = moved_bytes(job, OP_READ) + (mix ? moved_bytes(job, OP_WRITE) : 0);
    double more = (cached_after - job->evidence.cached_before) * file;
    return job->direct && more > LITTLE_THROUGH * fmin(moved, file);
}

/* What was the page cache's doing all the same; NULL: nothing. */
static const char *page_cache_part(const struct disk_job *job, double write_ratio,
                                   double cached_after)
{
    if (went_through_cache(job, cached_after))
        return "a file that was in the page cache afterwards";
    if (disk_job_leaves_dirty(job))
        return "writes that no thread waits for";
    if (job->fsync_end && !job->direct && write_ratio < ENOUGH_FROM_DEVICE)
        return "blocks that were overwritten before they had reached the disk";
    if (job->reads && !job->direct && job->block_bytes < PAGE)
        return "blocks that are parts of a page, whose rest is then in memory";
    return NULL;
}

static void warn_of_page_cache(const struct disk_job *job, double write_ratio, double cached_after)
{
    const char *part = page_cache_part(job, write_ratio, cached_after);
    if (part)
        run_warning(job->run, "page_cache_measured",
                    "cache_mode %s of %s: the figure is the system call's and the page cache's, "
                    "not the disk's; use --cache-mode direct, on a file system that has it",
                    run_choice(job->run, "cache_mode"), part);
}

void evidence_end(struct disk_job *job)
{
    job->evidence.after = counters_read(job);
    job->evidence.cached_after = disk_job_cached_ratio(job);
}

void evidence_report(struct disk_job *job)
{
    const struct io_counters *after = &job->evidence.after;
    double read_ratio = report_reads(job, after);
    double write_ratio = report_writes(job, after);
    report_device(job, after);
    report(job->run, "cached_ratio_before", job->evidence.cached_before, NO_RESIDENCY);
    double cached_after = job->evidence.cached_after;
    report(job->run, "cached_ratio_after", cached_after, NO_RESIDENCY);
    report_fill(job);
    if (job->naive)
        return;
    report_threads(job);
    warn_of_cache(job, read_ratio);
    warn_of_no_evidence(job, read_ratio);
    warn_of_page_cache(job, write_ratio, cached_after);
}
