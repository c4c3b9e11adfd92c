/* What random_access is held against: the shortest loops in assembly, written by hand, that read,
 * write or update blocks of 8 bytes at random places. Prints the seconds of one access, the mean
 * over the given time.
 *
 * usage: random_access read|write|update precomputed|lcg 4k|huge BYTES SECONDS
 *
 * precomputed: the places stand in an array of 32-bit indices. lcg: a linear congruential generator
 * in a register goes through all blocks once before it comes back to the first. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifndef __x86_64__
#error "the loops are written for x86-64"
#endif

enum { BLOCK = 8, UNROLL = 8, HUGE_PAGE = 2 << 20 };
/* So many places before they come round again, as in mem-bench: with 64 bytes each, 2 GiB. */
#define PLACES (UINT64_C(1) << 25)
#define BATCH (UINT64_C(1) << 20)
/* Hull and Dobell: full period modulo a power of two where the multiplier is 1 modulo 4 and the
 * increment odd. */
#define MULTIPLIER UINT64_C(6364136223846793005)
#define INCREMENT UINT64_C(1442695040888963407)

struct place {
    uint64_t *blocks;
    uint64_t mask; /* their number less one */
    const uint32_t *indices;
    uint64_t next; /* index into indices, or the generator's state */
    uint64_t value;
};

#define EIGHT(access)                                                                              \
    access(0) access(4) access(8) access(12) access(16) access(20) access(24) access(28)

/* rax is the number of the block, %[value] what is read into or written. */
#define READ "xor (%[blocks],%%rax,8), %[value]\n\t"
#define WRITE "mov %[value], (%[blocks],%%rax,8)\n\t"
#define UPDATE "add %[value], (%[blocks],%%rax,8)\n\t"

#define LOOKED_UP_READ(offset) "mov " #offset "(%[at]), %%eax\n\t" READ
#define LOOKED_UP_WRITE(offset) "mov " #offset "(%[at]), %%eax\n\t" WRITE
#define LOOKED_UP_UPDATE(offset) "mov " #offset "(%[at]), %%eax\n\t" UPDATE

#define GENERATE                                                                                   \
    "imul %[multiplier], %[state]\n\t"                                                             \
    "add %[increment], %[state]\n\t"                                                               \
    "mov %[state], %%rax\n\t"                                                                      \
    "and %[mask], %%rax\n\t"
#define GENERATED_READ(offset) GENERATE READ
#define GENERATED_WRITE(offset) GENERATE WRITE
#define GENERATED_UPDATE(offset) GENERATE UPDATE

#define LOOKED_UP_LOOP(name, access)                                                               \
    static void name(struct place *p, uint64_t count)                                              \
    {                                                                                              \
        const uint32_t *at = p->indices + p->next, *end = at + count;                              \
        __asm__ volatile("1:\n\t" EIGHT(access) "add $32, %[at]\n\t"                               \
                                                "cmp %[end], %[at]\n\t"                            \
                                                "jb 1b"                                            \
                         : [at] "+r"(at), [value] "+r"(p->value)                                   \
                         : [blocks] "r"(p->blocks), [end] "r"(end)                                 \
                         : "rax", "cc", "memory");                                                 \
        p->next = (p->next + count) % PLACES;                                                      \
    }

#define GENERATED_LOOP(name, access)                                                               \
    static void name(struct place *p, uint64_t count)                                              \
    {                                                                                              \
        uint64_t left = count;                                                                     \
        __asm__ volatile("1:\n\t" EIGHT(access) "sub $8, %[left]\n\t"                              \
                                                "jnz 1b"                                           \
                         : [left] "+r"(left), [value] "+r"(p->value), [state] "+r"(p->next)        \
                         : [blocks] "r"(p->blocks), [mask] "r"(p->mask),                           \
                           [multiplier] "r"(MULTIPLIER), [increment] "r"(INCREMENT)                \
                         : "rax", "cc", "memory");                                                 \
    }

LOOKED_UP_LOOP(read_looked_up, LOOKED_UP_READ)
LOOKED_UP_LOOP(write_looked_up, LOOKED_UP_WRITE)
LOOKED_UP_LOOP(update_looked_up, LOOKED_UP_UPDATE)
GENERATED_LOOP(read_generated, GENERATED_READ)
GENERATED_LOOP(write_generated, GENERATED_WRITE)
GENERATED_LOOP(update_generated, GENERATED_UPDATE)

static const struct {
    const char *operation, *index;
    void (*loop)(struct place *, uint64_t);
} loops[] = {
    {"read", "precomputed", read_looked_up},     {"read", "lcg", read_generated},
    {"write", "precomputed", write_looked_up},   {"write", "lcg", write_generated},
    {"update", "precomputed", update_looked_up}, {"update", "lcg", update_generated},
};

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *reserved(size_t bytes, int advice)
{
    char *base =
        mmap(NULL, bytes + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        exit(3);
    base += HUGE_PAGE - (uintptr_t)base % HUGE_PAGE;
    if (madvise(base, bytes, advice))
        exit(3);
    return memset(base, 1, bytes);
}

/* In huge pages whatever the blocks have: reading it is to cost no translations of addresses. */
static const uint32_t *indices(uint64_t mask)
{
    uint32_t *all = reserved(PLACES * sizeof *all, MADV_HUGEPAGE);
    uint64_t state = 1;
    for (uint64_t i = 0; i < PLACES; i++) {
        state = state * MULTIPLIER + INCREMENT;
        all[i] = (uint32_t)(state >> 32 & mask);
    }
    return all;
}

static double access_time_s(void (*loop)(struct place *, uint64_t), struct place *p,
                            double wanted_s)
{
    loop(p, BATCH);
    double start_s = now_s(), taken_s = 0;
    uint64_t count = 0;
    for (; taken_s < wanted_s; taken_s = now_s() - start_s, count += BATCH)
        loop(p, BATCH);
    return taken_s / (double)count;
}

int main(int argc, char **argv)
{
    if (argc != 6)
        return 2;
    int advice = strcmp(argv[3], "huge") ? MADV_NOHUGEPAGE : MADV_HUGEPAGE;
    uint64_t count = strtoull(argv[4], NULL, 10) / BLOCK;
    if (count < 2 || count & (count - 1) || count > UINT64_C(1) << 32)
        return 2;
    struct place p = {reserved(count * BLOCK, advice), count - 1, indices(count - 1), 0, 1};
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        if (!strcmp(argv[1], loops[i].operation) && !strcmp(argv[2], loops[i].index)) {
            printf("%.6e\n", access_time_s(loops[i].loop, &p, atof(argv[5])));
            return 0;
        }
    return 2;
}
