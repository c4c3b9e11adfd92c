/* AT&T syntax. `o` is an offset into the arrays, `n` the number of an accumulator, `r` the register
 * name before a number. Registers 8 to 11 add up what is read, 15 holds the factor. */

/* Laid out by hand: the formatter does not see where an instruction ends. */
/* clang-format off */

#define AT(o, array) o "(%[" array "],%[i])"

/* ---- stores --------------------------------------------------------------------------------- */

#define PLAIN_SCALAR(o, n) "movsd %%xmm" n ", " AT(o, "a") "\n\t"
/* Only general-purpose registers have a store of 8 bytes that bypasses the caches. */
#define NT_SCALAR(o, n) "movq %%xmm" n ", %%rax\n\tmovnti %%rax, " AT(o, "a") "\n\t"
#define PLAIN_SSE2(o, n) "movups %%xmm" n ", " AT(o, "a") "\n\t"
#define NT_SSE2(o, n) "movntps %%xmm" n ", " AT(o, "a") "\n\t"
#define PLAIN_AVX2(o, n) "vmovups %%ymm" n ", " AT(o, "a") "\n\t"
#define NT_AVX2(o, n) "vmovntps %%ymm" n ", " AT(o, "a") "\n\t"
#define PLAIN_AVX512(o, n) "vmovups %%zmm" n ", " AT(o, "a") "\n\t"
#define NT_AVX512(o, n) "vmovntps %%zmm" n ", " AT(o, "a") "\n\t"

/* ---- what is done to one register's worth --------------------------------------------------- */

#define READ_SCALAR(o, n, STORE) "add " AT(o, "b") ", %%r" n "\n\t"
#define WRITE_SCALAR(o, n, STORE) STORE(o, "15")
#define COPY_SCALAR(o, n, STORE) "movsd " AT(o, "b") ", %%xmm0\n\t" STORE(o, "0")
#define SCALE_SCALAR(o, n, STORE)                                                                  \
    "movsd " AT(o, "b") ", %%xmm0\n\tmulsd %%xmm15, %%xmm0\n\t" STORE(o, "0")
#define ADD_SCALAR(o, n, STORE)                                                                    \
    "movsd " AT(o, "b") ", %%xmm0\n\taddsd " AT(o, "c") ", %%xmm0\n\t" STORE(o, "0")
#define TRIAD_SCALAR(o, n, STORE)                                                                  \
    "movsd " AT(o, "c") ", %%xmm0\n\tmulsd %%xmm15, %%xmm0\n\t"                                    \
    "addsd " AT(o, "b") ", %%xmm0\n\t" STORE(o, "0")

/* Operands in memory would have to be aligned. */
#define READ_SSE2(o, n, STORE)                                                                     \
    "movdqu " AT(o, "b") ", %%xmm0\n\tpaddq %%xmm0, %%xmm" n "\n\t"
#define WRITE_SSE2(o, n, STORE) STORE(o, "15")
#define COPY_SSE2(o, n, STORE) "movups " AT(o, "b") ", %%xmm0\n\t" STORE(o, "0")
#define SCALE_SSE2(o, n, STORE)                                                                    \
    "movups " AT(o, "b") ", %%xmm0\n\tmulpd %%xmm15, %%xmm0\n\t" STORE(o, "0")
#define ADD_SSE2(o, n, STORE)                                                                      \
    "movups " AT(o, "b") ", %%xmm0\n\tmovups " AT(o, "c") ", %%xmm1\n\t"                           \
    "addpd %%xmm1, %%xmm0\n\t" STORE(o, "0")
#define TRIAD_SSE2(o, n, STORE)                                                                    \
    "movups " AT(o, "c") ", %%xmm0\n\tmovups " AT(o, "b") ", %%xmm1\n\t"                           \
    "mulpd %%xmm15, %%xmm0\n\taddpd %%xmm1, %%xmm0\n\t" STORE(o, "0")

#define READ_VEX(o, n, r) "vpaddq " AT(o, "b") ", %%" r n ", %%" r n "\n\t"
#define COPY_VEX(o, STORE, r) "vmovups " AT(o, "b") ", %%" r "0\n\t" STORE(o, "0")
#define SCALE_VEX(o, STORE, r) "vmulpd " AT(o, "b") ", %%" r "15, %%" r "0\n\t" STORE(o, "0")
#define ADD_VEX(o, STORE, r)                                                                       \
    "vmovups " AT(o, "b") ", %%" r "0\n\tvaddpd " AT(o, "c") ", %%" r "0, %%" r "0\n\t"            \
    STORE(o, "0")
#define TRIAD_VEX(o, STORE, r)                                                                     \
    "vmovups " AT(o, "b") ", %%" r "0\n\tvfmadd231pd " AT(o, "c") ", %%" r "15, %%" r "0\n\t"      \
    STORE(o, "0")

#define READ_AVX2(o, n, STORE) READ_VEX(o, n, "ymm")
#define WRITE_AVX2(o, n, STORE) STORE(o, "15")
#define COPY_AVX2(o, n, STORE) COPY_VEX(o, STORE, "ymm")
#define SCALE_AVX2(o, n, STORE) SCALE_VEX(o, STORE, "ymm")
#define ADD_AVX2(o, n, STORE) ADD_VEX(o, STORE, "ymm")
#define TRIAD_AVX2(o, n, STORE) TRIAD_VEX(o, STORE, "ymm")
#define READ_AVX512(o, n, STORE) READ_VEX(o, n, "zmm")
#define WRITE_AVX512(o, n, STORE) STORE(o, "15")
#define COPY_AVX512(o, n, STORE) COPY_VEX(o, STORE, "zmm")
#define SCALE_AVX512(o, n, STORE) SCALE_VEX(o, STORE, "zmm")
#define ADD_AVX512(o, n, STORE) ADD_VEX(o, STORE, "zmm")
#define TRIAD_AVX512(o, n, STORE) TRIAD_VEX(o, STORE, "zmm")

/* ---- … to a cache line ---------------------------------------------------------------------- */

#define LINE_SCALAR(o, n, DO, STORE)                                                               \
    DO(o, n, STORE) DO(o "+8", n, STORE) DO(o "+16", n, STORE) DO(o "+24", n, STORE)               \
    DO(o "+32", n, STORE) DO(o "+40", n, STORE) DO(o "+48", n, STORE) DO(o "+56", n, STORE)
#define LINE_SSE2(o, n, DO, STORE)                                                                 \
    DO(o, n, STORE) DO(o "+16", n, STORE) DO(o "+32", n, STORE) DO(o "+48", n, STORE)
#define LINE_AVX2(o, n, DO, STORE) DO(o, n, STORE) DO(o "+32", n, STORE)
#define LINE_AVX512(o, n, DO, STORE) DO(o, n, STORE)

/* ---- … to the lines of one iteration -------------------------------------------------------- */

#define LINES_2(o, LINE, ...) LINE(o, "8", __VA_ARGS__) LINE(o "+64", "9", __VA_ARGS__)
#define LINES_4(o, LINE, ...)                                                                      \
    LINES_2(o, LINE, __VA_ARGS__)                                                                  \
    LINE(o "+128", "10", __VA_ARGS__) LINE(o "+192", "11", __VA_ARGS__)
/* Of four pages side by side, and of eight. */
#define PAGES_BY_4(LINE, ...)                                                                      \
    LINES_4("0", LINE, __VA_ARGS__) LINES_4("4096", LINE, __VA_ARGS__)                             \
    LINES_4("8192", LINE, __VA_ARGS__) LINES_4("12288", LINE, __VA_ARGS__)
#define PAGES_BY_8(LINE, ...)                                                                      \
    LINES_2("0", LINE, __VA_ARGS__) LINES_2("4096", LINE, __VA_ARGS__)                             \
    LINES_2("8192", LINE, __VA_ARGS__) LINES_2("12288", LINE, __VA_ARGS__)                         \
    LINES_2("16384", LINE, __VA_ARGS__) LINES_2("20480", LINE, __VA_ARGS__)                        \
    LINES_2("24576", LINE, __VA_ARGS__) LINES_2("28672", LINE, __VA_ARGS__)

/* ---- loops ---------------------------------------------------------------------------------- */

#define BEGIN_SCALAR                                                                               \
    "xor %%r8d, %%r8d\n\txor %%r9d, %%r9d\n\txor %%r10d, %%r10d\n\txor %%r11d, %%r11d\n\t"         \
    "movsd %[factor], %%xmm15\n\t"
#define END_SCALAR                                                                                 \
    "add %%r9, %%r8\n\tadd %%r11, %%r10\n\tadd %%r10, %%r8\n\tmov %%r8, (%[sums])\n\t"
#define BEGIN_SSE2                                                                                 \
    "pxor %%xmm8, %%xmm8\n\tpxor %%xmm9, %%xmm9\n\t"                                               \
    "pxor %%xmm10, %%xmm10\n\tpxor %%xmm11, %%xmm11\n\t"                                           \
    "movsd %[factor], %%xmm15\n\tunpcklpd %%xmm15, %%xmm15\n\t"
#define END_SSE2                                                                                   \
    "paddq %%xmm9, %%xmm8\n\tpaddq %%xmm11, %%xmm10\n\tpaddq %%xmm10, %%xmm8\n\t"                  \
    "movups %%xmm8, (%[sums])\n\t"
/* Writing an xmm register clears the rest of its zmm. */
#define BEGIN_VEX(r)                                                                               \
    "vpxor %%xmm8, %%xmm8, %%xmm8\n\tvpxor %%xmm9, %%xmm9, %%xmm9\n\t"                             \
    "vpxor %%xmm10, %%xmm10, %%xmm10\n\tvpxor %%xmm11, %%xmm11, %%xmm11\n\t"                       \
    "vbroadcastsd %[factor], %%" r "15\n\t"
#define END_VEX(r)                                                                                 \
    "vpaddq %%" r "9, %%" r "8, %%" r "8\n\tvpaddq %%" r "11, %%" r "10, %%" r "10\n\t"            \
    "vpaddq %%" r "10, %%" r "8, %%" r "8\n\tvmovups %%" r "8, (%[sums])\n\tvzeroupper\n\t"
#define BEGIN_AVX2 BEGIN_VEX("ymm")
#define END_AVX2 END_VEX("ymm")
#define BEGIN_AVX512 BEGIN_VEX("zmm")
#define END_AVX512 END_VEX("zmm")

#define OPERANDS                                                                                   \
    [a] "r"(a), [b] "r"(b), [c] "r"(c), [factor] "m"(factor), [sums] "r"(sums)
#define CLOBBERED                                                                                  \
    "cc", "memory", "rax", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm8", "xmm9", "xmm10",      \
        "xmm11", "xmm15"

/* ---- what the loops of kernels.c are made of ------------------------------------------------ */

#define GROUP(LINE, ...) LINES_4("0", LINE, __VA_ARGS__)
#define ONE_LINE(LINE, ...) LINE("0", "8", __VA_ARGS__)
#define ADVANCE(bytes) "add $" bytes ", %[i]\n\t"
#define SET_END(length) "lea " length "(%[i]), %[end]\n\t"
#define REPEAT_BELOW(bound, label) "cmp %[" bound "], %[i]\n\tjb " label "b\n\t"
#define SKIP_AT(bound, label) "cmp %[" bound "], %[i]\n\tjae " label "f\n\t"
#define CLEAR(count) "xor %k[" count "], %k[" count "]\n\t"
#define REPEAT_COUNTED(count, label) "dec %[" count "]\n\tjnz " label "b\n\t"
#define SKIP_ZERO(count, label) "test %[" count "], %[" count "]\n\tjz " label "f\n\t"
#define ASK_AHEAD(array) "prefetcht0 " AHEAD_BYTES "(%[" array "],%[i])\n\t"

#define FOR_EACH_ISA(M)                                                                            \
    M(scalar, SCALAR, FEATURE_SSE2) M(sse2, SSE2, FEATURE_SSE2)                                    \
    M(avx2, AVX2, FEATURE_AVX2 | FEATURE_FMA) M(avx512, AVX512, FEATURE_AVX512F)

#define STORE_FENCE() __asm__ volatile("sfence" ::: "memory")
