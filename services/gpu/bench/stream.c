#include "stream.h"

#include "arrays.h"
#include "clocks.h"
#include "contents.h"
#include "kernel_set.h"
#include "windows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    ARRAYS_MOST = 3,
    PASSES_MOST = 4096, /* of a piece: small arrays take microseconds */
    TRIAD_SCALAR = 3,
    /* What is read back and looked at by the host besides: all of a small array, of a larger one so
     * many parts spread over it. */
    ALL_BELOW_BYTES = 64 << 20,
    PARTS = 64,
    BESIDE_BYTES = 16 << 20, /* sums and records */
};

static const double PASS_LEAST_S = 20e-6;

/* Of what is read or written, and of what triad multiplies. */
enum { SEED_FROM = 0x1b873593, SEED_OTHER = 0x38495ab5 };

struct stream {
    const struct stream_kind *kind;
    uint64_t bytes;                         /* of one array */
    bool driver;                            /* the driver copies */
    struct gpu_memory *arrays[ARRAYS_MOST]; /* in the order of the kernel's arguments */
    struct gpu_memory *sums;                /* a word a group */
    struct gpu_kernel *kernel, *fill, *check;
    uint64_t checked; /* pieces of work that were done when it was last looked at */
};

static struct stream *stream_of(const struct gpu_job *job)
{
    return job->own;
}

static unsigned tiles_of(const struct stream *stream)
{
    return (unsigned)(stream->bytes / KERNEL_TILE_BYTES);
}

static bool is(const struct stream *stream, const struct stream_kind *kind)
{
    return stream->kind == kind;
}

static bool fills_floats(const struct stream *stream)
{
    return is(stream, &stream_triad);
}

/* ---- launches ------------------------------------------------------------------------------- */

/* Of a kernel that fills or checks: a group a tile. */
static int launch(struct gpu_job *job, const struct gpu_kernel *kernel,
                  const struct gpu_argument *arguments, unsigned count)
{
    const struct gpu_launch one = {.kernel = kernel,
                                   .groups = tiles_of(stream_of(job)),
                                   .group_size = KERNEL_GROUP_SIZE,
                                   .arguments = arguments,
                                   .count = count};
    return job->backend->launch(job->queue, &one, NULL, NULL);
}

static int fill(struct gpu_job *job, const struct gpu_memory *array, uint32_t seed)
{
    const struct gpu_argument arguments[] = {GPU_ARG_MEMORY(array), GPU_ARG_U32(seed)};
    return launch(job, stream_of(job)->fill, arguments, 2);
}

/* What an operation writes to, or NULL. */
static struct gpu_memory *result_of(const struct stream *stream)
{
    if (is(stream, &stream_read))
        return NULL;
    return is(stream, &stream_copy) ? stream->arrays[1] : stream->arrays[0];
}

/* So that what a phase leaves was done in that phase. */
static int scrub(struct gpu_job *job)
{
    const struct stream *stream = stream_of(job);
    const struct gpu_memory *result = result_of(stream);
    int failure =
        job->backend->fill(job->queue, stream->sums, 0, stream->sums->bytes, CONTENTS_SCRUBBED);
    if (!failure && result)
        failure = job->backend->fill(job->queue, result, 0, stream->bytes, CONTENTS_SCRUBBED);
    return failure ? failure : gpu_drain(job->queue);
}

static unsigned arguments_of(const struct stream *stream, struct gpu_argument arguments[])
{
    unsigned count = 0;
    for (unsigned i = 0; i < stream->kind->arrays; i++)
        arguments[count++] = GPU_ARG_MEMORY(stream->arrays[i]);
    if (is(stream, &stream_read))
        arguments[count++] = GPU_ARG_MEMORY(stream->sums);
    if (is(stream, &stream_write))
        arguments[count++] = GPU_ARG_U32(SEED_FROM);
    if (is(stream, &stream_triad))
        arguments[count++] = GPU_ARG_U32(TRIAD_SCALAR);
    return count;
}

static int pass(struct gpu_job *job, struct gpu_event *begin, struct gpu_event *end)
{
    const struct stream *stream = stream_of(job);
    struct gpu_argument arguments[ARRAYS_MOST + 3];
    uint32_t slot;
    unsigned count = arguments_of(stream, arguments);
    int failure = clocks_next(job, &slot);
    arguments[count++] = GPU_ARG_MEMORY(clocks_memory(job));
    arguments[count++] = GPU_ARG_U32(slot);
    if (failure)
        return failure;
    const struct gpu_launch one = {.kernel = stream->kernel,
                                   .groups = tiles_of(stream) * stream->kind->groups,
                                   .group_size = KERNEL_GROUP_SIZE,
                                   .arguments = arguments,
                                   .count = count};
    return job->backend->launch(job->queue, &one, begin, end);
}

static int driver_pass(struct gpu_job *job, struct gpu_event *begin, struct gpu_event *end)
{
    const struct stream *stream = stream_of(job);
    const struct gpu_copy copy = {.kind = GPU_DEVICE_TO_DEVICE,
                                  .from = stream->arrays[0],
                                  .to = stream->arrays[1],
                                  .bytes = stream->bytes};
    return job->backend->copy(job->queue, &copy, begin, end);
}

static int enqueue(struct gpu_job *job, unsigned lane, uint64_t passes, struct gpu_event *begin,
                   struct gpu_event *end)
{
    int failure = EXIT_OK;
    (void)lane; /* there is one */
    for (uint64_t i = 0; i < passes && !failure; i++) {
        struct gpu_event *first = i == 0 ? begin : NULL, *last = i + 1 == passes ? end : NULL;
        failure = stream_of(job)->driver ? driver_pass(job, first, last) : pass(job, first, last);
    }
    return failure;
}

/* ---- what was left -------------------------------------------------------------------------- */

/* The sums that a kernel has left: one a group, each the same or another one each. */
static int check_sums(struct gpu_job *job, uint32_t (*wanted)(unsigned group), const char *what)
{
    const struct stream *stream = stream_of(job);
    unsigned groups = tiles_of(stream);
    uint32_t *sums = malloc(groups * sizeof *sums);
    if (!sums) {
        run_reason(job->run, "not enough memory for the %u sums of the device's groups", groups);
        return EXIT_RESOURCE;
    }
    int failure = gpu_download(job->queue, stream->sums, 0, sums, groups * sizeof *sums);
    for (unsigned group = 0; group < groups && !failure; group++)
        if (sums[group] != wanted(group))
            failure = arrays_wrong(job, what, group, sums[group], wanted(group));
    free(sums);
    return failure;
}

static uint32_t no_differences(unsigned group)
{
    (void)group;
    return 0;
}

static uint32_t sum_of_tile(unsigned group)
{
    const uint64_t words = KERNEL_TILE_BYTES / CONTENTS_WORD_BYTES;
    return contents_sum(SEED_FROM, group * words, words);
}

/* All words, looked at by the device itself: each group counts those that are wrong. */
static int check_on_device(struct gpu_job *job)
{
    const struct stream *stream = stream_of(job);
    const struct gpu_argument words[] = {GPU_ARG_MEMORY(result_of(stream)), GPU_ARG_U32(SEED_FROM),
                                         GPU_ARG_MEMORY(stream->sums)};
    const struct gpu_argument floats[] = {GPU_ARG_MEMORY(stream->arrays[0]), GPU_ARG_U32(SEED_FROM),
                                          GPU_ARG_U32(SEED_OTHER), GPU_ARG_U32(TRIAD_SCALAR),
                                          GPU_ARG_MEMORY(stream->sums)};
    int failure = fills_floats(stream) ? launch(job, stream->check, floats, 5)
                                       : launch(job, stream->check, words, 3);
    if (!failure)
        failure = gpu_drain(job->queue);
    if (failure || run_stopping(job->run))
        return failure;
    return check_sums(job, no_differences, "the numbers of wrong words that the groups count");
}

/* The whole number that the kernel fill_float leaves at a place. */
static uint32_t float_at(uint32_t seed, uint64_t place)
{
    return (seed + (uint32_t)place * 40503u) & 65535u;
}

static int check_triad_part(struct gpu_job *job, uint64_t offset, const float *found,
                            uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes / sizeof *found; i++) {
        uint64_t place = offset / sizeof *found + i;
        float wanted =
            (float)(float_at(SEED_FROM, place) + TRIAD_SCALAR * float_at(SEED_OTHER, place));
        uint32_t words[2];
        if (found[i] == wanted)
            continue;
        memcpy(&words[0], &found[i], sizeof words[0]);
        memcpy(&words[1], &wanted, sizeof words[1]);
        return arrays_wrong(job, "the result", place, words[0], words[1]);
    }
    return EXIT_OK;
}

static int check_part(struct gpu_job *job, uint64_t offset, float *piece)
{
    const struct stream *stream = stream_of(job);
    const struct gpu_memory *result = result_of(stream);
    if (!fills_floats(stream))
        return arrays_check(job, job->queue, result, offset, KERNEL_TILE_BYTES, SEED_FROM,
                            "the result");
    int failure = gpu_download(job->queue, result, offset, piece, KERNEL_TILE_BYTES);
    return failure ? failure : check_triad_part(job, offset, piece, KERNEL_TILE_BYTES);
}

/* The host does not take the device's word for all of it. */
static int check_on_host(struct gpu_job *job)
{
    const struct stream *stream = stream_of(job);
    unsigned groups = tiles_of(stream);
    unsigned parts = stream->bytes <= ALL_BELOW_BYTES ? groups : PARTS;
    float *piece = malloc(KERNEL_TILE_BYTES);
    int failure = piece ? EXIT_OK : EXIT_RESOURCE;
    if (!piece)
        run_reason(job->run, "not enough memory for %d bytes of the host's", KERNEL_TILE_BYTES);
    for (unsigned part = 0; part < parts && !failure && !run_stopping(job->run); part++) {
        /* The first and the last group too. */
        uint64_t group = parts > 1 ? (uint64_t)part * (groups - 1) / (parts - 1) : 0;
        failure = check_part(job, group * KERNEL_TILE_BYTES, piece);
    }
    free(piece);
    return failure;
}

static int check(struct gpu_job *job)
{
    if (is(stream_of(job), &stream_read))
        return check_sums(job, sum_of_tile, "the sums that the groups read");
    int failure = check_on_device(job);
    return failure || run_stopping(job->run) ? failure : check_on_host(job);
}

static int verify(struct gpu_job *job)
{
    struct stream *stream = stream_of(job);
    uint64_t pieces = windows_pieces(job, 0);
    if (pieces == stream->checked)
        return EXIT_OK; /* the phase was so short that nothing was done */
    stream->checked = pieces;
    int failure = check(job);
    return failure || run_stopping(job->run) ? failure : scrub(job);
}

/* ---- beginning and end ---------------------------------------------------------------------- */

static int allocate(struct gpu_job *job)
{
    struct stream *stream = stream_of(job);
    int failure = job->backend->memory(&job->gpu, (uint64_t)tiles_of(stream) * CONTENTS_WORD_BYTES,
                                       &stream->sums);
    for (unsigned i = 0; i < stream->kind->arrays && !failure; i++)
        failure = job->backend->memory(&job->gpu, stream->bytes, &stream->arrays[i]);
    return failure;
}

static int find_kernels(struct gpu_job *job)
{
    struct stream *stream = stream_of(job);
    bool floats = fills_floats(stream);
    int failure = EXIT_OK;
    if (!stream->driver)
        failure = gpu_job_kernel(job, job->kind->name, &stream->kernel);
    if (!failure)
        failure = job->backend->kernel(&job->gpu, floats ? "fill_float" : "fill", &stream->fill);
    if (!failure)
        failure = job->backend->kernel(&job->gpu, floats ? "check_triad" : "check", &stream->check);
    return failure;
}

static int fill_sources(struct gpu_job *job)
{
    const struct stream *stream = stream_of(job);
    if (is(stream, &stream_write))
        return EXIT_OK;
    if (!is(stream, &stream_triad))
        return fill(job, stream->arrays[0], SEED_FROM);
    int failure = fill(job, stream->arrays[1], SEED_FROM);
    return failure ? failure : fill(job, stream->arrays[2], SEED_OTHER);
}

static int settle(struct gpu_job *job)
{
    struct stream *stream = stream_of(job);
    const struct arrays_demand demand = {
        .arrays = stream->kind->arrays,
        .granule = KERNEL_TILE_BYTES,
        .granule_name = "what a group of the kernel works on",
        .beside_bytes = BESIDE_BYTES,
        .wanted_bytes = arrays_bytes_to_stream(&job->gpu.device),
        .modest_bytes = arrays_bytes_wanted(&job->gpu.device),
    };
    int failure = arrays_settle(job, &demand, &stream->bytes);
    if (!failure)
        arrays_warn_of_cache(job, demand.arrays * stream->bytes);
    return failure;
}

static int open_stream(struct gpu_job *job)
{
    struct stream *stream = stream_of(job);
    stream->kind = (const struct stream_kind *)job->kind;
    stream->driver =
        stream->kind == &stream_copy && !strcmp(run_choice(job->run, "path"), "driver");
    int failure = clocks_open(job, false); /* its passes show in what they leave */
    if (!failure)
        failure = settle(job);
    if (!failure)
        failure = find_kernels(job);
    if (!failure)
        failure = allocate(job);
    if (!failure)
        failure = fill_sources(job);
    if (!failure)
        failure = scrub(job);
    job->work = (struct windows_work){
        .lanes = 1,
        .enqueue = enqueue,
        .work_per_size = (double)stream->kind->arrays * (double)stream->bytes,
        .size_min = 1,
        .size_max = PASSES_MOST,
    };
    return failure;
}

/* Launching one takes the host some microseconds: with passes no longer than that, the device waits for
 * the host between them, and what the events enclose has these pauses in it. */
static void finish(struct gpu_job *job)
{
    const struct stream *stream = stream_of(job);
    double pass_s = job->work.work_per_size / job->figures.rate_median;
    if (pass_s < PASS_LEAST_S) /* not where nothing was done: NaN */
        run_warning(job->run, "short_passes",
                    "a pass over arrays of %" PRIu64 " bytes took %.3g us, and the host's time to "
                    "launch it is part of the figure: use larger arrays (--size-bytes)",
                    stream->bytes, pass_s * 1e6);
}

static void close_stream(struct gpu_job *job)
{
    struct stream *stream = stream_of(job);
    for (unsigned i = 0; i < ARRAYS_MOST; i++)
        job->backend->release_memory(stream->arrays[i]);
    job->backend->release_memory(stream->sums);
    job->backend->release_kernel(stream->kernel);
    job->backend->release_kernel(stream->fill);
    job->backend->release_kernel(stream->check);
}

#define KIND(word)                                                                                 \
    {.name = (word),                                                                               \
     .own_bytes = sizeof(struct stream),                                                           \
     .open = open_stream,                                                                          \
     .close = close_stream,                                                                        \
     .verify = verify,                                                                             \
     .finish = finish}

const struct stream_kind stream_read = {KIND("read"), .arrays = 1, .groups = 1};
const struct stream_kind stream_write = {KIND("write"), .arrays = 1, .groups = 1};
const struct stream_kind stream_copy = {KIND("copy"), .arrays = 2, .groups = 8};
const struct stream_kind stream_triad = {KIND("triad"), .arrays = 3, .groups = 8};
