#define _GNU_SOURCE
#include "readback.h"

#include "content.h"
#include "engine.h"
#include "file.h"
#include "io_error.h"
#include "job.h"
#include "monotonic.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Every so many-th block in one pass, so that what there is no time for lies all over the file. */
enum { PASSES = 61 };

static const double LEAST_S = 1;

static size_t memory_bytes(const struct disk_job *job)
{
    return job->blocks * sizeof *job->written;
}

/* Zeros: only the pages that something is noted in take memory. */
int readback_open(struct disk_job *job)
{
    job->written = NULL;
    if (!job->verify || !job->writes)
        return EXIT_OK;
    void *memory = mmap(NULL, memory_bytes(job), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        run_reason(job->run,
                   "not enough memory to note %zu bytes of what is written where: use a smaller "
                   "--file-bytes, larger --block-bytes, or --verify off",
                   memory_bytes(job));
        return EXIT_RESOURCE;
    }
    job->written = memory;
    return EXIT_OK;
}

void readback_close(struct disk_job *job)
{
    if (job->written)
        munmap(job->written, memory_bytes(job));
}

/* The whole block at `index`, or an exit_code. */
static int read_block(const struct disk_job *job, char *buffer, uint64_t index)
{
    uint64_t offset = index * job->block_bytes, done = 0;
    while (done < job->block_bytes) {
        ssize_t got =
            pread(job->fd, buffer + done, job->block_bytes - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return io_error(job->run, OP_READ, got < 0 ? errno : 0, offset + done,
                            job->block_bytes - done, 0);
        done += (uint64_t)got;
    }
    return EXIT_OK;
}

static int read_back(struct thread *thread, char *buffer)
{
    const struct disk_job *job = disk_job_of(thread);
    double until_s = now_s() + fmax(run_loop_elapsed_s(job->run), LEAST_S);
    for (uint64_t pass = 0; pass < PASSES; pass++)
        for (uint64_t index = pass; index < job->blocks; index += PASSES) {
            if (!job->written[index])
                continue;
            int failure = read_block(job, buffer, index);
            if (!failure)
                failure = content_check(thread, buffer, index);
            if (failure || run_stopping(job->run) || now_s() >= until_s)
                return failure;
        }
    return EXIT_OK;
}

int readback_verify(struct thread *thread)
{
    struct disk_job *job = disk_job_of(thread);
    if (!job->written || thread->index > 0)
        return EXIT_OK;
    int failure = file_to_disk(job);
    if (failure)
        return failure;
    void *buffer;
    if (posix_memalign(&buffer, engine_alignment(job), job->block_bytes)) {
        run_reason(job->run, "not enough memory for a block of %" PRIu64 " bytes: use smaller ones",
                   job->block_bytes);
        return EXIT_RESOURCE;
    }
    failure = read_back(thread, buffer);
    free(buffer);
    return failure;
}
