#include "peers.h"

#include "arrays.h"
#include "contents.h"
#include "devices.h"
#include "windows.h"

#include <stdio.h>
#include <string.h>

enum {
    COPIES_MOST = 4096, /* of a piece */
    SEED = 0x165667b1,
};

/* One direction. Both have queues of the device itself: it pushes, and it pulls. */
struct way {
    struct gpu_memory *from, *to;
    struct gpu_queue *queue;           /* that copies */
    struct gpu_queue *at_from, *at_to; /* of the devices whose memory that is */
    uint32_t seed;
    uint64_t checked; /* pieces of work that were done when it was last looked at */
};

struct peers {
    struct gpu peer;
    bool opened;
    struct gpu_queue *peer_queue, *second;
    struct way ways[WINDOWS_LANES_MAX];
    unsigned count;
    uint64_t bytes;
};

static struct peers *peers_of(const struct gpu_job *job)
{
    return job->own;
}

/* ---- which device --------------------------------------------------------------------------- */

/* What the backend of `device` says of an entry; NULL: it does not know it. */
static const struct gpu_device *by_backend(const struct device_entry *entry,
                                           const struct gpu_device *device)
{
    for (unsigned i = 0; i < entry->count; i++)
        if (entry->by[i].backend == device->backend)
            return &entry->by[i];
    return NULL;
}

/* The one behind it in the list that has the same driver, or NULL. */
static const struct gpu_device *next_device(const struct gpu_device *device)
{
    const struct device_list *list = devices_of(device->backend);
    const struct gpu_device *first = NULL;
    bool passed = false;
    for (size_t i = 0; i < list->count; i++) {
        const struct gpu_device *other = by_backend(&list->entries[i], device);
        if (other && other->ordinal == device->ordinal)
            passed = true;
        else if (other && passed)
            return other;
        else if (other && !first)
            first = other;
    }
    return first;
}

static const char *unsupported(const struct run *run, const struct gpu_device *device)
{
    static char why[256];
    if (!device->backend->peer)
        snprintf(why, sizeof why,
                 "peer_to_peer: the backend %s has no copies from device to device without the "
                 "host; cuda has",
                 device->backend->name);
    else if (!strcmp(run_choice(run, "peer_device"), "auto") && !next_device(device))
        snprintf(why, sizeof why,
                 "peer_to_peer needs two devices of the backend %s, and %s is the only one",
                 device->backend->name, device->name);
    else
        return NULL;
    return why;
}

/* Every host with a card had one alone. */
static const char *unconfirmed(const struct run *run, const struct gpu_device *device)
{
    (void)run;
    (void)device;
    return "copies between two cards never ran before this: hold the figure against another tool's";
}

static int choose(struct gpu_job *job, const struct gpu_device **peer)
{
    static char index[16];
    char why[2 * GPU_LOOKED_MAX];
    const char *word = run_choice(job->run, "peer_device");
    if (!strcmp(word, "auto")) {
        *peer = next_device(&job->gpu.device);
        snprintf(index, sizeof index, "%zu", devices_index(*peer));
        run_set_choice(job->run, "peer_device", index);
        return EXIT_OK;
    }
    if (devices_choose(word, job->backend->name, peer, why, sizeof why) != DEVICE_FOUND) {
        run_reason(job->run, "--peer-device: %s", why);
        return EXIT_USAGE;
    }
    if ((*peer)->ordinal != job->gpu.device.ordinal)
        return EXIT_OK;
    run_reason(job->run,
               "--peer-device %s is the device itself, %s: name another one of "
               "gpu-bench --list-devices",
               word, (*peer)->name);
    return EXIT_USAGE;
}

/* ---- copies --------------------------------------------------------------------------------- */

static int enqueue(struct gpu_job *job, unsigned lane, uint64_t copies, struct gpu_event *begin,
                   struct gpu_event *end)
{
    const struct way *way = &peers_of(job)->ways[lane];
    const struct gpu_copy copy = {.kind = GPU_DEVICE_TO_DEVICE,
                                  .from = way->from,
                                  .to = way->to,
                                  .bytes = peers_of(job)->bytes};
    int failure = EXIT_OK;
    for (uint64_t i = 0; i < copies && !failure; i++)
        failure = job->backend->peer_copy(way->queue, &copy, i == 0 ? begin : NULL,
                                          i + 1 == copies ? end : NULL);
    return failure;
}

/* So that what a phase leaves was copied in that phase. */
static int scrub(struct gpu_job *job, const struct way *way)
{
    int failure =
        job->backend->fill(way->at_to, way->to, 0, peers_of(job)->bytes, CONTENTS_SCRUBBED);
    return failure ? failure : gpu_drain(way->at_to);
}

/* A phase may be so short that nothing was copied in this direction. */
static int check(struct gpu_job *job, unsigned lane)
{
    struct way *way = &peers_of(job)->ways[lane];
    uint64_t pieces = windows_pieces(job, lane);
    if (pieces == way->checked)
        return EXIT_OK;
    way->checked = pieces;
    int failure = arrays_check(job, way->at_to, way->to, 0, peers_of(job)->bytes, way->seed,
                               "what arrived on the other device");
    return failure || run_stopping(job->run) ? failure : scrub(job, way);
}

static int verify(struct gpu_job *job)
{
    const struct peers *peers = peers_of(job);
    int failure = EXIT_OK;
    for (unsigned i = 0; i < peers->count && !failure && !run_stopping(job->run); i++)
        failure = check(job, i);
    return failure;
}

static void finish(struct gpu_job *job)
{
    const struct windows_figures *figures = &job->figures;
    static const char *const names[] = {"write_bytes_per_second", "read_bytes_per_second"};
    const struct peers *peers = peers_of(job);
    for (unsigned i = 0; i < WINDOWS_LANES_MAX; i++) {
        bool writes = i == 0;
        unsigned lane = peers->count > 1 ? i : 0;
        bool there = peers->count > 1 || (peers->ways[0].from->gpu == &job->gpu) == writes;
        if (there)
            run_metric(job->run, names[i], figures->lane_rates[lane]);
        else
            run_no_metric(job->run, names[i], "nothing was copied in this direction");
    }
}

/* ---- beginning and end ---------------------------------------------------------------------- */

static int open_way(struct gpu_job *job, bool write, struct gpu_queue *queue)
{
    struct peers *peers = peers_of(job);
    struct gpu *near = &job->gpu, *far = &peers->peer;
    struct way *way = &peers->ways[peers->count++];
    *way = (struct way){.queue = queue,
                        .at_from = write ? job->queue : peers->peer_queue,
                        .at_to = write ? peers->peer_queue : job->queue,
                        .seed = SEED + peers->count};
    int failure = job->backend->memory(write ? near : far, peers->bytes, &way->from);
    if (!failure)
        failure = job->backend->memory(write ? far : near, peers->bytes, &way->to);
    if (!failure)
        failure = arrays_fill(job, way->at_from, way->from, way->seed);
    return failure ? failure : scrub(job, way);
}

static int open_ways(struct gpu_job *job)
{
    struct peers *peers = peers_of(job);
    const char *direction = run_choice(job->run, "direction");
    bool both = !strcmp(direction, "both");
    struct gpu_queue *queue = job->queue;
    int failure = EXIT_OK;
    if (strcmp(direction, "read"))
        failure = open_way(job, true, queue);
    if (!failure && both) {
        failure = job->backend->queue(&job->gpu, &peers->second);
        queue = peers->second;
    }
    if (!failure && strcmp(direction, "write"))
        failure = open_way(job, false, queue);
    return failure;
}

static int reach_each_other(struct gpu_job *job)
{
    struct peers *peers = peers_of(job);
    peers->opened = true;
    int failure = job->backend->open(&peers->peer);
    if (!failure)
        failure = job->backend->queue(&peers->peer, &peers->peer_queue);
    if (!failure)
        failure = job->backend->peer(&job->gpu, &peers->peer);
    return failure ? failure : job->backend->peer(&peers->peer, &job->gpu);
}

static int open_peers(struct gpu_job *job)
{
    struct peers *peers = peers_of(job);
    const struct gpu_device *device;
    int failure = choose(job, &device);
    if (failure)
        return failure;
    peers->peer = (struct gpu){.run = job->run, .device = *device};
    run_fact(job->run, "peer_device_name", device->name);
    run_fact(job->run, "peer_device_uuid", device->uuid);
    failure = reach_each_other(job);
    const struct arrays_demand demand = {
        .arrays = strcmp(run_choice(job->run, "direction"), "both") ? 1 : 2,
        .peer = &peers->peer,
        .granule = CONTENTS_WORD_BYTES,
        .granule_name = "a word",
        .wanted_bytes = ARRAYS_BYTES_LEAST,
    };
    if (!failure)
        failure = arrays_settle(job, &demand, &peers->bytes);
    if (!failure)
        failure = open_ways(job);
    job->work = (struct windows_work){
        .lanes = peers->count,
        .enqueue = enqueue,
        .work_per_size = (double)peers->bytes,
        .size_min = 1,
        .size_max = COPIES_MOST,
    };
    return failure;
}

static void close_peers(struct gpu_job *job)
{
    struct peers *peers = peers_of(job);
    for (unsigned i = 0; i < peers->count; i++) {
        job->backend->release_memory(peers->ways[i].from);
        job->backend->release_memory(peers->ways[i].to);
    }
    job->backend->release_queue(peers->second);
    if (!peers->opened)
        return;
    job->backend->release_queue(peers->peer_queue);
    job->backend->close(&peers->peer);
}

const struct gpu_kind peer_kind = {
    .name = "peer_to_peer",
    .own_bytes = sizeof(struct peers),
    .unsupported = unsupported,
    .unconfirmed = unconfirmed,
    .open = open_peers,
    .close = close_peers,
    .verify = verify,
    .finish = finish,
};
