/* `o` is an offset into the arrays, `n` the number of an accumulator, `r` the register name before
 * a number. Registers 8 to 11 add up what is read, 15 holds the factor; the addresses of a page are
 * in x12 to x14. */

/* Laid out by hand: the formatter does not see where an instruction ends. */
/* clang-format off */

/* ---- stores of a pair of registers ---------------------------------------------------------- */

#define PLAIN_SCALAR(o, n, m) "stp d" n ", d" m ", [x12, #(" o ")]\n\t"
#define NT_SCALAR(o, n, m) "stnp d" n ", d" m ", [x12, #(" o ")]\n\t"
#define PLAIN_NEON(o, n, m) "stp q" n ", q" m ", [x12, #(" o ")]\n\t"
#define NT_NEON(o, n, m) "stnp q" n ", q" m ", [x12, #(" o ")]\n\t"

/* ---- what is done to a pair of registers ---------------------------------------------------- */

#define READ_SCALAR(o, n, STORE)                                                                   \
    "ldp x16, x17, [x13, #(" o ")]\n\tadd x" n ", x" n ", x16\n\tadd x" n ", x" n ", x17\n\t"
#define READ_NEON(o, n, STORE)                                                                     \
    "ldp q0, q1, [x13, #(" o ")]\n\t"                                                              \
    "add v" n ".2d, v" n ".2d, v0.2d\n\tadd v" n ".2d, v" n ".2d, v1.2d\n\t"

#define WRITE_PAIR(o, STORE) STORE(o, "15", "15")
#define COPY_PAIR(o, STORE, r) "ldp " r "0, " r "1, [x13, #(" o ")]\n\t" STORE(o, "0", "1")
#define SCALE_PAIR(o, STORE, r, s, v)                                                              \
    "ldp " r "0, " r "1, [x13, #(" o ")]\n\t"                                                      \
    "fmul " v "0" s ", " v "0" s ", " v "15" s "\n\t"                                              \
    "fmul " v "1" s ", " v "1" s ", " v "15" s "\n\t" STORE(o, "0", "1")
#define ADD_PAIR(o, STORE, r, s, v)                                                                \
    "ldp " r "0, " r "1, [x13, #(" o ")]\n\tldp " r "2, " r "3, [x14, #(" o ")]\n\t"               \
    "fadd " v "0" s ", " v "0" s ", " v "2" s "\n\t"                                               \
    "fadd " v "1" s ", " v "1" s ", " v "3" s "\n\t" STORE(o, "0", "1")

#define WRITE_SCALAR(o, n, STORE) WRITE_PAIR(o, STORE)
#define COPY_SCALAR(o, n, STORE) COPY_PAIR(o, STORE, "d")
#define SCALE_SCALAR(o, n, STORE) SCALE_PAIR(o, STORE, "d", "", "d")
#define ADD_SCALAR(o, n, STORE) ADD_PAIR(o, STORE, "d", "", "d")
#define TRIAD_SCALAR(o, n, STORE)                                                                  \
    "ldp d0, d1, [x13, #(" o ")]\n\tldp d2, d3, [x14, #(" o ")]\n\t"                               \
    "fmadd d0, d2, d15, d0\n\tfmadd d1, d3, d15, d1\n\t" STORE(o, "0", "1")
#define WRITE_NEON(o, n, STORE) WRITE_PAIR(o, STORE)
#define COPY_NEON(o, n, STORE) COPY_PAIR(o, STORE, "q")
#define SCALE_NEON(o, n, STORE) SCALE_PAIR(o, STORE, "q", ".2d", "v")
#define ADD_NEON(o, n, STORE) ADD_PAIR(o, STORE, "q", ".2d", "v")
#define TRIAD_NEON(o, n, STORE)                                                                    \
    "ldp q0, q1, [x13, #(" o ")]\n\tldp q2, q3, [x14, #(" o ")]\n\t"                               \
    "fmla v0.2d, v2.2d, v15.2d\n\tfmla v1.2d, v3.2d, v15.2d\n\t" STORE(o, "0", "1")

/* ---- … to a cache line ---------------------------------------------------------------------- */

#define LINE_SCALAR(o, n, DO, STORE)                                                               \
    DO(o, n, STORE) DO(o "+16", n, STORE) DO(o "+32", n, STORE) DO(o "+48", n, STORE)
#define LINE_NEON(o, n, DO, STORE) DO(o, n, STORE) DO(o "+32", n, STORE)

/* ---- … to the lines of one iteration -------------------------------------------------------- */

#define LINES_2(LINE, ...) LINE("0", "8", __VA_ARGS__) LINE("64", "9", __VA_ARGS__)
#define LINES_4(LINE, ...)                                                                         \
    LINES_2(LINE, __VA_ARGS__) LINE("128", "10", __VA_ARGS__) LINE("192", "11", __VA_ARGS__)

#define HERE "add x12, %[a], %[i]\n\tadd x13, %[b], %[i]\n\tadd x14, %[c], %[i]\n\t"
#define NEXT_PAGE                                                                                  \
    "add x12, x12, #4096\n\tadd x13, x13, #4096\n\tadd x14, x14, #4096\n\t"
/* Of four pages side by side, and of eight. */
#define PAGES_BY_4(LINE, ...)                                                                      \
    HERE LINES_4(LINE, __VA_ARGS__) NEXT_PAGE LINES_4(LINE, __VA_ARGS__)                           \
    NEXT_PAGE LINES_4(LINE, __VA_ARGS__) NEXT_PAGE LINES_4(LINE, __VA_ARGS__)
#define PAGES_BY_8(LINE, ...)                                                                      \
    HERE LINES_2(LINE, __VA_ARGS__) NEXT_PAGE LINES_2(LINE, __VA_ARGS__)                           \
    NEXT_PAGE LINES_2(LINE, __VA_ARGS__) NEXT_PAGE LINES_2(LINE, __VA_ARGS__)                      \
    NEXT_PAGE LINES_2(LINE, __VA_ARGS__) NEXT_PAGE LINES_2(LINE, __VA_ARGS__)                      \
    NEXT_PAGE LINES_2(LINE, __VA_ARGS__) NEXT_PAGE LINES_2(LINE, __VA_ARGS__)

/* ---- loops ---------------------------------------------------------------------------------- */

#define BEGIN_SCALAR                                                                               \
    "mov x8, xzr\n\tmov x9, xzr\n\tmov x10, xzr\n\tmov x11, xzr\n\tfmov d15, %d[factor]\n\t"
#define END_SCALAR                                                                                 \
    "add x8, x8, x9\n\tadd x10, x10, x11\n\tadd x8, x8, x10\n\tstr x8, [%[sums]]\n\t"
#define BEGIN_NEON                                                                                 \
    "movi v8.2d, #0\n\tmovi v9.2d, #0\n\tmovi v10.2d, #0\n\tmovi v11.2d, #0\n\t"                   \
    "dup v15.2d, %[factor].d[0]\n\t"
#define END_NEON                                                                                   \
    "add v8.2d, v8.2d, v9.2d\n\tadd v10.2d, v10.2d, v11.2d\n\tadd v8.2d, v8.2d, v10.2d\n\t"        \
    "str q8, [%[sums]]\n\t"

#define OPERANDS [a] "r"(a), [b] "r"(b), [c] "r"(c), [factor] "w"(factor), [sums] "r"(sums)
#define CLOBBERED                                                                                  \
    "cc", "memory", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x16", "x17", "v0", "v1", "v2", \
        "v3", "v8", "v9", "v10", "v11", "v15"

/* ---- what the loops of kernels.c are made of ------------------------------------------------ */

#define GROUP(LINE, ...) HERE LINES_4(LINE, __VA_ARGS__)
#define ONE_LINE(LINE, ...) HERE LINE("0", "8", __VA_ARGS__)
#define ADVANCE(bytes) "add %[i], %[i], #" bytes "\n\t"
#define SET_END(length) "add %[end], %[i], #" length "\n\t"
#define REPEAT_BELOW(bound, label) "cmp %[i], %[" bound "]\n\tb.lo " label "b\n\t"
#define SKIP_AT(bound, label) "cmp %[i], %[" bound "]\n\tb.hs " label "f\n\t"
#define CLEAR(count) "mov %[" count "], xzr\n\t"
#define REPEAT_COUNTED(count, label)                                                               \
    "subs %[" count "], %[" count "], #1\n\tb.ne " label "b\n\t"
#define SKIP_ZERO(count, label) "cbz %[" count "], " label "f\n\t"
#define ASK_AHEAD(array)                                                                           \
    "add x12, %[" array "], %[i]\n\tadd x12, x12, #" AHEAD_BYTES "\n\tprfm pldl1keep, [x12]\n\t"

#define FOR_EACH_ISA(M) M(scalar, SCALAR, FEATURE_NEON) M(neon, NEON, FEATURE_NEON)

/* Not dmb, which only orders: a time ends when the stores are done. */
#define STORE_FENCE() __asm__ volatile("dsb ishst" ::: "memory")
