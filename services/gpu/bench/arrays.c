#include "arrays.h"

#include "contents.h"
#include "memory.h" /* the harness's: what the host has left */

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum {
    PIECE_BYTES = 16 << 20, /* read back or filled at once */
    ROUND_BYTES = 1 << 20,  /* a multiple of every granule */
    LARGE_SHIFT = 31,       /* 2 GiB: in a pass over them its beginning and end do not count */
    L2_LEAST = 4,           /* so many times the L2 cache at least, so that it holds none */
};

/* Drivers keep some for themselves, and pages are not divided. */
static const double FREE_SHARE = 0.9;
/* … and where the driver does not tell what others hold, a desktop may have much of it. */
static const double UNKNOWN_SHARE = 0.5;

static const double GIB = 1 << 30;

/* What is sold as 16 GiB: ECC and the driver take some of it. */
static const uint64_t LARGE_CARD_BYTES = UINT64_C(15) << 30;

uint64_t arrays_bytes_wanted(const struct gpu_device *device)
{
    uint64_t bytes = L2_LEAST * device->l2_bytes;
    return bytes > ARRAYS_BYTES_LEAST ? bytes : ARRAYS_BYTES_LEAST;
}

uint64_t arrays_bytes_to_stream(const struct gpu_device *device)
{
    const uint64_t large = UINT64_C(1) << LARGE_SHIFT;
    uint64_t bytes = arrays_bytes_wanted(device);
    bool has_room = device->type == GPU_IS_GPU && device->memory_bytes >= LARGE_CARD_BYTES;
    return has_room && bytes < large ? large : bytes;
}

/* ---- room ----------------------------------------------------------------------------------- */

struct room {
    const struct gpu_device *device; /* of the two devices, the one with less */
    uint64_t free_bytes;
    double share;              /* of them, that a word of a size may take */
    uint64_t array_bytes;      /* that one array may have at most, where nothing else is there */
    struct memory_budget host; /* NaN: unknown */
};

static int look_at(struct gpu *gpu, struct room *room)
{
    const struct gpu_device *device = &gpu->device;
    uint64_t free_bytes;
    int failure = device->backend->free_memory(gpu, &free_bytes);
    if (failure || free_bytes >= room->free_bytes)
        return failure;
    room->device = device;
    room->free_bytes = free_bytes;
    room->share = gpu->free_unknown ? UNKNOWN_SHARE : FREE_SHARE;
    return EXIT_OK;
}

static int look(struct gpu_job *job, const struct arrays_demand *demand, struct room *room)
{
    const struct gpu_device *device = &job->gpu.device;
    *room = (struct room){.device = device,
                          .free_bytes = UINT64_MAX,
                          .array_bytes =
                              device->allocation_bytes ? device->allocation_bytes : UINT64_MAX};
    int failure = look_at(&job->gpu, room);
    if (!failure && demand->peer)
        failure = look_at(demand->peer, room);
    if (!demand->host_arrays || !run_memory_budget(job->run, &room->host))
        room->host.bytes = NAN;
    return failure;
}

static uint64_t down_to(uint64_t bytes, uint64_t granule)
{
    return bytes / granule * granule;
}

/* Arrays that share the device's memory: where it is the host's, all of them do. */
static unsigned arrays_there(const struct arrays_demand *demand, const struct room *room)
{
    return demand->arrays + (room->device->unified ? demand->host_arrays : 0);
}

static double bytes_there(const struct arrays_demand *demand, const struct room *room,
                          uint64_t array_bytes)
{
    return (arrays_there(demand, room) + demand->beside_ratio) * (double)array_bytes +
           (double)demand->beside_bytes;
}

/* The largest size for which there is room; 0: none. */
static uint64_t fitting(const struct arrays_demand *demand, const struct room *room)
{
    double left = (double)room->free_bytes * room->share - (double)demand->beside_bytes;
    double most =
        fmin(left / (arrays_there(demand, room) + demand->beside_ratio), (double)room->array_bytes);
    if (demand->host_arrays && isfinite(room->host.bytes))
        most = fmin(most, room->host.bytes * FREE_SHARE / demand->host_arrays);
    return most < (double)demand->granule ? 0 : down_to((uint64_t)most, demand->granule);
}

static const char *plural(unsigned count)
{
    return count == 1 ? "" : "s";
}

static const char *remedy(const struct room *room)
{
    return room->device->cc_major ? "stop what holds the rest (nvidia-smi lists it)"
                                  : "stop what holds the rest";
}

static int no_room_at_all(struct gpu_job *job, const struct arrays_demand *demand,
                          const struct room *room)
{
    unsigned arrays = arrays_there(demand, room);
    run_reason(
        job->run,
        "%s has %.2f GiB of its %.2f GiB free, too little for %s, which needs %u array%s: %s",
        room->device->name, (double)room->free_bytes / GIB,
        (double)room->device->memory_bytes / GIB, job->kind->name, arrays, plural(arrays),
        remedy(room));
    return EXIT_RESOURCE;
}

static int refuse_on_device(struct gpu_job *job, const struct arrays_demand *demand,
                            const struct room *room, uint64_t bytes)
{
    uint64_t most = fitting(demand, room);
    unsigned arrays = arrays_there(demand, room);
    if (!most)
        return no_room_at_all(job, demand, room);
    run_reason(
        job->run,
        "size_bytes %" PRIu64 ": %s needs %u array%s of it, %.2f GiB, and %s has %.2f GiB of "
        "its %.2f GiB free: use --size-bytes=%" PRIu64 " or less, or %s",
        bytes, job->kind->name, arrays, plural(arrays), bytes_there(demand, room, bytes) / GIB,
        room->device->name, (double)room->free_bytes / GIB,
        (double)room->device->memory_bytes / GIB, most, remedy(room));
    return EXIT_RESOURCE;
}

/* One array alone is more than the driver gives in one piece. */
static int refuse_one(struct gpu_job *job, const struct arrays_demand *demand,
                      const struct room *room, uint64_t bytes)
{
    run_reason(job->run,
               "size_bytes %" PRIu64 ": %s gives at most %" PRIu64
               " bytes in one piece and has %.2f GiB free: use --size-bytes=%" PRIu64 " or less",
               bytes, job->gpu.device.name, room->array_bytes, (double)room->free_bytes / GIB,
               fitting(demand, room));
    return EXIT_RESOURCE;
}

static int refuse_on_host(struct gpu_job *job, const struct arrays_demand *demand,
                          const struct room *room, uint64_t bytes)
{
    run_reason(job->run,
               "size_bytes %" PRIu64 ": %s needs %u array%s of it on the host, %.2f GiB, and "
               "%.2f GiB are left (%s): use --size-bytes=%" PRIu64 " or less",
               bytes, job->kind->name, demand->host_arrays, plural(demand->host_arrays),
               (double)demand->host_arrays * (double)bytes / GIB, room->host.bytes / GIB,
               room->host.limit, fitting(demand, room));
    return EXIT_RESOURCE;
}

static int hold_against(struct gpu_job *job, const struct arrays_demand *demand,
                        const struct room *room, uint64_t bytes)
{
    if (bytes > room->array_bytes)
        return refuse_one(job, demand, room, bytes);
    if (bytes_there(demand, room, bytes) > (double)room->free_bytes)
        return refuse_on_device(job, demand, room, bytes);
    if ((double)demand->host_arrays * (double)bytes > room->host.bytes)
        return refuse_on_host(job, demand, room, bytes);
    return EXIT_OK;
}

/* ---- the size ------------------------------------------------------------------------------- */

static int check_granule(struct gpu_job *job, const struct arrays_demand *demand, uint64_t bytes)
{
    uint64_t below = down_to(bytes, demand->granule);
    if (bytes == below && bytes)
        return EXIT_OK;
    run_reason(job->run,
               "size_bytes %" PRIu64 " is not a multiple of %" PRIu64 " bytes, %s: use %" PRIu64,
               bytes, demand->granule, demand->granule_name, below + (below ? 0 : demand->granule));
    return EXIT_USAGE;
}

int arrays_settle(struct gpu_job *job, const struct arrays_demand *demand, uint64_t *bytes)
{
    bool given = !run_choice(job->run, "size_bytes");
    struct room room;
    *bytes = given ? run_count(job->run, "size_bytes") : demand->wanted_bytes;
    int failure = given ? check_granule(job, demand, *bytes) : EXIT_OK;
    if (!failure)
        failure = look(job, demand, &room);
    if (failure)
        return failure;
    if (given)
        return hold_against(job, demand, &room, *bytes);
    uint64_t most = fitting(demand, &room);
    if (!most)
        return no_room_at_all(job, demand, &room);
    if (demand->modest_bytes && *bytes > most)
        *bytes = demand->modest_bytes;
    *bytes = down_to(*bytes + demand->granule - 1, demand->granule);
    if (*bytes > most) /* a round figure, where it may be one */
        *bytes = most > ROUND_BYTES ? down_to(most, ROUND_BYTES) : most;
    run_set_count(job->run, "size_bytes", *bytes);
    return EXIT_OK;
}

void arrays_warn_of_cache(struct gpu_job *job, uint64_t bytes)
{
    uint64_t l2_bytes = job->gpu.device.l2_bytes;
    if (bytes >= L2_LEAST * l2_bytes)
        return;
    run_warning(job->run, "in_cache",
                "the arrays have %" PRIu64 " bytes together, less than %d times the L2 cache of "
                "%" PRIu64 ": part of the figure is the cache's",
                bytes, L2_LEAST, l2_bytes);
}

/* ---- contents ------------------------------------------------------------------------------- */

int arrays_wrong(struct gpu_job *job, const char *what, uint64_t place, uint32_t found,
                 uint32_t wanted)
{
    run_reason(
        job->run,
        "%s: word %" PRIu64 " of %s is 0x%08" PRIx32 " and must be 0x%08" PRIx32
        ": this device, its driver or this build does not work correctly; do not trust its figures",
        job->gpu.device.name, place, what, found, wanted);
    return EXIT_WRONG;
}

static uint32_t *piece(struct gpu_job *job)
{
    uint32_t *words = malloc(PIECE_BYTES);
    if (!words)
        run_reason(job->run, "not enough memory for %d bytes of the host's: free some",
                   PIECE_BYTES);
    return words;
}

static uint64_t piece_bytes(uint64_t left)
{
    return left < PIECE_BYTES ? left : PIECE_BYTES;
}

static int check_piece(struct gpu_job *job, const uint32_t *words, uint64_t at, uint64_t bytes,
                       uint32_t seed, const char *what)
{
    uint64_t place = at / CONTENTS_WORD_BYTES, count = bytes / CONTENTS_WORD_BYTES;
    uint64_t wrong = contents_wrong(words, place, count, seed);
    if (wrong == count)
        return EXIT_OK;
    return arrays_wrong(job, what, place + wrong, words[wrong], contents_word(seed, place + wrong));
}

int arrays_check(struct gpu_job *job, struct gpu_queue *queue, const struct gpu_memory *memory,
                 uint64_t offset, uint64_t bytes, uint32_t seed, const char *what)
{
    uint32_t *words = piece(job);
    int failure = words ? EXIT_OK : EXIT_RESOURCE;
    for (uint64_t at = offset; at < offset + bytes && !failure && !run_stopping(job->run);) {
        uint64_t length = piece_bytes(offset + bytes - at);
        failure = gpu_download(queue, memory, at, words, length);
        if (!failure && !run_stopping(job->run))
            failure = check_piece(job, words, at, length, seed, what);
        at += length;
    }
    free(words);
    return failure;
}

int arrays_fill(struct gpu_job *job, struct gpu_queue *queue, const struct gpu_memory *memory,
                uint32_t seed)
{
    uint32_t *words = piece(job);
    int failure = words ? EXIT_OK : EXIT_RESOURCE;
    for (uint64_t at = 0; at < memory->bytes && !failure && !run_stopping(job->run);) {
        uint64_t length = piece_bytes(memory->bytes - at);
        contents_fill(words, at / CONTENTS_WORD_BYTES, length / CONTENTS_WORD_BYTES, seed);
        failure = gpu_upload(queue, memory, at, words, length);
        at += length;
    }
    free(words);
    return failure;
}
