#define _GNU_SOURCE
#include "file.h"

#include "content.h"
#include "io_error.h"
#include "monotonic.h"
#include "residency.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    PAGE = 4096,
    PIECE_BYTES = 4 << 20,
    SPACE_CHECKED_BYTES = 64 << 20,
    FILLERS_MAX = 8,  /* no disk needs more at once, and each takes a piece of memory */
    BLOCK_UNIT = 512, /* of st_blocks, everywhere */
    DROPS_MAX = 5,
};

static const double ENOUGH_BLOCKS = 0.98;
static const double LITTLE_CACHED = 0.01;
/* Lists of blocks of 4 bytes each where blocks have 1024, and something for short files. */
static const double NOTES_SHARE = 0.005, NOTES_BYTES = 1 << 20;

static uint64_t used_bytes(const struct disk_job *job)
{
    return job->blocks * job->block_bytes;
}

static uint64_t rounded_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* ---- what is missing ------------------------------------------------------------------------ */

/* Of the bytes that an earlier trial has left, those that this one can use. Who only writes needs
 * them to be there; who reads must find what it would have written. */
static uint64_t usable_bytes(const struct disk_job *job, const struct marker *found, bool touched)
{
    bool headers = found->verify && found->block_bytes == job->block_bytes && !touched;
    if (job->reads && found->compressible != job->compressible)
        return 0;
    if (job->reads && job->verify && !headers)
        return 0;
    return found->filled_bytes;
}

static int new_file_id(struct run *run, uint64_t *id)
{
    if (getrandom(id, sizeof *id, 0) == sizeof *id)
        return EXIT_OK;
    run_reason(run, "the kernel gives no random numbers: %s", strerror(errno));
    return EXIT_RESOURCE;
}

/* What the file holds once it is filled. */
static struct marker content_after_fill(const struct disk_job *job, const struct marker *found)
{
    bool whole = job->fill.from == 0;
    struct marker content = {
        .filled_bytes = job->fill.to,
        .compressible = job->compressible,
        .verify = job->verify,
        .block_bytes = job->block_bytes,
        .file_id = job->file_id,
    };
    if (whole)
        return content;
    if (found->filled_bytes > content.filled_bytes)
        content.filled_bytes = found->filled_bytes;
    if (found->compressible != job->compressible)
        content.compressible = NAN;
    content.verify = found->verify && job->verify && found->block_bytes == job->block_bytes &&
                     found->file_id == job->file_id;
    return content;
}

static int find_missing(struct disk_job *job)
{
    struct fill *fill = &job->fill;
    struct marker found = {0};
    bool touched, marked = marker_read(job->scratch.fd, &found, &touched);
    uint64_t usable = marked ? usable_bytes(job, &found, touched) : 0;
    uint64_t unit = job->alignment > PAGE ? job->alignment : PAGE;
    fill->to = rounded_up(used_bytes(job), unit);
    fill->from = usable < fill->to ? usable / unit * unit : fill->to;
    job->file_id = found.file_id;
    int failure = usable == 0 ? new_file_id(job->run, &job->file_id) : EXIT_OK;
    fill->content = content_after_fill(job, &found);
    if (fill->from == fill->to && found.filled_bytes)
        fill->content = found;
    return failure;
}

/* ---- before filling ------------------------------------------------------------------------- */

/* Bytes that the file system has still to give. */
static double unallocated_bytes(const struct disk_job *job)
{
    struct stat status;
    if (job->fill.from == job->fill.to || fstat(job->scratch.fd, &status))
        return 0;
    return fmax(0, (double)job->fill.to - (double)status.st_blocks * BLOCK_UNIT);
}

/* Whether there is no room for it, or no device. Otherwise the file system, or a filter of system
 * calls, does not offer to set space aside, and the writes will tell. */
static bool is_refusal(int error)
{
    static const int refusals[] = {ENOSPC, EDQUOT, EFBIG, EIO, EROFS};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (error == refusals[i])
            return true;
    return false;
}

/* In one piece, if that can be done; the writes have to follow all the same. */
static int allocate(struct disk_job *job)
{
    struct fill *fill = &job->fill;
    off_t bytes = (off_t)(fill->to - fill->from);
    fill->allocated = fallocate(job->scratch.fd, 0, (off_t)fill->from, bytes) == 0;
    if (fill->allocated || !is_refusal(errno))
        return EXIT_OK;
    return io_error(job->run, OP_WRITE, errno, fill->from, (size_t)bytes, 0);
}

/* Directly where that can be done: nothing to write back or to drop afterwards, and the disk's own
 * pace. */
static int open_for_fill(struct disk_job *job)
{
    uint64_t alignment = scratch_alignment(&job->scratch);
    bool direct = alignment > 0 && job->fill.to % alignment == 0;
    job->fill.fd = scratch_reopen(&job->scratch, direct ? O_DIRECT : 0);
    return job->fill.fd < 0 ? io_error_of(job->run, "opening", errno) : EXIT_OK;
}

int file_plan(struct disk_job *job)
{
    int failure = find_missing(job);
    return failure ? failure : scratch_space(job->run, &job->scratch, unallocated_bytes(job));
}

int file_set_aside(struct disk_job *job)
{
    const struct fill *fill = &job->fill;
    if (fill->from < fill->to || job->writes)
        marker_forget(job->scratch.fd);
    if (fill->from == fill->to)
        return EXIT_OK;
    int failure = allocate(job);
    return failure ? failure : open_for_fill(job);
}

/* ---- filling -------------------------------------------------------------------------------- */

static int write_piece(struct disk_job *job, const char *buffer, uint64_t offset, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t written = pwrite(job->fill.fd, buffer + done, bytes - done, (off_t)(offset + done));
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return io_error(job->run, OP_WRITE, written < 0 ? errno : 0, offset + done,
                            bytes - done, written);
        done += (size_t)written;
    }
    return EXIT_OK;
}

/* Others write to the same file system meanwhile. What it notes down of the file itself may come out
 * of the reserve. */
static int check_space(struct disk_job *job, uint64_t taken)
{
    const struct fill *fill = &job->fill;
    if (taken % SPACE_CHECKED_BYTES)
        return EXIT_OK;
    uint64_t all = fill->to - fill->from;
    double missing = fill->allocated ? 0 : (double)(all - taken);
    return scratch_space(job->run, &job->scratch,
                         missing - NOTES_BYTES - NOTES_SHARE * (double)all);
}

static int fill_pieces(struct disk_job *job, char *buffer)
{
    struct fill *fill = &job->fill;
    for (;;) {
        uint64_t taken = atomic_fetch_add(&fill->taken, PIECE_BYTES);
        if (taken >= fill->to - fill->from || run_stopping(job->run))
            return EXIT_OK;
        uint64_t offset = fill->from + taken, left = fill->to - offset;
        size_t bytes = left < PIECE_BYTES ? left : PIECE_BYTES;
        content_fill_range(job, buffer, offset, bytes);
        int failure = check_space(job, taken);
        if (!failure)
            failure = write_piece(job, buffer, offset, bytes);
        if (failure)
            return failure;
    }
}

static int fill_by(struct thread *thread)
{
    struct disk_job *job = disk_job_of(thread);
    if (job->fill.from == job->fill.to || thread->index >= FILLERS_MAX)
        return EXIT_OK;
    char *buffer = aligned_alloc(PAGE, PIECE_BYTES);
    if (!buffer) {
        run_reason(job->run, "no memory to fill the scratch file with: use fewer threads");
        return EXIT_RESOURCE;
    }
    int failure = fill_pieces(job, buffer);
    free(buffer);
    return failure;
}

/* ---- after filling -------------------------------------------------------------------------- */

/* Holes and compressed blocks are read from memory, faster than any disk. */
static int check_blocks(const struct disk_job *job)
{
    struct stat status;
    if (fstat(job->scratch.fd, &status))
        return io_error_of(job->run, "looking at the size", errno);
    double held = (double)status.st_blocks * BLOCK_UNIT;
    double expected = (1 - job->compressible) * (double)job->fill.to;
    if (held >= ENOUGH_BLOCKS * expected)
        return EXIT_OK;
    run_reason(job->run,
               "the file system holds %" PRIu64 " bytes of data in %.0f: it compresses or shares "
               "them, and the disk would not be measured: set HOSTBENCH_SCRATCH to a directory "
               "where it does not",
               job->fill.to, held);
    return EXIT_FAILED;
}

static int sync_file(const struct disk_job *job)
{
    return fsync(job->scratch.fd) ? io_error_of(job->run, "fsync", errno) : EXIT_OK;
}

/* Pages that are just being read or written stay, so it is tried again; one that somebody has locked
 * stays for good, and the evidence will tell. */
static void drop(const struct disk_job *job)
{
    const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
    for (int i = 0; i < DROPS_MAX; i++) {
        if (i > 0)
            nanosleep(&pause, NULL);
        posix_fadvise(job->scratch.fd, 0, 0, POSIX_FADV_DONTNEED);
        if (!(file_cached_ratio(job) > LITTLE_CACHED))
            return;
    }
}

static int end_of_fill(struct disk_job *job)
{
    struct fill *fill = &job->fill;
    if (fill->from < fill->to) {
        int failure = sync_file(job);
        if (!failure)
            failure = check_blocks(job);
        if (failure)
            return failure;
        fill->taken_s = now_s() - fill->start_s;
        close(fill->fd);
        fill->fd = -1;
        if (!job->writes)
            marker_store(job->scratch.fd, &fill->content);
    }
    drop(job);
    return EXIT_OK;
}

int file_fill(struct thread *thread)
{
    struct disk_job *job = disk_job_of(thread);
    if (thread->index == 0)
        job->fill.start_s = now_s();
    int failure = fill_by(thread);
    if (failure || !run_meet(thread) || thread->index > 0)
        return failure;
    return end_of_fill(job);
}

/* ---- around the timed region ---------------------------------------------------------------- */

int file_settle(struct thread *thread)
{
    struct disk_job *job = disk_job_of(thread);
    if (!run_meet(thread) || thread->index > 0)
        return EXIT_OK;
    int failure = job->writes ? sync_file(job) : EXIT_OK;
    if (failure)
        return failure;
    drop(job);
    evidence_begin(job);
    return EXIT_OK;
}

int file_sync(struct thread *thread)
{
    struct disk_job *job = disk_job_of(thread);
    if (!job->fsync_end)
        return EXIT_OK;
    double start_s = now_s();
    if (fdatasync(job->fd))
        return io_error_of(job->run, "fdatasync", errno);
    job->own[thread->index].sync_s = now_s() - start_s;
    return EXIT_OK;
}

/* What was written here is of this job's kind, and of another than the rest where the fill was. */
void file_conclude(struct disk_job *job)
{
    struct marker content = job->fill.content;
    if (!job->writes)
        return;
    if (content.compressible != job->compressible)
        content.compressible = NAN;
    content.verify = content.verify && job->verify && content.block_bytes == job->block_bytes &&
                     content.file_id == job->file_id;
    marker_store(job->scratch.fd, &content);
}

double file_cached_ratio(const struct disk_job *job)
{
    return residency(job->scratch.fd, used_bytes(job));
}
