#include "content.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    PAGE = 4096,
    WORD = sizeof(uint64_t),
    CRC_COVERS = 36,   /* of the header */
    THREAD_SHIFT = 40, /* writes of one thread that a generation can count: a week of 1.8 million a
                          second */
};

static const uint64_t MAGIC = 0x314b4c4248534348; /* "HCSHBLK1" */
static const uint64_t FORMAT = 1;

struct header {
    uint64_t magic, file_id, index, generation;
    uint32_t format, crc32c;
};
_Static_assert(sizeof(struct header) == CONTENT_HEADER_BYTES, "no padding");

/* ---- random words --------------------------------------------------------------------------- */

/* SplitMix64's mixing function (Steele, Lea, Flood, OOPSLA 2014): what depends on the position
 * alone can begin anywhere. */
static inline uint64_t mixed(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static const uint64_t GAMMA = 0x9e3779b97f4a7c15; /* SplitMix64's step: the golden ratio, odd */

/* The bytes of a block from `from` on, a block being an endless row of words made from its seed. */
static void write_random(uint64_t seed, uint64_t from, char *out, uint64_t bytes)
{
    while (bytes > 0) {
        uint64_t word = mixed(seed + (from / WORD + 1) * GAMMA), within = from % WORD;
        uint64_t taken = WORD - within < bytes ? WORD - within : bytes;
        memcpy(out, (const char *)&word + within, taken);
        out += taken;
        from += taken;
        bytes -= taken;
    }
}

/* The same, of whole words: what nearly all of a block is. */
static void write_random_words(uint64_t seed, uint64_t from, char *out, uint64_t bytes)
{
    uint64_t at = seed + (from / WORD + 1) * GAMMA;
    for (uint64_t i = 0; i < bytes; i += WORD, at += GAMMA) {
        uint64_t word = mixed(at);
        memcpy(out + i, &word, WORD);
    }
}

/* ---- blocks --------------------------------------------------------------------------------- */

/* CRC-32C (Castagnoli), four bits at a time. */
static uint32_t crc32c(const void *bytes, size_t count)
{
    static const uint32_t table[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
                                       0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
                                       0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                       0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
    const unsigned char *at = bytes;
    uint32_t crc = ~0u;
    for (size_t i = 0; i < count; i++) {
        crc = table[(crc ^ at[i]) & 15] ^ (crc >> 4);
        crc = table[(crc ^ (at[i] >> 4)) & 15] ^ (crc >> 4);
    }
    return ~crc;
}

static struct header header_of(const struct disk_job *job, uint64_t index, uint64_t generation)
{
    struct header header = {MAGIC, job->file_id, index, generation, FORMAT, 0};
    header.crc32c = crc32c(&header, CRC_COVERS);
    return header;
}

static uint64_t seed_of(const struct disk_job *job, uint64_t index, uint64_t generation)
{
    return mixed(mixed(mixed(job->file_id + GAMMA) + index) + generation);
}

/* What a block is made of: its zeros lie at the end of each page of it, so that a device that
 * compresses by the page finds some in each. */
struct texture {
    uint64_t unit, random; /* bytes of a page, and of these random ones */
};

static struct texture texture_of(const struct disk_job *job, uint64_t block_bytes)
{
    uint64_t unit = block_bytes < PAGE ? block_bytes : PAGE;
    return (struct texture){unit, (uint64_t)ceil((1 - job->compressible) * (double)unit)};
}

/* The bytes of a block from `from` on, without its header. */
static void write_texture(const struct texture *texture, uint64_t seed, uint64_t from, char *out,
                          uint64_t bytes)
{
    while (bytes > 0) {
        uint64_t within = from % texture->unit;
        bool random = within < texture->random;
        uint64_t left = (random ? texture->random : texture->unit) - within;
        uint64_t taken = left < bytes ? left : bytes;
        if (!random)
            memset(out, 0, taken);
        else if (from % WORD == 0 && taken % WORD == 0)
            write_random_words(seed, from, out, taken);
        else
            write_random(seed, from, out, taken);
        out += taken;
        from += taken;
        bytes -= taken;
    }
}

/* `bytes` of a block of `block_bytes` from `from` on. */
static void write_part(const struct disk_job *job, uint64_t block_bytes, uint64_t index,
                       uint64_t generation, uint64_t from, char *out, uint64_t bytes)
{
    struct texture texture = texture_of(job, block_bytes);
    write_texture(&texture, seed_of(job, index, generation), from, out, bytes);
    if (!job->verify || from >= CONTENT_HEADER_BYTES)
        return;
    struct header header = header_of(job, index, generation);
    uint64_t left = CONTENT_HEADER_BYTES - from;
    memcpy(out, (const char *)&header + from, left < bytes ? left : bytes);
}

void content_fill(const struct disk_job *job, void *block, uint64_t index, uint64_t generation)
{
    write_part(job, job->block_bytes, index, generation, 0, block, job->block_bytes);
}

void content_fill_range(const struct disk_job *job, void *buffer, uint64_t offset, uint64_t bytes)
{
    uint64_t block_bytes = job->verify ? job->block_bytes : PAGE;
    char *out = buffer;
    while (bytes > 0) {
        uint64_t within = offset % block_bytes, left = block_bytes - within;
        uint64_t taken = left < bytes ? left : bytes;
        write_part(job, block_bytes, offset / block_bytes, 0, within, out, taken);
        out += taken;
        offset += taken;
        bytes -= taken;
    }
}

/* ---- writing -------------------------------------------------------------------------------- */

static int budget_spent(const struct disk_job *job, const struct disk_thread *own)
{
    run_reason(job->run,
               "this thread has begun its %" PRIu64
               " writes, its share of the write budget (HOSTBENCH_DISK_WRITE_BUDGET_BYTES): use a "
               "shorter --duration-s, a --total-bytes within it, or raise it",
               own->writes);
    return EXIT_RESOURCE;
}

/* A few bytes of every page: no two pages written are alike, for a device that stores equal ones
 * once. */
static void stir(const struct disk_job *job, char *block, uint64_t generation)
{
    for (uint64_t at = 0; at < job->block_bytes; at += PAGE) {
        uint64_t word = mixed(generation * GAMMA + at), left = job->block_bytes - at;
        memcpy(block + at, &word, left < WORD ? left : WORD);
    }
}

int content_next(struct thread *thread, void *block, uint64_t index)
{
    const struct disk_job *job = disk_job_of(thread);
    struct disk_thread *own = &job->own[thread->index];
    if (own->writes >= job->write_limit)
        return budget_spent(job, own);
    uint64_t generation = ((uint64_t)thread->index + 1) << THREAD_SHIFT | ++own->writes;
    if (job->verify)
        content_fill(job, block, index, generation);
    else
        stir(job, block, generation);
    return EXIT_OK;
}

/* ---- reading -------------------------------------------------------------------------------- */

static const uint64_t NOWHERE = UINT64_MAX;

void content_written(const struct disk_job *job, const void *block, uint64_t index)
{
    struct header header;
    memcpy(&header, block, sizeof header);
    job->written[index] = header.generation;
}

/* The header as it stands in the block, and what is wrong with it; NULL: nothing. */
static const char *header_fault(const struct disk_job *job, const void *block, uint64_t index,
                                struct header *header)
{
    memcpy(header, block, sizeof *header);
    if (header->magic != MAGIC)
        return "it does not begin as a block that was written here";
    if (header->crc32c != crc32c(header, CRC_COVERS))
        return "its header does not match its own checksum";
    if (header->file_id != job->file_id || header->format != FORMAT)
        return "it is a block of another file";
    if (header->index != index)
        return "it is another block of this file";
    /* What earlier trials have written is not known: there, any block of the file's will do. */
    if (job->written && job->written[index] && header->generation != job->written[index])
        return "it is what stood there before, and the last write is lost";
    return NULL;
}

/* The first part of at most a page that is not as the header says, from its beginning; NOWHERE:
 * all is well. */
static uint64_t first_difference(const struct disk_job *job, const char *block,
                                 const struct header *header)
{
    char expected[PAGE];
    for (uint64_t at = 0; at < job->block_bytes; at += PAGE) {
        uint64_t left = job->block_bytes - at, bytes = left < PAGE ? left : PAGE;
        write_part(job, job->block_bytes, header->index, header->generation, at, expected, bytes);
        if (!memcmp(block + at, expected, bytes))
            continue;
        while (block[at] == expected[at % PAGE])
            at++;
        return at;
    }
    return NOWHERE;
}

int content_check(struct thread *thread, const void *block, uint64_t index)
{
    const struct disk_job *job = disk_job_of(thread);
    struct header header;
    uint64_t offset = index * job->block_bytes;
    job->own[thread->index].verified++;
    const char *fault = header_fault(job, block, index, &header);
    uint64_t at = fault ? 0 : first_difference(job, block, &header);
    if (at == NOWHERE)
        return EXIT_OK;
    run_reason(job->run,
               "the block of %" PRIu64 " bytes at offset %" PRIu64
               " was read back wrong, from byte "
               "%" PRIu64 " on: %s; do not trust this disk before it has been checked (smartctl, "
               "the kernel's log)",
               job->block_bytes, offset, at,
               fault ? fault : "what follows its header is not what was written with it");
    return EXIT_WRONG;
}
