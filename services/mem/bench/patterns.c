/* patterns: writes patterns to memory, reads them back a whole pass later, and names what has
 * changed. */
#define _GNU_SOURCE
#include "mem_workloads.h"
#include "working_set.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    BLOCK_BYTES = 4096,
    BLOCK_WORDS = BLOCK_BYTES / sizeof(uint64_t),
    LINE_WORDS = 8,
    BLOCKS_BETWEEN_LOOKS = 256, /* whether the run is to stop */
    READ_AGAIN = 5,
};

/* Each is followed by its complement, so every bit is seen to hold, and to change to, 0 and 1. */
enum pattern { WALKING_ONE, STRIPES, LINES, ADDRESS, RANDOM, PATTERNS };

static const char *const pattern_names[PATTERNS] = {"walking one", "alternate bits",
                                                    "alternate lines", "own address", "random"};

struct part {
    uint64_t *words;
    size_t block;  /* the next to be checked and written */
    uint64_t pass; /* what the blocks from there on hold; those before hold the next one */
    uint64_t units;
};

struct patterns {
    struct working_set set;
    uint64_t seed;
    size_t blocks; /* of a thread */
    struct part *parts;
};

/* ---- what belongs where --------------------------------------------------------------------- */

/* The finaliser of MurmurHash3. */
static inline uint64_t mixed(uint64_t bits)
{
    bits = (bits ^ bits >> 33) * 0xff51afd7ed558ccdu;
    bits = (bits ^ bits >> 33) * 0xc4ceb9fe1a85ec53u;
    return bits ^ bits >> 33;
}

static enum pattern pattern_of(uint64_t seed, uint64_t pass)
{
    return (enum pattern)((seed + pass / 2) % PATTERNS);
}

static inline uint64_t word_of(enum pattern pattern, const uint64_t *at, uint64_t index,
                               uint64_t seed)
{
    switch (pattern) {
    case WALKING_ONE:
        return (uint64_t)1 << (index + seed) % 64;
    case STRIPES:
        return (index + seed) % 2 ? 0x5555555555555555u : 0xaaaaaaaaaaaaaaaau;
    case LINES:
        return (index / LINE_WORDS + seed) % 2 ? 0 : UINT64_MAX;
    case ADDRESS:
        return (uint64_t)(uintptr_t)at;
    default:
        return mixed(index ^ mixed(seed));
    }
}

/* The same function for each pattern, so that none is chosen word by word. */
#define FOR_EACH_PATTERN(pattern, DO)                                                              \
    switch (pattern) {                                                                             \
    case WALKING_ONE:                                                                              \
        DO(WALKING_ONE) break;                                                                     \
    case STRIPES:                                                                                  \
        DO(STRIPES) break;                                                                         \
    case LINES:                                                                                    \
        DO(LINES) break;                                                                           \
    case ADDRESS:                                                                                  \
        DO(ADDRESS) break;                                                                         \
    default:                                                                                       \
        DO(RANDOM) break;                                                                          \
    }

static void write_block(uint64_t *words, size_t block, uint64_t seed, uint64_t pass)
{
    const uint64_t flip = pass % 2 ? UINT64_MAX : 0, first = block * BLOCK_WORDS;
    uint64_t *at = words + first;
#define WRITE(pattern)                                                                             \
    for (size_t i = 0; i < BLOCK_WORDS; i++)                                                       \
        at[i] = flip ^ word_of(pattern, at + i, first + i, seed);
    FOR_EACH_PATTERN(pattern_of(seed, pass), WRITE)
#undef WRITE
}

static bool block_holds(const uint64_t *words, size_t block, uint64_t seed, uint64_t pass)
{
    const uint64_t flip = pass % 2 ? UINT64_MAX : 0, first = block * BLOCK_WORDS;
    const uint64_t *at = words + first;
    uint64_t differences = 0;
#define COMPARE(pattern)                                                                           \
    for (size_t i = 0; i < BLOCK_WORDS; i++)                                                       \
        differences |= at[i] ^ flip ^ word_of(pattern, at + i, first + i, seed);
    FOR_EACH_PATTERN(pattern_of(seed, pass), COMPARE)
#undef COMPARE
    return differences == 0;
}

/* ---- what is wrong -------------------------------------------------------------------------- */

/* From memory, past the caches. */
static uint64_t read_again(const uint64_t *at)
{
#if defined(__x86_64__)
    __asm__ volatile("clflush %0\n\tmfence" : : "m"(*at) : "memory");
#else
    __asm__ volatile("dc civac, %0\n\tdsb sy" : : "r"(at) : "memory");
#endif
    return *(const volatile uint64_t *)at;
}

/* "physical 0x…, "; nothing where the kernel hides it (it shows it to CAP_SYS_ADMIN, see
 * Documentation/admin-guide/mm/pagemap.rst). */
static void name_physical(char *text, size_t size, const void *at)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), address = (uintptr_t)at;
    const uint64_t frame_bits = ((uint64_t)1 << 55) - 1;
    uint64_t entry = 0;
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    text[0] = '\0';
    if (fd >= 0 &&
        pread(fd, &entry, sizeof entry, (off_t)(address / page * sizeof entry)) == sizeof entry &&
        entry & frame_bits)
        snprintf(text, size, "physical 0x%" PRIx64 ", ",
                 (entry & frame_bits) * page + address % page);
    if (fd >= 0)
        close(fd);
}

/* The block was wrong when it was compared, and all of its words are right when read again. */
static int refuse_reading(const struct thread *thread, const uint64_t *at, enum pattern pattern)
{
    char physical[40];
    name_physical(physical, sizeof physical, at);
    run_reason(thread->run,
               "CPU %d read something wrong in the %d bytes at 0x%" PRIxPTR ", %spattern %s, and "
               "all of it is right when read again: the reading was wrong",
               thread->cpu, BLOCK_BYTES, (uintptr_t)at, physical, pattern_names[pattern]);
    return EXIT_WRONG;
}

/* Names the first wrong word of a block. */
static int refuse_block(const struct thread *thread, const struct part *part, size_t block,
                        uint64_t seed, uint64_t pass)
{
    const uint64_t flip = pass % 2 ? UINT64_MAX : 0;
    const enum pattern pattern = pattern_of(seed, pass);
    const uint64_t *at = part->words + block * BLOCK_WORDS;
    uint64_t right = 0, value = 0;
    unsigned again = 0;
    char physical[40];
    for (size_t i = 0; i < BLOCK_WORDS; i++, at++) {
        right = flip ^ word_of(pattern, at, block * BLOCK_WORDS + i, seed);
        value = *(const volatile uint64_t *)at;
        if (value != right)
            break;
    }
    if (value == right)
        return refuse_reading(thread, part->words + block * BLOCK_WORDS, pattern);
    for (unsigned i = 0; i < READ_AGAIN; i++)
        again += read_again(at) != right;
    name_physical(physical, sizeof physical, at);
    run_wrong(thread, right, value, "address 0x%" PRIxPTR ", %spattern %s", (uintptr_t)at, physical,
              pattern_names[pattern]);
    run_reason(thread->run,
               "CPU %d read 0x%" PRIx64 " in place of 0x%" PRIx64 " at address 0x%" PRIxPTR
               ", %spattern %s, and wrong again in %u of %d readings: this memory or this CPU does "
               "not work correctly",
               thread->cpu, value, right, (uintptr_t)at, physical, pattern_names[pattern], again,
               READ_AGAIN);
    return EXIT_WRONG;
}

/* ---- life ----------------------------------------------------------------------------------- */

static const struct demand demand = {
    .arrays = 1, .granule = BLOCK_BYTES, .granule_name = "block", .beyond_caches = true};

static int check(struct run *run)
{
    return working_set_check(run, &demand);
}

static int open_patterns(struct run *run)
{
    struct patterns *shared = calloc(1, sizeof *shared);
    run_set_shared(run, shared);
    if (shared)
        shared->parts = calloc(run_threads(run), sizeof *shared->parts);
    if (!shared || !shared->parts) {
        run_reason(run, "not enough memory for %u threads: use fewer", run_threads(run));
        return EXIT_RESOURCE;
    }
    shared->seed = run_count(run, "seed");
    run_set_unit(run, BLOCK_BYTES, UINT64_MAX / BLOCK_BYTES);
    int failure = working_set_reserve(run, &shared->set, &demand);
    shared->blocks = shared->set.array_bytes / BLOCK_BYTES;
    return failure;
}

static void close_patterns(struct run *run)
{
    struct patterns *shared = run_shared(run);
    if (!shared)
        return;
    working_set_release(&shared->set);
    free(shared->parts);
    free(shared);
}

static int setup(struct thread *thread)
{
    struct patterns *shared = run_shared(thread->run);
    struct part *part = &shared->parts[thread->index];
    int failure = working_set_touch(thread, &shared->set);
    if (failure)
        return failure;
    part->words = working_set_array(&shared->set, thread->index, 0);
    for (size_t block = 0; block < shared->blocks; block++) {
        if (block % BLOCKS_BETWEEN_LOOKS == 0 && run_stopping(thread->run))
            return EXIT_OK;
        write_block(part->words, block, shared->seed, 0);
    }
    return EXIT_OK;
}

static int calibrate(struct thread *thread)
{
    struct patterns *shared = run_shared(thread->run);
    if (thread->index == 0)
        working_set_inspect(thread->run, &shared->set);
    return EXIT_OK;
}

static int step(struct thread *thread, uint64_t batch)
{
    const struct patterns *shared = run_shared(thread->run);
    struct part *part = &shared->parts[thread->index];
    for (uint64_t i = 0; i < batch; i++) {
        if (!block_holds(part->words, part->block, shared->seed, part->pass))
            return refuse_block(thread, part, part->block, shared->seed, part->pass);
        write_block(part->words, part->block, shared->seed, part->pass + 1);
        if (++part->block == shared->blocks) {
            part->block = 0;
            part->pass++;
        }
        part->units++;
    }
    return EXIT_OK;
}

/* What one CPU has written is read by the next one. */
static int verify(struct thread *thread, uint64_t units)
{
    const struct patterns *shared = run_shared(thread->run);
    const struct part *part = &shared->parts[(thread->index + 1) % run_threads(thread->run)];
    int failure = run_check_units(thread, shared->parts[thread->index].units, units);
    for (size_t block = 0; block < shared->blocks && !failure; block++) {
        uint64_t pass = part->pass + (block < part->block);
        if (block % BLOCKS_BETWEEN_LOOKS == 0 && run_stopping(thread->run))
            return EXIT_OK;
        if (!block_holds(part->words, block, shared->seed, pass))
            failure = refuse_block(thread, part, block, shared->seed, pass);
    }
    return failure;
}

static void finish(struct thread *thread)
{
    const struct patterns *shared = run_shared(thread->run);
    run_metric(thread->run, "huge_page_ratio", shared->set.huge_page_ratio);
}

/* ---- table ---------------------------------------------------------------------------------- */

static const struct param params[] = {
    {.name = "seed",
     .type = PARAM_COUNT,
     .initial = "0",
     .min = 0,
     .max = 1e15,
     .roles = ROLE_HOW,
     .help = "Selects the first pattern and the numbers of the random pattern."},
    PARAMS_WORKING_SET,
    {.name = NULL}};

static const struct metric metrics[] = {METRIC_HUGE_PAGE_RATIO, {.name = NULL}};

const struct workload patterns_workload = {
    .name = "patterns",
    .description = "Writes patterns to memory and reads them back one whole pass later: walking "
                   "ones, alternating bits and lines, each word's own address, random numbers, and "
                   "the complement of each.",
    .rate = {.name = "bytes_per_second",
             .unit = "byte/s",
             .description = "Bytes per second that were read back, compared and rewritten: each "
                            "thread's median clean slice, summed over the threads.",
             .combine = COMBINE_SUM,
             .work = "byte"},
    .params = params,
    .metrics = metrics,
    .setup_s = 1.2,
    .setup_s_per_byte = 1.1e-9,
    .unsupported = working_set_unsupported,
    .check = check,
    .open = open_patterns,
    .close = close_patterns,
    .setup = setup,
    .calibrate = calibrate,
    .step = step,
    .verify = verify,
    .finish = finish,
};
