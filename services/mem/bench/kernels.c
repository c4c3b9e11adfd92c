#include "kernels.h"

#include "cpu_features.h"

#include <string.h>

/* What the loops over cache lines take; `sums` gets what was read, in as many parts as a register
 * has elements. */
#define LINES_PARAMETERS                                                                           \
    unsigned char *a, const unsigned char *b, const unsigned char *c, size_t bytes, double factor, \
        uint64_t rounds, uint64_t *sums

#define AHEAD_BYTES "32768" /* of eight pages */

enum { REGISTER_ELEMENTS = LINE_BYTES / ELEMENT_BYTES }; /* at most */

typedef void lines_function(LINES_PARAMETERS);

#if defined(__x86_64__)
#include "kernels_x86_64.h"
#else
#include "kernels_aarch64.h"
#endif

/* ---- loops ---------------------------------------------------------------------------------- */

/* The instructions of each architecture stand in its header. */
/* clang-format off */

/* Any number of lines in one stream. In the first level of caches a round takes some hundred cycles:
 * what a call does before and after would show beside it, so all rounds are one call. */
#define LOOP(name, ISA, DO, STORE)                                                                 \
    static void name##_lines(LINES_PARAMETERS)                                                     \
    {                                                                                              \
        size_t i, whole = bytes / (4 * LINE_BYTES) * (4 * LINE_BYTES);                             \
        __asm__ volatile(BEGIN_##ISA                                                               \
                         "5:\n\t"                                                                  \
                         CLEAR("i") SKIP_ZERO("whole", "2")                                        \
                         ".p2align 6\n1:\n\t"                                                      \
                         GROUP(LINE_##ISA, DO, STORE)                                              \
                         ADVANCE("256") REPEAT_BELOW("whole", "1")                                 \
                         "2:\n\t"                                                                  \
                         SKIP_AT("bytes", "4")                                                     \
                         "3:\n\t"                                                                  \
                         ONE_LINE(LINE_##ISA, DO, STORE)                                           \
                         ADVANCE("64") REPEAT_BELOW("bytes", "3")                                  \
                         "4:\n\t"                                                                  \
                         REPEAT_COUNTED("rounds", "5")                                             \
                         END_##ISA                                                                 \
                         : [i] "=&r"(i), [rounds] "+&r"(rounds)                                    \
                         : OPERANDS, [whole] "r"(whole), [bytes] "r"(bytes)                        \
                         : CLOBBERED);                                                             \
    }

/* Whole groups of so many pages, side by side; one round. */
#define LOOP_PAGES(name, ISA, DO, STORE, streams, step)                                            \
    static void name##_pages_##streams(LINES_PARAMETERS)                                           \
    {                                                                                              \
        (void)rounds;                                                                              \
        size_t i = 0, end;                                                                         \
        __asm__ volatile(BEGIN_##ISA                                                               \
                         "1:\n\t"                                                                  \
                         SET_END("4096")                                                           \
                         ".p2align 6\n2:\n\t"                                                      \
                         PAGES_BY_##streams(LINE_##ISA, DO, STORE)                                 \
                         ADVANCE(#step) REPEAT_BELOW("end", "2")                                   \
                         ADVANCE("(4096*(" #streams "-1))") REPEAT_BELOW("bytes", "1")             \
                         END_##ISA                                                                 \
                         : [i] "+&r"(i), [end] "=&r"(end)                                          \
                         : OPERANDS, [bytes] "r"(bytes)                                            \
                         : CLOBBERED);                                                             \
    }

/* Whole pages in one stream, with a line of a page further on for each part; one round. */
#define PART_AHEAD(array, length, label, ...)                                                      \
    ASK_AHEAD(array) SET_END(length)                                                               \
    ".p2align 6\n" label ":\n\t"                                                                   \
    GROUP(__VA_ARGS__)                                                                             \
    ADVANCE("256") REPEAT_BELOW("end", label)
#define LOOP_AHEAD(name, ISA, PARTS, DO, STORE)                                                    \
    static void name##_pages_ahead(LINES_PARAMETERS)                                               \
    {                                                                                              \
        (void)rounds;                                                                              \
        size_t i = 0, end;                                                                         \
        __asm__ volatile(BEGIN_##ISA                                                               \
                         "1:\n\t"                                                                  \
                         PARTS(PART_AHEAD, LINE_##ISA, DO, STORE)                                  \
                         REPEAT_BELOW("bytes", "1")                                                \
                         END_##ISA                                                                 \
                         : [i] "+&r"(i), [end] "=&r"(end)                                          \
                         : OPERANDS, [bytes] "r"(bytes)                                            \
                         : CLOBBERED);                                                             \
    }
/* clang-format on */

#define INLINE static inline __attribute__((always_inline))

/* ---- what is left behind the last cache line ------------------------------------------------ */

INLINE double element_at(const unsigned char *at)
{
    double x;
    memcpy(&x, at, sizeof x);
    return x;
}

INLINE double result_of(enum operation operation, const unsigned char *b, const unsigned char *c,
                        double factor)
{
    switch (operation) {
    case OPERATION_COPY:
        return element_at(b);
    case OPERATION_SCALE:
        return factor * element_at(b);
    case OPERATION_ADD:
        return element_at(b) + element_at(c);
    case OPERATION_TRIAD:
        return element_at(b) + factor * element_at(c);
    default:
        return factor;
    }
}

INLINE uint64_t do_element(enum operation operation, unsigned char *a, const unsigned char *b,
                           const unsigned char *c, double factor)
{
    uint64_t read = 0;
    if (operation == OPERATION_READ) {
        memcpy(&read, b, sizeof read);
        return read;
    }
    double result = result_of(operation, b, c, factor);
    memcpy(a, &result, sizeof result);
    return 0;
}

INLINE uint64_t do_byte(enum operation operation, unsigned char *a, const unsigned char *b,
                        double factor)
{
    if (operation == OPERATION_READ)
        return *b;
    if (operation == OPERATION_COPY)
        *a = *b;
    else
        memcpy(a, &factor, 1);
    return 0;
}

/* Keeps the compiler from making calls of memcpy() out of loops, and one round out of several. */
INLINE void keep_stores(void)
{
    __asm__ volatile("" ::: "memory");
}

INLINE uint64_t do_rest(enum operation operation, unsigned char *a, const unsigned char *b,
                        const unsigned char *c, size_t bytes, double factor)
{
    uint64_t sum = 0;
    size_t i = 0;
    for (; i + ELEMENT_BYTES <= bytes; i += ELEMENT_BYTES) {
        sum += do_element(operation, a + i, b + i, c + i, factor);
        keep_stores();
    }
    for (; i < bytes; i++) {
        sum += do_byte(operation, a + i, b + i, factor);
        keep_stores();
    }
    return sum;
}

/* ---- from loops to kernels ------------------------------------------------------------------ */

INLINE uint64_t do_lines(lines_function *loop, unsigned char *a, const unsigned char *b,
                         const unsigned char *c, size_t bytes, double factor, uint64_t rounds)
{
    uint64_t sums[REGISTER_ELEMENTS] = {0}, sum = 0;
    loop(a, b, c, bytes, factor, rounds, sums);
    for (int i = 0; i < REGISTER_ELEMENTS; i++)
        sum += sums[i];
    return sum;
}

INLINE uint64_t do_round(enum operation operation, lines_function *lines, unsigned char *a,
                         const unsigned char *b, const unsigned char *c, size_t bytes,
                         double factor)
{
    size_t whole = bytes / LINE_BYTES * LINE_BYTES;
    uint64_t sum = whole ? do_lines(lines, a, b, c, whole, factor, 1) : 0;
    return sum + do_rest(operation, a + whole, b + whole, c + whole, bytes - whole, factor);
}

INLINE uint64_t do_all(enum operation operation, lines_function *lines, unsigned char *a,
                       const unsigned char *b, const unsigned char *c, size_t bytes, double factor,
                       uint64_t rounds)
{
    uint64_t sum = 0;
    if (bytes % LINE_BYTES == 0)
        return do_lines(lines, a, b, c, bytes, factor, rounds);
    while (rounds-- > 0)
        sum += do_round(operation, lines, a, b, c, bytes, factor);
    return sum;
}

/* Groups of pages are worked on from the beginning of a page on. */
INLINE uint64_t do_pages(enum operation operation, lines_function *lines, lines_function *pages,
                         size_t streams, unsigned char *a, const unsigned char *b,
                         const unsigned char *c, size_t bytes, double factor, uint64_t rounds)
{
    const unsigned char *main = operation == OPERATION_READ ? b : a;
    size_t group = streams * PAGE_BYTES, ahead = -(uintptr_t)main % PAGE_BYTES;
    if (bytes < ahead + group || (uintptr_t)main % LINE_BYTES)
        return do_all(operation, lines, a, b, c, bytes, factor, rounds);
    size_t middle = (bytes - ahead) / group * group, behind = ahead + middle;
    uint64_t sum = 0;
    while (rounds-- > 0) {
        sum += ahead ? do_lines(lines, a, b, c, ahead, factor, 1) : 0;
        sum += do_lines(pages, a + ahead, b + ahead, c + ahead, middle, factor, 1);
        if (behind < bytes)
            sum += do_round(operation, lines, a + behind, b + behind, c + behind, bytes - behind,
                            factor);
    }
    return sum;
}

#define KERNEL_PARAMETERS                                                                          \
    unsigned char *a, const unsigned char *b, const unsigned char *c, size_t bytes, double factor, \
        uint64_t rounds

#define KERNEL_PAGES(name, operation, form, streams)                                               \
    static uint64_t name##_##form(KERNEL_PARAMETERS)                                               \
    {                                                                                              \
        return do_pages(OPERATION_##operation, name##_lines, name##_pages_##form, streams, a, b,   \
                        c, bytes, factor, rounds);                                                 \
    }

/* The first line of a page waits for the address translation and starts the core's prefetchers anew.
 * So one line of each array's page some way ahead is requested early: while the line is on its way,
 * the page behind it becomes known. The arrays take turns within a page: requested at once, their
 * lines wait for each other. A part: array, length, label. */
#define PARTS_READ(PART, ...) PART("b", "4096", "2", __VA_ARGS__)
#define PARTS_WRITE(PART, ...) PART("a", "4096", "2", __VA_ARGS__)
#define PARTS_COPY(PART, ...)                                                                      \
    PART("b", "2048", "2", __VA_ARGS__) PART("a", "2048", "3", __VA_ARGS__)
#define PARTS_SCALE PARTS_COPY
#define PARTS_ADD(PART, ...)                                                                       \
    PART("b", "1280", "2", __VA_ARGS__)                                                            \
    PART("c", "1280", "3", __VA_ARGS__) PART("a", "1536", "4", __VA_ARGS__)
#define PARTS_TRIAD PARTS_ADD

/* One operation of one isa with one kind of store, in all its forms. */
#define KERNEL(name, ISA, operation, STORE)                                                        \
    LOOP(name, ISA, operation##_##ISA, STORE##_##ISA)                                              \
    LOOP_PAGES(name, ISA, operation##_##ISA, STORE##_##ISA, 4, 256)                                \
    LOOP_PAGES(name, ISA, operation##_##ISA, STORE##_##ISA, 8, 128)                                \
    LOOP_AHEAD(name, ISA, PARTS_##operation, operation##_##ISA, STORE##_##ISA)                     \
    static uint64_t name##_1(KERNEL_PARAMETERS)                                                    \
    {                                                                                              \
        return do_all(OPERATION_##operation, name##_lines, a, b, c, bytes, factor, rounds);        \
    }                                                                                              \
    KERNEL_PAGES(name, operation, 4, 4)                                                            \
    KERNEL_PAGES(name, operation, 8, 8)                                                            \
    KERNEL_PAGES(name, operation, ahead, 1)

#define KERNELS(isa, ISA, features)                                                                \
    KERNEL(read_##isa, ISA, READ, PLAIN)                                                           \
    KERNEL(write_##isa##_plain, ISA, WRITE, PLAIN)                                                 \
    KERNEL(write_##isa##_nt, ISA, WRITE, NT)                                                       \
    KERNEL(copy_##isa##_plain, ISA, COPY, PLAIN)                                                   \
    KERNEL(copy_##isa##_nt, ISA, COPY, NT)                                                         \
    KERNEL(scale_##isa##_plain, ISA, SCALE, PLAIN)                                                 \
    KERNEL(scale_##isa##_nt, ISA, SCALE, NT)                                                       \
    KERNEL(add_##isa##_plain, ISA, ADD, PLAIN)                                                     \
    KERNEL(add_##isa##_nt, ISA, ADD, NT)                                                           \
    KERNEL(triad_##isa##_plain, ISA, TRIAD, PLAIN)                                                 \
    KERNEL(triad_##isa##_nt, ISA, TRIAD, NT)

FOR_EACH_ISA(KERNELS)

/* ---- the C library -------------------------------------------------------------------------- */

static uint64_t write_libc(KERNEL_PARAMETERS)
{
    (void)b;
    (void)c;
    unsigned char byte;
    memcpy(&byte, &factor, 1);
    while (rounds-- > 0) {
        memset(a, byte, bytes);
        keep_stores();
    }
    return 0;
}

static uint64_t copy_libc(KERNEL_PARAMETERS)
{
    (void)c;
    (void)factor;
    while (rounds-- > 0) {
        memcpy(a, b, bytes);
        keep_stores();
    }
    return 0;
}

/* ---- table ---------------------------------------------------------------------------------- */

#define ROW(set, needs, what, kind, number, ahead, called)                                         \
    {.operation = OPERATION_##what,                                                                \
     .isa = #set,                                                                                  \
     .store = #kind,                                                                               \
     .streams = #number,                                                                           \
     .prefetch = #ahead,                                                                           \
     .features = (needs),                                                                          \
     .function = called},
#define ROWS_FORMS(isa, features, operation, store, name)                                          \
    ROW(isa, features, operation, store, 1, none, name##_1)                                        \
    ROW(isa, features, operation, store, 4, none, name##_4)                                        \
    ROW(isa, features, operation, store, 8, none, name##_8)                                        \
    ROW(isa, features, operation, store, 1, pages, name##_ahead)
#define ROWS_STORES(isa, features, operation, name)                                                \
    ROWS_FORMS(isa, features, operation, plain, name##_##isa##_plain)                              \
    ROWS_FORMS(isa, features, operation, nt, name##_##isa##_nt)
#define ROWS(isa, ISA, features)                                                                   \
    ROWS_FORMS(isa, features, READ, plain, read_##isa)                                             \
    ROWS_STORES(isa, features, WRITE, write)                                                       \
    ROWS_STORES(isa, features, COPY, copy)                                                         \
    ROWS_STORES(isa, features, SCALE, scale)                                                       \
    ROWS_STORES(isa, features, ADD, add)                                                           \
    ROWS_STORES(isa, features, TRIAD, triad)

const struct kernel kernels[] = {
    FOR_EACH_ISA(ROWS) /* the C library chooses its instructions itself */
    {OPERATION_WRITE, NULL, "libc", "1", "none", 0, write_libc},
    {OPERATION_COPY, NULL, "libc", "1", "none", 0, copy_libc},
    {.function = NULL},
};

void kernel_fence(void)
{
    STORE_FENCE();
}

uint64_t kernel_empty(KERNEL_PARAMETERS)
{
    (void)a;
    (void)b;
    (void)c;
    (void)factor;
    (void)rounds;
    return bytes;
}
