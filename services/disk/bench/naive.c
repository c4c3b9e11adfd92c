#define _GNU_SOURCE
#include "naive.h"

#include "calls.h"
#include "content.h"
#include "evidence.h"
#include "file.h"
#include "io_error.h"
#include "job.h"
#include "monotonic.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Between two looks whether the time is over: rarely enough not to be seen in the figure. */
static const double BATCH_LEAST_S = 1e-3, BATCH_MOST_S = 4e-3;
enum { BATCH_BYTES = 1 << 20, ALIGNMENT = 4096, PAGE = 4096 };

static const char TOO_LITTLE[] = "too little was moved to tell a rate";

/* One thread's. */
struct naive {
    struct disk_job *job;
    const struct calls *calls;
    struct channel in, out; /* the same file, each with a place of its own */
    char *buffer;           /* of block_bytes */
    uint64_t first;         /* block of this thread's part */
    uint64_t next;          /* of them, where they come in order */
    uint64_t last;          /* the block that is in the buffer */
};

/* ---- opening -------------------------------------------------------------------------------- */

static int open_channel(struct naive *naive, struct channel *channel)
{
    const struct disk_job *job = naive->job;
    if (channel_open(channel, naive->calls, scratch_reopen(&job->scratch, job->open_flags)))
        return EXIT_OK;
    run_reason(job->run,
               "opening the scratch file in each of %u threads: %s; use fewer threads, or raise "
               "ulimit -n",
               job->threads, strerror(errno));
    return EXIT_RESOURCE;
}

static int open_channels(struct naive *naive)
{
    int failure = naive->job->reads ? open_channel(naive, &naive->in) : EXIT_OK;
    if (!failure && naive->job->writes)
        failure = open_channel(naive, &naive->out);
    return failure;
}

static int lacks_memory(const struct disk_job *job)
{
    run_reason(job->run,
               "not enough memory for a block of %" PRIu64
               " bytes in each of %u threads: use a smaller "
               "--block-bytes, or fewer threads",
               job->block_bytes, job->threads);
    return EXIT_RESOURCE;
}

int naive_open(struct thread *thread)
{
    struct disk_job *job = disk_job_of(thread);
    struct naive *naive = calloc(1, sizeof *naive);
    if (!naive)
        return lacks_memory(job);
    naive->job = job;
    naive->calls = calls_named(run_choice(thread->run, "calls"));
    naive->in.fd = naive->out.fd = -1;
    naive->first = thread->index * job->region_blocks;
    thread->state = naive;
    void *buffer = NULL;
    int failure = posix_memalign(&buffer, ALIGNMENT, job->block_bytes) ? lacks_memory(job)
                                                                       : open_channels(naive);
    naive->buffer = buffer;
    if (failure)
        naive_close(thread);
    else if (job->reads)
        memset(buffer, 1, job->block_bytes); /* its pages are there; reads bring the rest */
    else
        content_fill(job, buffer, naive->first, 0);
    return failure;
}

void naive_close(struct thread *thread)
{
    struct naive *naive = thread->state;
    channel_close(&naive->in);
    channel_close(&naive->out);
    free(naive->buffer);
    free(naive);
}

/* ---- one block ------------------------------------------------------------------------------ */

/* `placed`: the calls stand there already, for it is the one behind the block before. */
static uint64_t choose_block(struct naive *naive, bool *placed)
{
    const struct disk_job *job = naive->job;
    *placed = job->sequential && naive->next > 0;
    if (!job->sequential)
        return naive->first + (uint64_t)rand() % job->region_blocks;
    uint64_t block = naive->first + naive->next;
    naive->next = (naive->next + 1) % job->region_blocks;
    return block;
}

static int place(struct naive *naive, struct channel *channel, uint64_t offset)
{
    if (naive->calls->seek(channel, offset))
        return EXIT_OK;
    return io_error_of(naive->job->run, "seeking", errno);
}

static int transfer(struct naive *naive, enum op op, uint64_t offset)
{
    size_t bytes = naive->job->block_bytes;
    size_t done = op == OP_READ ? naive->calls->read(&naive->in, naive->buffer, bytes)
                                : naive->calls->write(&naive->out, naive->buffer, bytes);
    if (done == bytes)
        return EXIT_OK;
    return io_error(naive->job->run, op, errno, offset, bytes, (ssize_t)done);
}

static int read_block(struct naive *naive, uint64_t offset, bool placed)
{
    int failure = placed ? EXIT_OK : place(naive, &naive->in, offset);
    return failure ? failure : transfer(naive, OP_READ, offset);
}

/* A few bytes of every page are new each time, or a device could find them twice; that is also where
 * the write budget is kept. */
static int write_block(struct thread *thread, uint64_t offset, bool placed)
{
    struct naive *naive = thread->state;
    int failure = content_next(thread, naive->buffer, naive->last);
    if (!failure && !placed)
        failure = place(naive, &naive->out, offset);
    return failure ? failure : transfer(naive, OP_WRITE, offset);
}

static int move_block(struct thread *thread)
{
    struct naive *naive = thread->state;
    const struct disk_job *job = naive->job;
    bool placed;
    naive->last = choose_block(naive, &placed);
    uint64_t offset = naive->last * job->block_bytes;
    int failure = job->reads ? read_block(naive, offset, placed) : EXIT_OK;
    if (!failure && job->writes)
        failure = write_block(thread, offset, placed);
    return failure;
}

/* ---- the loop ------------------------------------------------------------------------------- */

/* The time of day. */
static double reports_clock_s(const struct thread *thread)
{
    return (double)run_wall_us(thread->run) * 1e-6;
}

static uint64_t next_batch(const struct disk_job *job, uint64_t batch, double taken_s)
{
    if (taken_s > BATCH_MOST_S && batch > 1)
        return batch / 2;
    bool small = 2 * batch * job->block_bytes <= BATCH_BYTES;
    return small && taken_s < BATCH_LEAST_S ? 2 * batch : batch;
}

/* No more than is left to do. */
static uint64_t bounded(const struct thread *thread, uint64_t begun, uint64_t batch)
{
    while (batch > 1 && run_loop_over(thread, begun + batch - 1, 0))
        batch /= 2;
    return batch;
}

static int move_batch(struct thread *thread, uint64_t batch, uint64_t *begun)
{
    int failure = EXIT_OK;
    for (uint64_t i = 0; i < batch && !failure && !run_stopping(thread->run); i++) {
        failure = move_block(thread);
        *begun += !failure;
    }
    return failure;
}

static int move_blocks(struct thread *thread, uint64_t *begun)
{
    const struct disk_job *job = disk_job_of(thread);
    struct disk_thread *own = &job->own[thread->index];
    uint64_t batch = 1;
    double at_s = now_s();
    int failure = EXIT_OK;
    while (!failure && !run_loop_over(thread, *begun, at_s)) {
        double before_s = at_s;
        batch = bounded(thread, *begun, batch);
        failure = move_batch(thread, batch, begun);
        atomic_store_explicit(&own->moved, *begun * job->block_bytes, memory_order_relaxed);
        at_s = now_s();
        batch = next_batch(job, batch, at_s - before_s);
    }
    return failure;
}

static int flush(struct naive *naive)
{
    if (!naive->job->writes || channel_flush(&naive->out))
        return EXIT_OK;
    return io_error_of(naive->job->run, "fflush", errno);
}

static double rate_of(double bytes, double start_s, double end_s)
{
    return end_s > start_s ? bytes / (end_s - start_s) : NAN;
}

static void note(struct thread *thread, const struct naive_region *region)
{
    const struct disk_job *job = disk_job_of(thread);
    double bytes = (double)region->blocks * (double)job->block_bytes;
    job->own[thread->index].region = *region;
    run_bulk_done(thread, region->blocks * job->block_bytes,
                  rate_of(bytes, region->start_s, region->end_s));
}

/* The clock is stopped before the library's buffer is flushed, let alone the kernel's. */
int naive_loop(struct thread *thread)
{
    struct naive *naive = thread->state;
    struct naive_region region = {.content = naive->buffer};
    naive->next = 0;
    atomic_store(&naive->job->own[thread->index].moved, 0);
    region.start_s = reports_clock_s(thread);
    int failure = move_blocks(thread, &region.blocks);
    region.end_s = reports_clock_s(thread);
    region.last = naive->last;
    if (run_loop_timed(thread))
        note(thread, &region);
    return failure ? failure : flush(naive);
}

uint64_t naive_moved(const struct thread *thread, double *at_s)
{
    const struct disk_job *job = disk_job_of(thread);
    *at_s = now_s();
    return atomic_load_explicit(&job->own[thread->index].moved, memory_order_relaxed);
}

int naive_prepare(struct thread *thread)
{
    if (thread->index == 0)
        evidence_begin(disk_job_of(thread));
    return EXIT_OK;
}

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
    double blocks = disk_job_naive_blocks(job), taken_s = elapsed_s(job);
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
    disk_job_report_sample(job, blocks);
    evidence_report(job);
    file_conclude(job);
}
