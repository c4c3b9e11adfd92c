#define _GNU_SOURCE
#include "file.h"

#include "content.h"
#include "evidence.h"
#include "io_error.h"
#include "job.h"
#include "load.h"
#include "monotonic.h"

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
    ALLOCATED_BYTES = 1 << 30,
    WRITE_BYTES = 1 << 20,      /* so soon a signal is obeyed, on a slow disk, too */
    WRITE_BACK_BYTES = 8 << 20, /* the same of a sync */
    SPACE_CHECKED_BYTES = 64 << 20,
    FILLERS_MAX = 8,  /* no disk needs more at once, and each takes a piece of memory */
    BLOCK_UNIT = 512, /* of st_blocks, everywhere */
    DROPS_MAX = 5,
};

static const double ENOUGH_BLOCKS = 0.98;
static const double LITTLE_CACHED = 0.01;
/* Lists of blocks of 4 bytes each where blocks have 1024, and something for short files. */
static const double NOTES_SHARE = 0.005, NOTES_BYTES = 1 << 20;

static uint64_t rounded_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* Holes and compressed blocks are read from memory, faster than any disk. */
static bool has_blocks(const struct stat *status, double expected_bytes)
{
    return (double)status->st_blocks * BLOCK_UNIT >= ENOUGH_BLOCKS * expected_bytes;
}

/* ---- what is missing ------------------------------------------------------------------------ */

/* Of the bytes that an earlier trial has left, those that this one can use. Who only writes needs
 * them to be there; who reads must find what it would have written. */
static uint64_t usable_bytes(const struct disk_job *job, const struct marker *found)
{
    bool headers = found->verify && found->block_bytes == job->block_bytes;
    if (job->naive) /* out of the page cache, whatever it is */
        return found->filled_bytes;
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

/* Whether the file still holds what was noted: it was neither cut off nor given holes. */
static bool is_whole(const struct disk_job *job, const struct marker *found)
{
    struct stat status;
    if (fstat(job->scratch.fd, &status) || (uint64_t)status.st_size < found->filled_bytes)
        return false;
    double stored = isnan(found->compressible) ? 0 : 1 - found->compressible;
    return has_blocks(&status, stored * (double)found->filled_bytes);
}

/* All zeros: nothing that can be used. What somebody else has written may compress as it likes. */
static struct marker find_content(const struct disk_job *job)
{
    struct marker found = {0};
    bool touched;
    if (!marker_read(job->scratch.fd, &found, &touched) || !is_whole(job, &found))
        return (struct marker){0};
    if (touched) {
        found.compressible = NAN;
        found.verify = false;
    }
    return found;
}

static int find_missing(struct disk_job *job)
{
    struct fill *fill = &job->fill;
    const struct marker found = find_content(job);
    uint64_t usable = usable_bytes(job, &found);
    uint64_t unit = job->alignment > PAGE ? job->alignment : PAGE;
    fill->to = rounded_up(disk_job_covered_bytes(job), unit);
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
    if (fstat(job->scratch.fd, &status))
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

/* In large pieces, so that a signal is seen; the writes have to follow all the same. */
static int allocate(struct disk_job *job)
{
    struct fill *fill = &job->fill;
    for (uint64_t at = fill->from; at < fill->to && !run_stopping(job->run);) {
        uint64_t left = fill->to - at, bytes = left < ALLOCATED_BYTES ? left : ALLOCATED_BYTES;
        if (fallocate(job->scratch.fd, 0, (off_t)at, (off_t)bytes) == 0)
            at += bytes;
        else if (is_refusal(errno))
            return io_error(job->run, OP_WRITE, errno, at, (size_t)bytes, 0);
        else if (errno != EINTR)
            return EXIT_OK;
    }
    fill->allocated = true;
    return EXIT_OK;
}

/* Directly where that can be done: nothing to write back or to drop afterwards, and the disk's own
 * pace. A naive workload finds the file as it is when it was just made: in the page cache. */
static int open_for_fill(struct disk_job *job)
{
    uint64_t alignment = scratch_alignment(&job->scratch);
    bool aligned =
        alignment > 0 && job->fill.from % alignment == 0 && job->fill.to % alignment == 0;
    bool direct = aligned && !job->naive;
    job->fill.fd = scratch_reopen(&job->scratch, direct ? O_DIRECT : 0);
    return job->fill.fd < 0 ? io_error_of(job->run, "opening", errno) : EXIT_OK;
}

int file_plan(struct disk_job *job)
{
    int failure = find_missing(job);
    if (failure || job->fill.from == job->fill.to)
        return failure;
    return scratch_space(job->run, &job->scratch, unallocated_bytes(job));
}

int file_prepare(struct disk_job *job)
{
    const struct fill *fill = &job->fill;
    if (fill->from < fill->to || job->writes)
        marker_forget(job->scratch.fd);
    if (fill->from == fill->to)
        return EXIT_OK;
    return open_for_fill(job);
}

/* ---- filling -------------------------------------------------------------------------------- */

static int write_part(struct disk_job *job, const char *buffer, uint64_t offset, size_t bytes)
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

/* … a part at a time, as long as the run is not to stop. */
static int write_parts(struct disk_job *job, const char *buffer, uint64_t offset, size_t bytes)
{
    int failure = EXIT_OK;
    for (size_t at = 0; at < bytes && !failure && !run_stopping(job->run); at += WRITE_BYTES) {
        size_t left = bytes - at;
        failure =
            write_part(job, buffer + at, offset + at, left < WRITE_BYTES ? left : WRITE_BYTES);
    }
    return failure;
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
            failure = write_parts(job, buffer, offset, bytes);
        if (failure)
            return failure;
    }
}

static int fill_by(struct thread *thread)
{
    struct disk_job *job = disk_job_of(thread);
    if (thread->index >= FILLERS_MAX)
        return EXIT_OK;
    char *buffer = aligned_alloc(PAGE, PIECE_BYTES);
    if (!buffer) {
        run_reason(job->run, "not enough memory to fill the scratch file with: use fewer threads");
        return EXIT_RESOURCE;
    }
    int failure = fill_pieces(job, buffer);
    free(buffer);
    return failure;
}

static int fill_missing(struct thread *thread)
{
    struct disk_job *job = disk_job_of(thread);
    int failure = EXIT_OK;
    if (thread->index == 0) {
        job->fill.start_s = now_s();
        failure = allocate(job);
    }
    return failure || !run_meet(thread) ? failure : fill_by(thread);
}

/* ---- after filling -------------------------------------------------------------------------- */

static int check_blocks(const struct disk_job *job)
{
    struct stat status;
    if (fstat(job->scratch.fd, &status))
        return io_error_of(job->run, "looking at the size", errno);
    if (has_blocks(&status, (1 - job->compressible) * (double)job->fill.to))
        return EXIT_OK;
    run_reason(job->run,
               "the file system holds %" PRIu64 " bytes of data in %.0f: it compresses or shares "
               "them, and the disk would not be measured: set HOSTBENCH_SCRATCH to a directory "
               "where it does not",
               job->fill.to, (double)status.st_blocks * BLOCK_UNIT);
    return EXIT_FAILED;
}

/* Of one piece; `flags`: SYNC_FILE_RANGE_*. */
static int write_back_piece(int fd, uint64_t offset, unsigned flags)
{
    return sync_file_range(fd, (off_t)offset, WRITE_BACK_BYTES, flags);
}

/* Piece by piece, for no signal ends a sync of much; while one piece is waited for, the next is
 * written already. Where this cannot be done, the sync that follows does all of it. */
static int write_back(const struct disk_job *job, int fd)
{
    struct stat status;
    if (fstat(fd, &status))
        return io_error_of(job->run, "looking at the size", errno);
    const unsigned all =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    uint64_t bytes = (uint64_t)status.st_size;
    for (uint64_t at = 0; at < bytes && !run_stopping(job->run); at += WRITE_BACK_BYTES) {
        if (write_back_piece(fd, at + WRITE_BACK_BYTES, SYNC_FILE_RANGE_WRITE) ||
            write_back_piece(fd, at, all))
            return is_refusal(errno) ? io_error_of(job->run, "sync_file_range", errno) : EXIT_OK;
    }
    return EXIT_OK;
}

/* Nothing when the run is to stop: what has reached the disk no longer matters. */
static int sync_all(const struct disk_job *job, int fd, const char *name, int (*sync)(int))
{
    int failure = write_back(job, fd);
    if (failure || run_stopping(job->run))
        return failure;
    return sync(fd) ? io_error_of(job->run, name, errno) : EXIT_OK;
}

static int sync_file(const struct disk_job *job)
{
    return sync_all(job, job->scratch.fd, "fsync", fsync);
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
        if (!(disk_job_cached_ratio(job) > LITTLE_CACHED))
            return;
    }
}

static int end_of_fill(struct disk_job *job)
{
    struct fill *fill = &job->fill;
    int failure = sync_file(job); /* what somebody else has left dirty, too, or it stays cached */
    if (failure || run_stopping(job->run))
        return failure;
    if (fill->from < fill->to) {
        failure = check_blocks(job);
        if (failure)
            return failure;
        fill->taken_s = now_s() - fill->start_s;
        close(fill->fd);
        fill->fd = -1;
        if (!job->writes)
            marker_store(job->scratch.fd, &fill->content);
    }
    if (job->naive)
        return load_file(job);
    drop(job);
    return EXIT_OK;
}

int file_fill(struct thread *thread)
{
    struct disk_job *job = disk_job_of(thread);
    int failure = job->fill.from < job->fill.to ? fill_missing(thread) : EXIT_OK;
    if (failure || !run_meet(thread) || thread->index > 0)
        return failure;
    return end_of_fill(job);
}

/* ---- around the timed region ---------------------------------------------------------------- */

int file_flush(struct disk_job *job)
{
    return job->writes ? sync_file(job) : EXIT_OK;
}

int file_to_disk(struct disk_job *job)
{
    int failure = file_flush(job);
    if (!failure && !run_stopping(job->run))
        drop(job);
    return failure;
}

int file_settle(struct thread *thread)
{
    struct disk_job *job = disk_job_of(thread);
    if (!run_meet(thread) || thread->index > 0)
        return EXIT_OK;
    int failure = file_to_disk(job);
    if (failure || run_stopping(job->run))
        return failure;
    evidence_begin(job);
    return EXIT_OK;
}

int file_sync(struct thread *thread)
{
    struct disk_job *job = disk_job_of(thread);
    if (!job->fsync_end)
        return EXIT_OK;
    double start_s = now_s();
    int failure = sync_all(job, job->fd, "fdatasync", fdatasync);
    if (failure)
        return failure;
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
