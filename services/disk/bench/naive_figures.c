/* What the naive workloads' work comes to, and whether it was done. */
#define _GNU_SOURCE
#include "content.h"
#include "io_error.h"
#include "monotonic.h"
#include "naive.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { PAGE = 4096 };

static const char TOO_LITTLE[] = "too little was moved to tell a rate";

/* ---- the check ------------------------------------------------------------------------------ */

static int wrong(const struct disk_job *job, uint64_t offset)
{
    run_reason(job->run,
               "%" PRIu64 " bytes at offset %" PRIu64
               " of the file are not what was %s there last; "
               "do not trust this disk before it has been checked (smartctl, the kernel's log)",
               job->block_bytes, offset, job->writes ? "written" : "read");
    return EXIT_WRONG;
}

/* `bytes` of the file at `offset`, a page at most, against `expected`. */
static int compare_part(const struct disk_job *job, const char *expected, uint64_t offset,
                        size_t bytes)
{
    char found[PAGE];
    ssize_t got;
    do
        got = pread(job->scratch.fd, found, bytes, (off_t)offset);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)bytes)
        return io_error(job->run, OP_READ, got < 0 ? errno : 0, offset, bytes, got);
    return memcmp(found, expected, bytes) ? wrong(job, offset) : EXIT_OK;
}

/* What was written comes from the disk, to which it has been synced. */
static int compare_block(const struct disk_job *job, const struct naive_region *region)
{
    uint64_t from = region->last * job->block_bytes, before = from % PAGE;
    int failure = EXIT_OK;
    if (job->writes)
        posix_fadvise(job->scratch.fd, (off_t)(from - before),
                      (off_t)(before + job->block_bytes + PAGE), POSIX_FADV_DONTNEED);
    for (uint64_t at = 0; at < job->block_bytes && !failure && !run_stopping(job->run);
         at += PAGE) {
        uint64_t left = job->block_bytes - at;
        failure = compare_part(job, region->content + at, from + at, left < PAGE ? left : PAGE);
    }
    return failure;
}

static int compare_all(struct disk_job *job)
{
    int failure = EXIT_OK;
    for (unsigned i = 0; i < job->threads && !failure; i++) {
        struct disk_thread *own = &job->own[i];
        if (own->region.blocks == 0)
            continue;
        failure = compare_block(job, &own->region);
        own->verified++;
    }
    return failure;
}

int naive_verify(struct thread *thread, uint64_t units)
{
    struct disk_job *job = disk_job_of(thread);
    (void)units;
    if (thread->index > 0)
        return EXIT_OK;
    evidence_end(job);
    double start_s = now_s();
    int failure = file_flush(job);
    job->own[0].sync_s = now_s() - start_s;
    return failure ? failure : compare_all(job);
}

/* ---- the figures ---------------------------------------------------------------------------- */

double naive_blocks(const struct disk_job *job)
{
    double blocks = 0;
    for (unsigned i = 0; i < job->threads; i++)
        blocks += (double)job->own[i].region.blocks;
    return blocks;
}

/* From the first thread's start to the last one's end, by the reports' clock. */
static double elapsed_s(const struct disk_job *job)
{
    double start_s = INFINITY, end_s = -INFINITY;
    for (unsigned i = 0; i < job->threads; i++) {
        start_s = fmin(start_s, job->own[i].region.start_s);
        end_s = fmax(end_s, job->own[i].region.end_s);
    }
    return end_s - start_s;
}

static void report_sync(const struct disk_job *job, double bytes, double taken_s)
{
    static const char reads[] = "the workload only reads";
    double sync_s = job->own[0].sync_s;
    if (!job->writes) {
        run_no_metric(job->run, "sync_after_s", reads);
        run_no_metric(job->run, "synced_bytes_per_second", reads);
        return;
    }
    run_metric(job->run, "sync_after_s", sync_s);
    if (bytes > 0 && taken_s > 0)
        run_metric(job->run, "synced_bytes_per_second", bytes / (taken_s + sync_s));
    else
        run_no_metric(job->run, "synced_bytes_per_second", TOO_LITTLE);
}

void naive_finish(struct thread *thread)
{
    struct disk_job *job = disk_job_of(thread);
    double blocks = naive_blocks(job), taken_s = elapsed_s(job);
    double rate = blocks > 0 && taken_s > 0 ? blocks / taken_s : NAN, verified = 0;
    for (unsigned i = 0; i < job->threads; i++)
        verified += (double)job->own[i].verified;
    run_bulk_rate(job->run, rate * (double)job->block_bytes);
    if (isfinite(rate))
        run_metric(job->run, "operations_per_second", rate);
    else
        run_no_metric(job->run, "operations_per_second", TOO_LITTLE);
    run_metric(job->run, "verified_blocks", verified);
    report_sync(job, blocks * (double)job->block_bytes, taken_s);
    disk_job_tell_sample(job, blocks);
    evidence_report(job);
    file_conclude(job);
}
