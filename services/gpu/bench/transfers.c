/* host_to_device, device_to_host, and both at once. */
#include "transfers.h"

#include "arrays.h"
#include "contents.h"
#include "nearness.h"
#include "windows.h"

#include <stdlib.h>
#include <string.h>

enum {
    COPIES_MOST = 4096, /* of a piece: small ones take microseconds */
    SEED = 0x27d4eb2f, /* one more for each direction, so that neither has what the other one has */
};

/* One direction. */
struct way {
    enum gpu_copy_kind kind;
    struct gpu_queue *queue;
    struct gpu_memory *device;
    struct gpu_host_memory *host;
    uint32_t seed;
    uint64_t checked; /* pieces of work that were done when it was last looked at */
};

struct transfers {
    uint64_t bytes; /* of one copy */
    bool pinned;
    struct way ways[WINDOWS_LANES_MAX];
    unsigned count;
    struct gpu_queue *second; /* of the second direction */
};

static struct transfers *transfers_of(const struct gpu_job *job)
{
    return job->own;
}

static const struct transfer_kind *kind_of(const struct gpu_job *job)
{
    return (const struct transfer_kind *)job->kind;
}

/* ---- copies --------------------------------------------------------------------------------- */

static int enqueue(struct gpu_job *job, unsigned lane, uint64_t copies, struct gpu_event *begin,
                   struct gpu_event *end)
{
    const struct transfers *transfers = transfers_of(job);
    const struct way *way = &transfers->ways[lane];
    const struct gpu_copy copy = {.kind = way->kind,
                                  .to = way->device,
                                  .from = way->device,
                                  .host = way->host->at,
                                  .bytes = transfers->bytes};
    int failure = EXIT_OK;
    for (uint64_t i = 0; i < copies && !failure; i++)
        failure = job->backend->copy(way->queue, &copy, i == 0 ? begin : NULL,
                                     i + 1 == copies ? end : NULL);
    /* The driver copies pageable memory in the call itself, by way of pinned memory of its own; only
     * the last part may still be under way. */
    if (!failure && job->work.by_host_clock)
        failure = job->backend->finish(way->queue);
    return failure;
}

/* ---- what has arrived ----------------------------------------------------------------------- */

/* So that what a phase leaves was copied in that phase. */
static int scrub(struct gpu_job *job, const struct way *way)
{
    uint64_t bytes = transfers_of(job)->bytes;
    if (way->kind == GPU_HOST_TO_DEVICE)
        return job->backend->fill(way->queue, way->device, 0, bytes, CONTENTS_SCRUBBED);
    memset(way->host->at, CONTENTS_SCRUBBED & 0xff, bytes);
    return EXIT_OK;
}

static int compare(struct gpu_job *job, const struct way *way)
{
    uint64_t bytes = transfers_of(job)->bytes, count = bytes / CONTENTS_WORD_BYTES;
    const uint32_t *words = way->host->at;
    if (way->kind == GPU_HOST_TO_DEVICE)
        return arrays_check(job, way->queue, way->device, 0, bytes, way->seed,
                            "what arrived on the device");
    uint64_t wrong = contents_wrong(words, 0, count, way->seed);
    if (wrong == count)
        return EXIT_OK;
    return arrays_wrong(job, "what arrived on the host", wrong, words[wrong],
                        contents_word(way->seed, wrong));
}

/* A phase may be so short that nothing was copied in this direction. */
static int check(struct gpu_job *job, unsigned lane)
{
    struct way *way = &transfers_of(job)->ways[lane];
    uint64_t pieces = windows_pieces(job, lane);
    if (pieces == way->checked)
        return EXIT_OK;
    way->checked = pieces;
    return compare(job, way);
}

static int scrub_all(struct gpu_job *job)
{
    const struct transfers *transfers = transfers_of(job);
    int failure = EXIT_OK;
    for (unsigned i = 0; i < transfers->count && !failure; i++) {
        failure = scrub(job, &transfers->ways[i]);
        if (!failure)
            failure = gpu_drain(transfers->ways[i].queue);
    }
    return failure;
}

static int verify(struct gpu_job *job)
{
    const struct transfers *transfers = transfers_of(job);
    int failure = EXIT_OK;
    for (unsigned i = 0; i < transfers->count && !failure && !run_stopping(job->run); i++)
        failure = check(job, i);
    return failure || run_stopping(job->run) ? failure : scrub_all(job);
}

static void finish(struct gpu_job *job)
{
    const struct windows_figures *figures = &job->figures;
    if (transfers_of(job)->count < 2)
        return;
    run_metric(job->run, "host_to_device_bytes_per_second", figures->lane_rates[0]);
    run_metric(job->run, "device_to_host_bytes_per_second", figures->lane_rates[1]);
}

/* ---- beginning and end ---------------------------------------------------------------------- */

static int fill_source(struct gpu_job *job, const struct way *way)
{
    uint64_t bytes = transfers_of(job)->bytes;
    if (way->kind == GPU_DEVICE_TO_HOST)
        return arrays_fill(job, way->queue, way->device, way->seed);
    contents_fill(way->host->at, 0, bytes / CONTENTS_WORD_BYTES, way->seed);
    return EXIT_OK;
}

static int open_way(struct gpu_job *job, enum gpu_copy_kind kind, struct gpu_queue *queue)
{
    struct transfers *transfers = transfers_of(job);
    struct way *way = &transfers->ways[transfers->count++];
    *way = (struct way){.kind = kind, .queue = queue, .seed = SEED + transfers->count};
    int failure = job->backend->memory(&job->gpu, transfers->bytes, &way->device);
    if (!failure)
        failure =
            job->backend->host_memory(&job->gpu, transfers->bytes, transfers->pinned, &way->host);
    return failure ? failure : fill_source(job, way);
}

static int open_ways(struct gpu_job *job)
{
    struct transfers *transfers = transfers_of(job);
    const struct transfer_kind *kind = kind_of(job);
    struct gpu_queue *queue = job->queue;
    int failure = EXIT_OK;
    if (kind->to_device)
        failure = open_way(job, GPU_HOST_TO_DEVICE, queue);
    if (!failure && kind->to_device && kind->to_host) {
        failure = job->backend->queue(&job->gpu, &transfers->second);
        queue = transfers->second;
    }
    if (!failure && kind->to_host)
        failure = open_way(job, GPU_DEVICE_TO_HOST, queue);
    return failure ? failure : scrub_all(job);
}

static int settle(struct gpu_job *job)
{
    const struct transfer_kind *kind = kind_of(job);
    unsigned arrays = kind->to_device && kind->to_host ? 2 : 1;
    const struct arrays_demand demand = {
        .arrays = arrays,
        .host_arrays = arrays,
        .granule = CONTENTS_WORD_BYTES,
        .granule_name = "a word",
        .wanted_bytes = ARRAYS_BYTES_LEAST,
    };
    return arrays_settle(job, &demand, &transfers_of(job)->bytes);
}

static const char *unsupported(const struct run *run, const struct gpu_device *device)
{
    const struct gpu_kind *kind = run_own(run);
    (void)device;
    if (kind != &transfer_bidirectional.kind || !strcmp(run_choice(run, "host_memory"), "pinned"))
        return NULL;
    return "host_memory pageable: the driver copies pageable memory in the call itself, one "
           "direction after the other; use host_memory pinned";
}

static int open_transfers(struct gpu_job *job)
{
    struct transfers *transfers = transfers_of(job);
    transfers->pinned = !strcmp(run_choice(job->run, "host_memory"), "pinned");
    int failure = settle(job);
    if (!failure)
        failure = open_ways(job);
    nearness_report(job);
    run_fact(job->run, "timed_by",
             transfers->pinned ? "events of the device" : "clock of the host");
    job->work = (struct windows_work){
        .lanes = transfers->count,
        .enqueue = enqueue,
        .by_host_clock = !transfers->pinned,
        .work_per_size = (double)transfers->bytes,
        .size_min = 1,
        .size_max = COPIES_MOST,
    };
    return failure;
}

static void close_transfers(struct gpu_job *job)
{
    struct transfers *transfers = transfers_of(job);
    for (unsigned i = 0; i < transfers->count; i++) {
        job->backend->release_memory(transfers->ways[i].device);
        job->backend->release_host_memory(transfers->ways[i].host);
    }
    job->backend->release_queue(transfers->second);
}

#define KIND(word)                                                                                 \
    {.name = (word),                                                                               \
     .own_bytes = sizeof(struct transfers),                                                        \
     .unsupported = unsupported,                                                                   \
     .open = open_transfers,                                                                       \
     .close = close_transfers,                                                                     \
     .verify = verify,                                                                             \
     .finish = finish}

const struct transfer_kind transfer_host_to_device = {KIND("host_to_device"), .to_device = true};
const struct transfer_kind transfer_device_to_host = {KIND("device_to_host"), .to_host = true};
const struct transfer_kind transfer_bidirectional = {KIND("bidirectional"), .to_device = true,
                                                     .to_host = true};
