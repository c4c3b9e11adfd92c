#define _GNU_SOURCE
#include "load.h"

#include "io_error.h"
#include "job.h"
#include "memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { PAGE = 4096, PIECE_BYTES = 1 << 20 /* so soon a signal is obeyed, on a slow disk, too */ };

static const double ALL_CACHED = 0.999;
static const double USABLE_SHARE = 0.9; /* of the memory: whatever else grows meanwhile */

/* Where the page cache does not hold it all, the end of the file: that is what was made last. */
static uint64_t load_from(const struct disk_job *job)
{
    struct memory_budget budget;
    double used = (double)disk_job_covered_bytes(job), room = used;
    if (run_memory_budget(job->run, &budget))
        room = fmin(used, USABLE_SHARE * budget.bytes);
    return (uint64_t)(used - room) / PAGE * PAGE;
}

static int read_all(const struct disk_job *job, char *buffer, uint64_t from)
{
    for (uint64_t at = from; at < disk_job_covered_bytes(job) && !run_stopping(job->run);) {
        ssize_t got = pread(job->scratch.fd, buffer, PIECE_BYTES, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return io_error(job->run, OP_READ, got < 0 ? errno : 0, at, PIECE_BYTES, got);
        at += (uint64_t)got;
    }
    return EXIT_OK;
}

/* What an earlier trial has dropped comes back into the page cache. */
int load_file(const struct disk_job *job)
{
    if (disk_job_cached_ratio(job) >= ALL_CACHED)
        return EXIT_OK;
    char *buffer = malloc(PIECE_BYTES);
    if (!buffer) {
        run_reason(job->run, "not enough memory to read the scratch file with: use fewer threads");
        return EXIT_RESOURCE;
    }
    int failure = read_all(job, buffer, load_from(job));
    free(buffer);
    return failure;
}
