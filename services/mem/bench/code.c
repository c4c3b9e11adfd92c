#define _GNU_SOURCE
#include "code.h"

#include "kernels.h"
#include "order.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- blocks --------------------------------------------------------------------------------- */

/* Each block adds a number to one of two sums, in turn, so that no jump waits for the addition of
 * the block before it. Numbers fit an immediate operand of aarch64, and are never 0. */
enum { VALUES = 4093 };

static uint32_t value_of(uint64_t number)
{
    return (uint32_t)(number / 2 % VALUES) + 1;
}

/* What either sum is after so many blocks, a multiple of CODE_UNIT of them. */
static uint64_t sum_of(uint64_t blocks)
{
    uint64_t each = blocks / 2, rest = each % VALUES;
    return each / VALUES * (VALUES * (VALUES + 1) / 2) + rest * (rest + 1) / 2;
}

/* Whether it counts a unit, and leaves the code behind the last one. */
static bool ends_unit(uint64_t number)
{
    return number % CODE_UNIT == CODE_UNIT - 1;
}

#if defined(__x86_64__)
/* GOES_ON: from the beginning of a block that ends a unit to its jump. REGION_BYTES: a jump reaches
 * over three of them. */
enum { GOES_ON = 12, REGION_BYTES = 512 * 1024 * 1024, INT3 = 0xcc };

static void put(unsigned char **to, const void *bytes, size_t size)
{
    memcpy(*to, bytes, size);
    *to += size;
}

/* The cache line at `at`, written to `line`. int3 ends what a core decodes ahead of the jump.
 * rax, rdx: the sums; rcx: units left; rsi: the jump to go on with; rdi: back to code_units(). */
static void encode(unsigned char *line, const char *at, const char *next, uint64_t number)
{
    static const unsigned char add[2][3] = {{0x48, 0x81, 0xc0},  /* add $value, %rax */
                                            {0x48, 0x81, 0xc2}}; /* add $value, %rdx */
    static const unsigned char count[] = {0x48, 0xff, 0xc9,      /* dec %rcx */
                                          0x74, 0x05};           /* jz back */
    static const unsigned char jump[] = {0xe9};                  /* jmp next */
    static const unsigned char back[] = {0x48, 0x8d, 0x35, 0xf4,
                                         0xff, 0xff, 0xff, /* back: lea jump(%rip), %rsi */
                                         0xff, 0xe7};      /* jmp *%rdi */
    unsigned char *to = line;
    uint32_t value = value_of(number);
    int32_t distance;
    memset(line, INT3, LINE_BYTES);
    put(&to, add[number % 2], sizeof add[0]);
    put(&to, &value, sizeof value);
    if (ends_unit(number))
        put(&to, count, sizeof count);
    put(&to, jump, sizeof jump);
    distance = (int32_t)(next - at - (to - line) - (ptrdiff_t)sizeof distance);
    put(&to, &distance, sizeof distance);
    if (ends_unit(number))
        put(&to, back, sizeof back);
}

static void go(struct code *code, uint64_t units)
{
    __asm__ volatile("lea 1f(%%rip), %%rdi\n\t"
                     "jmp *%%rsi\n"
                     "1:"
                     : "+a"(code->sums[0]), "+d"(code->sums[1]), "+c"(units), "+S"(code->at)
                     :
                     : "rdi", "cc", "memory");
}
#else
/* As on x86-64. A jump reaches 128 MiB. */
enum { GOES_ON = 12, REGION_BYTES = 32 * 1024 * 1024 };

/* x0, x1: the sums; x2: units left; x3: the jump to go on with; x30: back to code_units(). */
static void encode(unsigned char *line, const char *at, const char *next, uint64_t number)
{
    uint32_t words[LINE_BYTES / sizeof(uint32_t)] = {0}; /* 0: udf */
    uint32_t sum = number % 2, size = 0;
    words[size++] = 0x91000000u | value_of(number) << 10 | sum << 5 | sum; /* add x, x, #value */
    if (ends_unit(number)) {
        words[size++] = 0xf1000442u; /* subs x2, x2, #1 */
        words[size++] = 0x54000040u; /* b.eq back */
    }
    ptrdiff_t distance = (next - at) / (ptrdiff_t)sizeof *words - (ptrdiff_t)size;
    words[size++] = 0x14000000u | ((uint32_t)distance & 0x03ffffffu); /* b next */
    if (ends_unit(number)) {
        words[size++] = 0x10ffffe3u; /* back: adr x3, jump */
        words[size++] = 0xd65f03c0u; /* ret */
    }
    memcpy(line, words, sizeof words);
}

static void go(struct code *code, uint64_t units)
{
    register uint64_t even __asm__("x0") = code->sums[0], odd __asm__("x1") = code->sums[1];
    register uint64_t left __asm__("x2") = units;
    register const char *at __asm__("x3") = code->at;
    __asm__ volatile("blr x3"
                     : "+r"(even), "+r"(odd), "+r"(left), "+r"(at)
                     :
                     : "x30", "cc", "memory");
    code->sums[0] = even;
    code->sums[1] = odd;
    code->at = at;
}
#endif

/* ---- order ---------------------------------------------------------------------------------- */

/* The blocks in the order of the cycle, over and over. It goes through every other region upwards
 * and through the others on its way back: no jump leads further than over three of them. */
struct tour {
    const struct code *code;
    uint64_t turn;                   /* regions entered */
    uint64_t first, blocks, visited; /* of the region that it is in */
    struct permutation permutation;
};

static void enter_region(struct tour *tour)
{
    const struct code *code = tour->code;
    uint64_t most = REGION_BYTES / code->stride, regions = (code->count + most - 1) / most;
    uint64_t turn = tour->turn++ % regions;
    uint64_t region = turn < (regions + 1) / 2 ? 2 * turn : 2 * (regions - turn) - 1;
    tour->first = region * most;
    tour->blocks = code->count - tour->first < most ? code->count - tour->first : most;
    tour->visited = 0;
    permutation_begin(&tour->permutation, tour->blocks, code->seed);
}

static char *next_block(struct tour *tour)
{
    const struct code *code = tour->code;
    if (tour->visited == tour->blocks)
        enter_region(tour);
    uint32_t within = (uint32_t)tour->visited++;
    if (code->random)
        permutation_fill(&tour->permutation, &within, 1);
    uint64_t place = tour->first + within;
    return code->memory + place * code->stride +
           LINE_BYTES * spread_line(place, code->stride / LINE_BYTES);
}

/* ---- life ----------------------------------------------------------------------------------- */

const char *code_refused(void)
{
    static char reason[200];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *probe = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (probe == MAP_FAILED) /* check() says how much memory is lacking */
        return NULL;
    if (mprotect(probe, page, PROT_READ | PROT_EXEC))
        snprintf(reason, sizeof reason,
                 "this system lets no program execute what it has written (%s): allow it, such as "
                 "execmem in SELinux or MemoryDenyWriteExecute=no in the unit of systemd",
                 strerror(errno));
    munmap(probe, page);
    return reason[0] ? reason : NULL;
}

static void write_blocks(struct code *code)
{
    struct tour tour = {.code = code};
    char *at = next_block(&tour), *last = at;
    for (uint64_t number = 0; number < code->count; number++) {
        char *next = next_block(&tour);
        encode((unsigned char *)at, at, next, number);
        last = at;
        at = next;
    }
    code->at = last + GOES_ON;
}

int code_begin(const struct thread *thread, struct code *code, void *memory, size_t bytes,
               size_t part_bytes, size_t stride, bool random)
{
    *code = (struct code){.memory = memory,
                          .stride = stride,
                          .count = bytes / stride,
                          .random = random,
                          .seed = thread->index};
    write_blocks(code);
    if (mprotect(memory, part_bytes, PROT_READ | PROT_EXEC)) {
        run_reason(thread->run,
                   "the code of thread %u cannot be made executable (%s): use fewer "
                   "threads, or --pages 4k",
                   thread->index, strerror(errno));
        return EXIT_RESOURCE;
    }
    __builtin___clear_cache(code->memory, code->memory + bytes);
    return EXIT_OK;
}

void code_units(struct code *code, uint64_t units)
{
    go(code, units);
    code->jumps += units * CODE_UNIT;
}

/* ---- check ---------------------------------------------------------------------------------- */

/* Both sums say that each block was executed as often as the cycle leads through it. */
static bool sums_hold(const struct code *code)
{
    uint64_t passes = code->jumps / code->count, rest = code->jumps % code->count;
    uint64_t expected = passes * sum_of(code->count) + sum_of(rest);
    return code->sums[0] == expected && code->sums[1] == expected;
}

/* The blocks are what was written, and the next jump is that of the last block executed. */
static bool blocks_hold(const struct code *code)
{
    struct tour tour = {.code = code};
    uint64_t last = (code->jumps + code->count - 1) % code->count;
    char *at = next_block(&tour);
    for (uint64_t number = 0; number < code->count; number++) {
        char *next = next_block(&tour);
        unsigned char line[LINE_BYTES];
        encode(line, at, next, number);
        if (memcmp(at, line, sizeof line) || (number == last && code->at != at + GOES_ON))
            return false;
        at = next;
    }
    return true;
}

int code_verify(const struct thread *thread, const struct code *code, uint64_t units)
{
    int failure = run_check_units(thread, code->jumps / CODE_UNIT, units);
    if (failure)
        return failure;
    if (sums_hold(code) && blocks_hold(code))
        return EXIT_OK;
    run_reason(thread->run,
               "the jumps of thread %u, CPU %d, did not lead through the blocks where they must: "
               "this CPU, its memory or this build works wrongly, trust no figure of it",
               thread->index, thread->cpu);
    return EXIT_WRONG;
}
