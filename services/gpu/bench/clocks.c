#include "clocks.h"

#include "job.h"
#include "kernel_set.h"
#include "statistics.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum {
    SLOTS = 8192, /* of 7 ms each: a minute */
    HALF = SLOTS / 2,
    BYTES = SLOTS * sizeof(struct kernel_record),
};

/* The device's nanoseconds may go by as many as a thousand at a time: an error of 1 % and less. */
static const uint64_t SHORTEST_NS = 200000;

struct clocks {
    struct gpu_memory *memory;
    uint64_t launches, first_timed;
    double hertz;
    bool each_records;
};

int clocks_open(struct gpu_job *job, bool each_records)
{
    job->clocks = calloc(1, sizeof *job->clocks);
    if (!job->clocks) {
        run_reason(job->run, "not enough memory for the records of clocks");
        return EXIT_RESOURCE;
    }
    job->clocks->hertz = NAN;
    job->clocks->each_records = each_records;
    return job->backend->memory(&job->gpu, BYTES, &job->clocks->memory);
}

void clocks_close(struct gpu_job *job)
{
    if (!job->clocks)
        return;
    job->backend->release_memory(job->clocks->memory);
    free(job->clocks);
    job->clocks = NULL;
}

const struct gpu_memory *clocks_memory(const struct gpu_job *job)
{
    return job->clocks->memory;
}

int clocks_next(struct gpu_job *job, uint32_t *slot)
{
    struct clocks *clocks = job->clocks;
    *slot = (uint32_t)(clocks->launches++ % SLOTS);
    /* Half at a time, so that the other half always holds the last half minute. */
    if (*slot % HALF)
        return EXIT_OK;
    return job->backend->fill(job->queue, clocks->memory, *slot * sizeof(struct kernel_record),
                              BYTES / 2, 0);
}

void clocks_begin(struct gpu_job *job)
{
    if (!job->clocks)
        return;
    job->clocks->first_timed = job->clocks->launches;
    job->clocks->hertz = NAN;
}

static double median_of(const struct clocks *clocks, const struct kernel_record *records)
{
    double *hertz = calloc(SLOTS, sizeof *hertz);
    size_t count = 0;
    if (!hertz)
        return NAN;
    /* Slots that were made empty for launches to come read as nothing. */
    for (uint64_t launch = clocks->first_timed; launch < clocks->launches && count < SLOTS;
         launch++) {
        uint64_t cycles, nanoseconds;
        if (launch + SLOTS < clocks->launches)
            continue;
        if (kernel_record_read(&records[launch % SLOTS], &cycles, &nanoseconds) &&
            nanoseconds >= SHORTEST_NS)
            hertz[count++] = (double)cycles / (double)nanoseconds * 1e9;
    }
    double found = count ? median(hertz, count) : NAN;
    free(hertz);
    return found;
}

/* What kernels leave is the same from launch to launch, so only the records show that each of them has
 * run. Slots are emptied half at a time, ahead of the launches that use them. */
static bool all_have_run(const struct clocks *clocks, const struct kernel_record *records,
                         uint64_t *missing)
{
    uint64_t half_begun = (clocks->launches - 1) / HALF * HALF;
    uint64_t first = half_begun > HALF ? half_begun - HALF : 0;
    uint64_t launch = first > clocks->first_timed ? first : clocks->first_timed;
    *missing = 0;
    for (; launch < clocks->launches; launch++) {
        const struct kernel_record *record = &records[launch % SLOTS];
        *missing += record->not_cycles_begin == 0 || record->ns_end == 0;
    }
    return *missing == 0;
}

static int check(struct gpu_job *job, const struct kernel_record *records)
{
    uint64_t missing;
    bool has_clocks = job->gpu.device.cc_major > 0; /* OpenCL's kernels have none */
    if (!has_clocks || !job->clocks->each_records || all_have_run(job->clocks, records, &missing))
        return EXIT_OK;
    run_reason(job->run,
               "%s: %" PRIu64
               " launches of the kernel were reported done and have left no record: this device or "
               "its driver does not work correctly; do not trust its figures",
               job->gpu.device.name, missing);
    return EXIT_WRONG;
}

int clocks_end(struct gpu_job *job)
{
    struct clocks *clocks = job->clocks;
    if (!clocks || clocks->launches == clocks->first_timed)
        return EXIT_OK;
    struct kernel_record *records = malloc(BYTES);
    if (!records) {
        run_reason(job->run, "not enough memory to read the records of clocks");
        return EXIT_RESOURCE;
    }
    int failure = gpu_download(job->queue, clocks->memory, 0, records, BYTES);
    if (!failure)
        failure = check(job, records);
    if (!failure)
        clocks->hertz = median_of(clocks, records);
    free(records);
    return failure;
}

double clocks_hertz(const struct gpu_job *job)
{
    return job->clocks ? job->clocks->hertz : NAN;
}
