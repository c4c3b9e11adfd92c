/* compare: comparisons whose results are counted. A comparison of registers that never change is
 * true in half of the lanes (or every other time, for scalars), and each accumulator counts. Of
 * single lanes of floating point those that are false add nothing and could be missing unseen. */
#include "cpu_features.h"
#include "loops.h"
#include "vector_kernel.h"
#include "workload.h"

/* Constant 2 is compared with constants 0 and 1 in turn: what is true in the even lanes first is
 * true in the odd ones then, so a round counts one in each. Constant 3 is what a masked addition
 * adds, a 1 in the type of the counts. */
#define LANES(times, instructions, count_type, x, even, odd, one)                                  \
    {                                                                                              \
        .rounds = (times), .steps = (instructions), .operations = 2, .multiplier = 1, .addend = 1, \
        .lane = (count_type),                                                                      \
        .constants = {{even, odd, even, odd}, {odd, even, odd, even}, ALL(x), ALL(one)}            \
    }

#if defined(__x86_64__)
/* Three recipes for each type: sse2, avx2, avx512. Integers: 2 > 1, and not 2 > 3. Floating point:
 * -2 < -1, and not -2 < -3. A result left over, all zeros or all ones, would compare otherwise. */
#define RECIPES(type, count_type, x, even, odd, one)                                               \
    static const struct recipe type##_sse2 =                                                       \
        LANES(LAGGED_ROUNDS, 6, count_type, x, even, odd, one);                                    \
    static const struct recipe type##_avx2 =                                                       \
        LANES(LAGGED_ROUNDS, 4, count_type, x, even, odd, one);                                    \
    static const struct recipe type##_avx512 =                                                     \
        LANES(MASKED_ROUNDS, 4, count_type, x, even, odd, one)
enum { MASKED_ROUNDS = 8, TWICE_ROUNDS = 4, RANGE_ROUNDS = 2 };

/* AMD's loops compare a result again, with constant 3, which is true where the first was not. */
#define TWICE(name, instructions, count_type, x, even, odd, again)                                 \
    static const struct recipe name = {                                                            \
        .rounds = TWICE_ROUNDS,                                                                    \
        .steps = (instructions),                                                                   \
        .operations = 4,                                                                           \
        .multiplier = 1,                                                                           \
        .addend = 1,                                                                               \
        .lane = (count_type),                                                                      \
        .constants = {{even, odd, even, odd}, {odd, even, odd, even}, ALL(x), ALL(again)}}
/* With masks they compare with constant 0 or 1 and then constant 4, from one side or the other: in each
 * lane both are true once in four such pairs. */
#define RANGE(name, count_type, x, even, odd, one)                                                 \
    static const struct recipe name = {.rounds = RANGE_ROUNDS,                                     \
                                       .steps = 12,                                                \
                                       .operations = 8,                                            \
                                       .multiplier = 1,                                            \
                                       .addend = 1,                                                \
                                       .lane = (count_type),                                       \
                                       .constants = {{even, odd, even, odd},                       \
                                                     {odd, even, odd, even},                       \
                                                     ALL(x),                                       \
                                                     ALL(one),                                     \
                                                     {even, even, odd, odd}}}

RECIPES(integer, NULL, 2, 1, 3, 1);
TWICE(integer_avx2_amd, 6, NULL, 2, 1, 3, -1);
RANGE(integer_avx512_amd, NULL, 2, 1, 3, 1);
/* The smallest denormal has the bits of an integer 1; no floating-point instruction sees it. */
RECIPES(fp32, "int32", -2, -1, -3, 0x1p-149);
RECIPES(fp64, "int64", -2, -1, -3, 0x1p-1074);
/* A result that is true is no number: not less than 1. */
TWICE(fp32_sse2_amd, 8, "int32", -2, -1, -3, 1);
TWICE(fp32_avx2_amd, 6, "int32", -2, -1, -3, 1);
RANGE(fp32_avx512_amd, "int32", -2, -1, -3, 0x1p-149);
TWICE(fp64_sse2_amd, 8, "int64", -2, -1, -3, 1);
TWICE(fp64_avx2_amd, 6, "int64", -2, -1, -3, 1);
RANGE(fp64_avx512_amd, "int64", -2, -1, -3, 0x1p-1074);

/* 0 < 1, and not 0 < 0: each counts one. */
static const struct recipe integer_scalar = {.rounds = PAIRS,
                                             .steps = 4,
                                             .operations = 2,
                                             .multiplier = 1,
                                             .addend = 2,
                                             .constants = {ALL(1), ALL(0), ALL(0)}};
/* One lane, which starts as an even one: a round counts one. */
#define fp32_scalar fp32_sse2
#define fp64_scalar fp64_sse2
#define fp32_scalar_amd fp32_sse2_amd
#define fp64_scalar_amd fp64_sse2_amd

/* Laid out by hand: one line is one instruction. */
/* clang-format off */
#define COMPARE_SSE(t, k, compare, subtract, copy)                                                 \
    copy " %%xmm" XK2 ", %%xmm" t "\n\t"                                                           \
    compare " %%xmm" k ", %%xmm" t "\n\t"
#define COMPARE_AVX2(t, k, compare, subtract) compare " %%ymm" k ", %%ymm" XK2 ", %%ymm" t "\n\t"
#define COUNT_SSE(a, t, compare, subtract, ...) subtract " %%xmm" t ", %%xmm" a "\n\t"
#define COUNT_AVX2(a, t, compare, subtract) subtract " %%ymm" t ", %%ymm" a ", %%ymm" a "\n\t"
/* The masked addition is of constant 3. */
#define COMPARE_AVX512(t, k, compare, add) compare " %%zmm" k ", %%zmm" ZK2 ", %%k" t "\n\t"
#define COUNT_AVX512(a, t, compare, add)                                                           \
    add " %%zmm" ZK3 ", %%zmm" a ", %%zmm" a "%{%%k" t "%}\n\t"

/* As LAGGED, each copy two comparisons and each comparison six counts ahead of its own: in this
 * order comparisons of doubles and of single lanes reach 98 % of what the ports of Golden Cove
 * allow, in LAGGED's 96 to 97 %. Of four floats it is the other way round. */
#define COPY_ROW(c, m, a, b, n, count, compare, subtract)                                          \
    COPY_SSE(c) ONLY_COMPARE_SSE(m, XK0, compare) COUNT_SSE(count, a, compare, subtract)           \
    COPY_SSE(a) COUNT_SSE(count, b, compare, subtract) ONLY_COMPARE_SSE(n, XK1, compare)
#define COPY_SSE(t) "movdqa %%xmm" XK2 ", %%xmm" t "\n\t"
#define ONLY_COMPARE_SSE(t, k, compare) compare " %%xmm" k ", %%xmm" t "\n\t"
#define COPIED_AHEAD(...)                                                                          \
    COPY_ROW("11", "9", "3", "4", "10", "0", __VA_ARGS__)                                          \
    COPY_ROW("4", "11", "5", "6", "3", "1", __VA_ARGS__)                                           \
    COPY_ROW("6", "4", "7", "8", "5", "2", __VA_ARGS__)                                            \
    COPY_ROW("8", "6", "9", "10", "7", "0", __VA_ARGS__)                                           \
    COPY_ROW("10", "8", "11", "3", "9", "1", __VA_ARGS__)                                          \
    COPY_ROW("3", "10", "4", "5", "11", "2", __VA_ARGS__)                                          \
    COPY_ROW("5", "3", "6", "7", "4", "0", __VA_ARGS__)                                            \
    COPY_ROW("7", "5", "8", "9", "6", "1", __VA_ARGS__)                                            \
    COPY_ROW("9", "7", "10", "11", "8", "2", __VA_ARGS__)
#define COPIED_BEFORE(compare, subtract)                                                           \
    COMPARE_SSE("3", XK0, compare, subtract, "movdqa")                                             \
    COMPARE_SSE("4", XK1, compare, subtract, "movdqa")                                             \
    COMPARE_SSE("5", XK0, compare, subtract, "movdqa")                                             \
    COMPARE_SSE("6", XK1, compare, subtract, "movdqa")                                             \
    COMPARE_SSE("7", XK0, compare, subtract, "movdqa")                                             \
    COMPARE_SSE("8", XK1, compare, subtract, "movdqa")                                             \
    COPY_SSE("9") COPY_SSE("10")
#define COPIED_AHEAD_SSE(name, mov, bytes, compare, subtract)                                      \
    KERNEL_SSE(name, EACH_3, mov, bytes, COPIED_BEFORE(compare, subtract),                         \
               TIMES_3(COPIED_AHEAD(compare, subtract)), DO_SSE, subtract, XK3, "xmm")

/* As LAGGED with seven masks and seven accumulators, M and A in turn. */
#define MASKED(M, A, ...)                                                                          \
    M("1", ZK0, __VA_ARGS__) A("0", "2", __VA_ARGS__) M("2", ZK1, __VA_ARGS__) A("1", "3", __VA_ARGS__) \
    M("3", ZK0, __VA_ARGS__) A("2", "4", __VA_ARGS__) M("4", ZK1, __VA_ARGS__) A("3", "5", __VA_ARGS__) \
    M("5", ZK0, __VA_ARGS__) A("4", "6", __VA_ARGS__) M("6", ZK1, __VA_ARGS__) A("5", "7", __VA_ARGS__) \
    M("7", ZK0, __VA_ARGS__) A("6", "1", __VA_ARGS__) M("1", ZK1, __VA_ARGS__) A("0", "2", __VA_ARGS__) \
    M("2", ZK0, __VA_ARGS__) A("1", "3", __VA_ARGS__) M("3", ZK1, __VA_ARGS__) A("2", "4", __VA_ARGS__) \
    M("4", ZK0, __VA_ARGS__) A("3", "5", __VA_ARGS__) M("5", ZK1, __VA_ARGS__) A("4", "6", __VA_ARGS__) \
    M("6", ZK0, __VA_ARGS__) A("5", "7", __VA_ARGS__) M("7", ZK1, __VA_ARGS__) A("6", "1", __VA_ARGS__)
#define MASKED_BEFORE(M, ...)                                                                      \
    M("1", ZK1, __VA_ARGS__) M("2", ZK0, __VA_ARGS__) M("3", ZK1, __VA_ARGS__)                     \
    M("4", ZK0, __VA_ARGS__) M("5", ZK1, __VA_ARGS__) M("6", ZK0, __VA_ARGS__)                     \
    M("7", ZK1, __VA_ARGS__)
#define EACH_7(M, ...)                                                                             \
    EACH_4(M, __VA_ARGS__) M("4", __VA_ARGS__) M("5", __VA_ARGS__) M("6", __VA_ARGS__)
#define MASKED_AVX512(name, compare, add)                                                          \
    KERNEL_AVX512(name, EACH_7, MASKED_BEFORE(COMPARE_AVX512, compare, add),                       \
                  TIMES_8(MASKED(COMPARE_AVX512, COUNT_AVX512, compare, add)),                     \
                  DO_VEX, add, XK3, "zmm")

/* On AMD's cores an addition can go to any of the four vector pipes, a comparison of floating point,
 * of 64 bits or into a mask to two of them. Where there is one addition for each comparison and it waits
 * for the result, it takes a pipe that comparisons need: Zen 4 stays at 83 to 90 % of what its ports
 * allow in every order tried. So a result is compared again before it is counted, and half as many
 * additions leave the comparisons alone (99 %). Counts are six pairs behind.
 * Each of the eight intermediate registers has one of constants 0 and 1: a result of the other one is
 * the opposite, and a comparison of it that is missing would not show. */
#define TWICE_ROW(M, A, a, b, c, ...)                                                              \
    M("3", XK0, __VA_ARGS__) A(a, "5", __VA_ARGS__) M("4", XK1, __VA_ARGS__) A(b, "6", __VA_ARGS__) \
    M("5", XK0, __VA_ARGS__) A(c, "7", __VA_ARGS__) M("6", XK1, __VA_ARGS__) A(a, "8", __VA_ARGS__) \
    M("7", XK0, __VA_ARGS__) A(b, "9", __VA_ARGS__) M("8", XK1, __VA_ARGS__) A(c, "10", __VA_ARGS__) \
    M("9", XK0, __VA_ARGS__) A(a, "3", __VA_ARGS__) M("10", XK1, __VA_ARGS__) A(b, "4", __VA_ARGS__)
#define TWICE_ROWS(M, A, ...)                                                                      \
    TWICE_ROW(M, A, "0", "1", "2", __VA_ARGS__) TWICE_ROW(M, A, "2", "0", "1", __VA_ARGS__)        \
    TWICE_ROW(M, A, "1", "2", "0", __VA_ARGS__)
#define TWICE_BEFORE(M, ...)                                                                       \
    M("5", XK0, __VA_ARGS__) M("6", XK1, __VA_ARGS__) M("7", XK0, __VA_ARGS__)                     \
    M("8", XK1, __VA_ARGS__) M("9", XK0, __VA_ARGS__) M("10", XK1, __VA_ARGS__)
#define TWICE_SSE(t, k, compare, subtract)                                                         \
    COMPARE_SSE(t, k, compare, subtract, "movdqa") ONLY_COMPARE_SSE(t, XK3, compare)
#define TWICE_AVX2(t, k, compare, subtract)                                                        \
    COMPARE_AVX2(t, k, compare, subtract) DO_VEX(t, compare, XK3, "ymm")
#define COMPARED_TWICE_SSE(name, mov, bytes, compare, subtract)                                    \
    KERNEL_SSE(name, EACH_3, mov, bytes, TWICE_BEFORE(TWICE_SSE, compare, subtract),               \
               TWICE_ROWS(TWICE_SSE, COUNT_SSE, compare, subtract), DO_SSE, subtract, XK3, "xmm")
#define COMPARED_TWICE_AVX2(name, compare, subtract)                                               \
    KERNEL_VEX(name, EACH_3, "ymm", "vmovdqa", "32", TWICE_BEFORE(TWICE_AVX2, compare, subtract),  \
               TWICE_ROWS(TWICE_AVX2, COUNT_AVX2, compare, subtract), DO_VEX, subtract, XK3, "ymm")

/* The second comparison is for the lanes in which the first was true. `k` is 0 or 1. */
#define FROM_BELOW(t, k, compare, add)                                                             \
    COMPARE_AVX512(t, k, compare, add)                                                             \
    compare " %%zmm" ZK4 ", %%zmm" ZK2 ", %%k" t "%{%%k" t "%}\n\t"
#define FROM_ABOVE(t, k, compare, add)                                                             \
    COMPARE_AVX512(t, k, compare, add)                                                             \
    compare " %%zmm" ZK2 ", %%zmm" ZK4 ", %%k" t "%{%%k" t "%}\n\t"
#define RANGE_0(t, ...) FROM_BELOW(t, ZK0, __VA_ARGS__)
#define RANGE_1(t, ...) FROM_BELOW(t, ZK1, __VA_ARGS__)
#define RANGE_2(t, ...) FROM_ABOVE(t, ZK0, __VA_ARGS__)
#define RANGE_3(t, ...) FROM_ABOVE(t, ZK1, __VA_ARGS__)
#define RANGE_ROW(M, N, O, P, ...)                                                                 \
    M("1", __VA_ARGS__) COUNT_AVX512("1", "2", __VA_ARGS__)                                        \
    N("2", __VA_ARGS__) COUNT_AVX512("2", "3", __VA_ARGS__)                                        \
    O("3", __VA_ARGS__) COUNT_AVX512("3", "4", __VA_ARGS__)                                        \
    P("4", __VA_ARGS__) COUNT_AVX512("4", "5", __VA_ARGS__)                                        \
    M("5", __VA_ARGS__) COUNT_AVX512("5", "6", __VA_ARGS__)                                        \
    N("6", __VA_ARGS__) COUNT_AVX512("6", "7", __VA_ARGS__)                                        \
    O("7", __VA_ARGS__) COUNT_AVX512("0", "1", __VA_ARGS__)
#define RANGE_ROWS(...)                                                                            \
    RANGE_ROW(RANGE_0, RANGE_1, RANGE_2, RANGE_3, __VA_ARGS__)                                     \
    RANGE_ROW(RANGE_3, RANGE_0, RANGE_1, RANGE_2, __VA_ARGS__)                                     \
    RANGE_ROW(RANGE_2, RANGE_3, RANGE_0, RANGE_1, __VA_ARGS__)                                     \
    RANGE_ROW(RANGE_1, RANGE_2, RANGE_3, RANGE_0, __VA_ARGS__)
#define RANGE_BEFORE(...)                                                                          \
    RANGE_2("2", __VA_ARGS__) RANGE_3("3", __VA_ARGS__) RANGE_0("4", __VA_ARGS__)                  \
    RANGE_1("5", __VA_ARGS__) RANGE_2("6", __VA_ARGS__) RANGE_3("7", __VA_ARGS__)
#define RANGE_AVX512(name, compare, add)                                                           \
    KERNEL_AVX512(name, EACH_7, RANGE_BEFORE(compare, add), TIMES_2(RANGE_ROWS(compare, add)),     \
                  DO_VEX, add, XK3, "zmm")

/* True sets the carry flag: minus -2 minus carry, which leaves it set. False does not: plus 1 plus
 * carry, which leaves it clear. In turn, so that either would go wrong with the flag of the other. */
#define TRUE_GPR(name, k, no, x) "cmp %%" k ", %%" x "\n\tsbb $-2, %%" name "\n\t"
#define FALSE_GPR(name, yes, k, x) "cmp %%" k ", %%" x "\n\tadc $1, %%" name "\n\t"

#define IN_TURN(T, F, s, ...)                                                                      \
    T("r8" s, __VA_ARGS__) F("r9" s, __VA_ARGS__) T("r10" s, __VA_ARGS__) F("r11" s, __VA_ARGS__)  \
    T("r12" s, __VA_ARGS__) F("r13" s, __VA_ARGS__) T("r14" s, __VA_ARGS__) F("r15" s, __VA_ARGS__) \
    T("r9" s, __VA_ARGS__) F("r8" s, __VA_ARGS__) T("r11" s, __VA_ARGS__) F("r10" s, __VA_ARGS__)  \
    T("r13" s, __VA_ARGS__) F("r12" s, __VA_ARGS__) T("r15" s, __VA_ARGS__) F("r14" s, __VA_ARGS__)

#define COMPARE_GPR(name, k, x, s, bytes)                                                          \
    static void name##_loop(uint64_t iterations, void *state, const void *constants)               \
    {                                                                                              \
        __asm__ volatile("mov 128(%%rax), %%" x "\n\t"                                             \
                         "mov 64(%%rax), %%" k##_1 "\n\t"                                          \
                         "mov (%%rax), %%" k##_0 "\n\t"                                            \
                         EACH_GPR_8(LOAD_GPR, s, bytes)                                            \
                         LOOP_BEGIN                                                                \
                         TIMES_8(IN_TURN(TRUE_GPR, FALSE_GPR, s, k##_0, k##_1, x))                 \
                         LOOP_END                                                                  \
                         EACH_GPR_8(STORE_GPR, s, bytes)                                           \
                         : [n] "+&r"(iterations), "+&a"(constants)                                 \
                         : [state] "r"(state)                                                      \
                         : "cc", "memory", CLOBBER_GPR);                                           \
    }
/* clang-format on */

#define INT8_0 "al"
#define INT8_1 "dl"
#define INT16_0 "ax"
#define INT16_1 "dx"
#define INT32_0 "eax"
#define INT32_1 "edx"
#define INT64_0 "rax"
#define INT64_1 "rdx"

COMPARE_GPR(compare_int8_scalar, INT8, "cl", "b", "1")
LAGGED_SSE(compare_int8_sse2, "movdqa", "16", COMPARE_SSE, COUNT_SSE, "pcmpgtb", "psubb", "movdqa")
LAGGED_AVX2(compare_int8_avx2, COMPARE_AVX2, COUNT_AVX2, "vpcmpgtb", "vpsubb")
MASKED_AVX512(compare_int8_avx512, "vpcmpgtb", "vpaddb")
RANGE_AVX512(compare_int8_avx512_amd, "vpcmpgtb", "vpaddb")
COMPARE_GPR(compare_int16_scalar, INT16, "cx", "w", "2")
LAGGED_SSE(compare_int16_sse2, "movdqa", "16", COMPARE_SSE, COUNT_SSE, "pcmpgtw", "psubw", "movdqa")
LAGGED_AVX2(compare_int16_avx2, COMPARE_AVX2, COUNT_AVX2, "vpcmpgtw", "vpsubw")
MASKED_AVX512(compare_int16_avx512, "vpcmpgtw", "vpaddw")
RANGE_AVX512(compare_int16_avx512_amd, "vpcmpgtw", "vpaddw")
COMPARE_GPR(compare_int32_scalar, INT32, "ecx", "d", "4")
LAGGED_SSE(compare_int32_sse2, "movdqa", "16", COMPARE_SSE, COUNT_SSE, "pcmpgtd", "psubd", "movdqa")
LAGGED_AVX2(compare_int32_avx2, COMPARE_AVX2, COUNT_AVX2, "vpcmpgtd", "vpsubd")
MASKED_AVX512(compare_int32_avx512, "vpcmpgtd", "vpaddd")
RANGE_AVX512(compare_int32_avx512_amd, "vpcmpgtd", "vpaddd")
COMPARE_GPR(compare_int64_scalar, INT64, "rcx", "", "8")
LAGGED_AVX2(compare_int64_avx2, COMPARE_AVX2, COUNT_AVX2, "vpcmpgtq", "vpsubq")
COMPARED_TWICE_AVX2(compare_int64_avx2_amd, "vpcmpgtq", "vpsubq")
MASKED_AVX512(compare_int64_avx512, "vpcmpgtq", "vpaddq")
RANGE_AVX512(compare_int64_avx512_amd, "vpcmpgtq", "vpaddq")
COPIED_AHEAD_SSE(compare_fp32_scalar, "movss", "4", "cmpltss", "psubd")
COMPARED_TWICE_SSE(compare_fp32_scalar_amd, "movss", "4", "cmpltss", "psubd")
LAGGED_SSE(compare_fp32_sse2, "movdqa", "16", COMPARE_SSE, COUNT_SSE, "cmpltps", "psubd", "movdqa")
COMPARED_TWICE_SSE(compare_fp32_sse2_amd, "movdqa", "16", "cmpltps", "psubd")
LAGGED_AVX2(compare_fp32_avx2, COMPARE_AVX2, COUNT_AVX2, "vcmpltps", "vpsubd")
COMPARED_TWICE_AVX2(compare_fp32_avx2_amd, "vcmpltps", "vpsubd")
MASKED_AVX512(compare_fp32_avx512, "vcmpltps", "vpaddd")
RANGE_AVX512(compare_fp32_avx512_amd, "vcmpltps", "vpaddd")
COPIED_AHEAD_SSE(compare_fp64_scalar, "movsd", "8", "cmpltsd", "psubq")
COMPARED_TWICE_SSE(compare_fp64_scalar_amd, "movsd", "8", "cmpltsd", "psubq")
COPIED_AHEAD_SSE(compare_fp64_sse2, "movdqa", "16", "cmpltpd", "psubq")
COMPARED_TWICE_SSE(compare_fp64_sse2_amd, "movdqa", "16", "cmpltpd", "psubq")
LAGGED_AVX2(compare_fp64_avx2, COMPARE_AVX2, COUNT_AVX2, "vcmpltpd", "vpsubq")
COMPARED_TWICE_AVX2(compare_fp64_avx2_amd, "vcmpltpd", "vpsubq")
MASKED_AVX512(compare_fp64_avx512, "vcmpltpd", "vpaddq")
RANGE_AVX512(compare_fp64_avx512_amd, "vcmpltpd", "vpaddq")

static const struct kernel kernels[] = {
    ROW_GPR(compare, int8, FEATURE_SSE2, 1, 8, integer_scalar),
    ROW(compare, int8, sse2, FEATURE_SSE2, 16, 3, integer_sse2),
    ROW(compare, int8, avx2, FEATURE_AVX2, 32, 3, integer_avx2),
    ROW_AMD(compare, int8, avx512, FEATURE_AVX512BW, 64, 7, integer_avx512_amd),
    ROW(compare, int8, avx512, FEATURE_AVX512BW, 64, 7, integer_avx512),
    ROW_GPR(compare, int16, FEATURE_SSE2, 2, 8, integer_scalar),
    ROW(compare, int16, sse2, FEATURE_SSE2, 16, 3, integer_sse2),
    ROW(compare, int16, avx2, FEATURE_AVX2, 32, 3, integer_avx2),
    ROW_AMD(compare, int16, avx512, FEATURE_AVX512BW, 64, 7, integer_avx512_amd),
    ROW(compare, int16, avx512, FEATURE_AVX512BW, 64, 7, integer_avx512),
    ROW_GPR(compare, int32, FEATURE_SSE2, 4, 8, integer_scalar),
    ROW(compare, int32, sse2, FEATURE_SSE2, 16, 3, integer_sse2),
    ROW(compare, int32, avx2, FEATURE_AVX2, 32, 3, integer_avx2),
    ROW_AMD(compare, int32, avx512, FEATURE_AVX512F, 64, 7, integer_avx512_amd),
    ROW(compare, int32, avx512, FEATURE_AVX512F, 64, 7, integer_avx512),
    ROW_GPR(compare, int64, FEATURE_SSE2, 8, 8, integer_scalar),
    ROW_AMD(compare, int64, avx2, FEATURE_AVX2, 32, 3, integer_avx2_amd),
    ROW(compare, int64, avx2, FEATURE_AVX2, 32, 3, integer_avx2),
    ROW_AMD(compare, int64, avx512, FEATURE_AVX512F, 64, 7, integer_avx512_amd),
    ROW(compare, int64, avx512, FEATURE_AVX512F, 64, 7, integer_avx512),
    ROW_AMD(compare, fp32, scalar, FEATURE_SSE2, 4, 3, fp32_scalar_amd),
    ROW(compare, fp32, scalar, FEATURE_SSE2, 4, 3, fp32_scalar),
    ROW_AMD(compare, fp32, sse2, FEATURE_SSE2, 16, 3, fp32_sse2_amd),
    ROW(compare, fp32, sse2, FEATURE_SSE2, 16, 3, fp32_sse2),
    ROW_AMD(compare, fp32, avx2, FEATURE_AVX2, 32, 3, fp32_avx2_amd),
    ROW(compare, fp32, avx2, FEATURE_AVX2, 32, 3, fp32_avx2),
    ROW_AMD(compare, fp32, avx512, FEATURE_AVX512F, 64, 7, fp32_avx512_amd),
    ROW(compare, fp32, avx512, FEATURE_AVX512F, 64, 7, fp32_avx512),
    ROW_AMD(compare, fp64, scalar, FEATURE_SSE2, 8, 3, fp64_scalar_amd),
    ROW(compare, fp64, scalar, FEATURE_SSE2, 8, 3, fp64_scalar),
    ROW_AMD(compare, fp64, sse2, FEATURE_SSE2, 16, 3, fp64_sse2_amd),
    ROW(compare, fp64, sse2, FEATURE_SSE2, 16, 3, fp64_sse2),
    ROW_AMD(compare, fp64, avx2, FEATURE_AVX2, 32, 3, fp64_avx2_amd),
    ROW(compare, fp64, avx2, FEATURE_AVX2, 32, 3, fp64_avx2),
    ROW_AMD(compare, fp64, avx512, FEATURE_AVX512F, 64, 7, fp64_avx512_amd),
    ROW(compare, fp64, avx512, FEATURE_AVX512F, 64, 7, fp64_avx512),
    {.dtype = NULL},
};
#else
/* As on x86, without an addition by masks. */
static const struct recipe integer_neon = LANES(8, 4, NULL, 2, 1, 3, 0);
static const struct recipe fp32_neon = LANES(8, 4, "int32", 2, 1, 3, 0);
static const struct recipe fp64_neon = LANES(8, 4, "int64", 2, 1, 3, 0);
/* 0 < 1 adds one; not 0 < -1 adds one by the opposite condition. */
static const struct recipe integer_scalar = {.rounds = PAIRS,
                                             .steps = 4,
                                             .operations = 2,
                                             .multiplier = 1,
                                             .addend = 2,
                                             .constants = {ALL(1), ALL(-1), ALL(0)}};
static const struct recipe fp_scalar = {.rounds = PAIRS,
                                        .steps = 4,
                                        .operations = 2,
                                        .multiplier = 1,
                                        .addend = 2,
                                        .lane = "int64",
                                        .constants = {ALL(1), ALL(-1), ALL(0)}};

/* Laid out by hand: one line is one instruction. */
/* clang-format off */
#define STEP_NEON(a, t, compare, shape, k)                                                         \
    compare " v" t shape ", v" ZK2 shape ", v" k shape "\n\t"                                      \
    "sub v" a shape ", v" a shape ", v" t shape "\n\t"
#define TRUE_GPR(name, compare, x, k, no) compare " " x ", " k "\n\tcinc " name ", " name ", lt\n\t"
#define FALSE_GPR(name, compare, x, yes, k) compare " " x ", " k "\n\tcinc " name ", " name ", ge\n\t"

/* In turn, so that a missing comparison leaves the opposite condition. */
#define IN_TURN(T, F, r, ...)                                                                      \
    T(r "8", __VA_ARGS__) F(r "9", __VA_ARGS__) T(r "10", __VA_ARGS__) F(r "11", __VA_ARGS__)      \
    T(r "12", __VA_ARGS__) F(r "13", __VA_ARGS__) T(r "14", __VA_ARGS__) F(r "15", __VA_ARGS__)    \
    T(r "19", __VA_ARGS__) F(r "20", __VA_ARGS__) T(r "21", __VA_ARGS__) F(r "22", __VA_ARGS__)    \
    T(r "23", __VA_ARGS__) F(r "24", __VA_ARGS__) T(r "25", __VA_ARGS__) F(r "26", __VA_ARGS__)    \
    T(r "9", __VA_ARGS__) F(r "8", __VA_ARGS__) T(r "11", __VA_ARGS__) F(r "10", __VA_ARGS__)      \
    T(r "13", __VA_ARGS__) F(r "12", __VA_ARGS__) T(r "15", __VA_ARGS__) F(r "14", __VA_ARGS__)    \
    T(r "20", __VA_ARGS__) F(r "19", __VA_ARGS__) T(r "22", __VA_ARGS__) F(r "21", __VA_ARGS__)    \
    T(r "24", __VA_ARGS__) F(r "23", __VA_ARGS__) T(r "26", __VA_ARGS__) F(r "25", __VA_ARGS__)

#define COMPARE_NEON(name, compare, shape)                                                         \
    KERNEL_NEON(name, EACH_24,                                                                     \
                TIMES_8(EACH_24_WITH_3(STEP_NEON, "24", "25", "26", compare, shape, ZK0)           \
                        EACH_24_WITH_3(STEP_NEON, "24", "25", "26", compare, shape, ZK1)),         \
                DO_PLAIN, "sub", ZK3, "v", shape)
#define COMPARE_GPR(name, r, bytes)                                                                \
    LOOP_GPR(name, r, bytes,                                                                       \
             TIMES_8(IN_TURN(TRUE_GPR, FALSE_GPR, r, "cmp", r "7", r "5", r "6")))
#define COMPARE_FP(name, r)                                                                 \
    static void name##_loop(uint64_t iterations, void *state, const void *constants)               \
    {                                                                                              \
        __asm__ volatile(LOAD_CONSTANTS(r)                                                         \
                         EACH_GPR(LOAD_GPR, "x", "8")                                              \
                         LOOP_BEGIN                                                                \
                         TIMES_8(IN_TURN(TRUE_GPR, FALSE_GPR, "x", "fcmp", r ZK2, r ZK0, r ZK1))   \
                         LOOP_END                                                                  \
                         EACH_GPR(STORE_GPR, "x", "8")                                             \
                         : [n] "+&r"(iterations)                                                   \
                         : [state] "r"(state), [constants] "r"(constants)                          \
                         : "cc", "memory", CLOBBER_GPR, CLOBBER_32);                               \
    }
/* clang-format on */

COMPARE_NEON(compare_int8_neon, "cmgt", ".16b")
COMPARE_NEON(compare_int16_neon, "cmgt", ".8h")
COMPARE_GPR(compare_int32_scalar, "w", "4")
COMPARE_NEON(compare_int32_neon, "cmgt", ".4s")
COMPARE_GPR(compare_int64_scalar, "x", "8")
COMPARE_NEON(compare_int64_neon, "cmgt", ".2d")
COMPARE_FP(compare_fp32_scalar, "s")
COMPARE_NEON(compare_fp32_neon, "fcmgt", ".4s")
COMPARE_FP(compare_fp64_scalar, "d")
COMPARE_NEON(compare_fp64_neon, "fcmgt", ".2d")

static const struct kernel kernels[] = {
    ROW(compare, int8, neon, FEATURE_NEON, 16, 24, integer_neon),
    ROW(compare, int16, neon, FEATURE_NEON, 16, 24, integer_neon),
    ROW_GPR(compare, int32, FEATURE_NEON, 4, 16, integer_scalar),
    ROW(compare, int32, neon, FEATURE_NEON, 16, 24, integer_neon),
    ROW_GPR(compare, int64, FEATURE_NEON, 8, 16, integer_scalar),
    ROW(compare, int64, neon, FEATURE_NEON, 16, 24, integer_neon),
    ROW_GPR(compare, fp32, FEATURE_NEON, 8, 16, fp_scalar),
    ROW(compare, fp32, neon, FEATURE_NEON, 16, 24, fp32_neon),
    ROW_GPR(compare, fp64, FEATURE_NEON, 8, 16, fp_scalar),
    ROW(compare, fp64, neon, FEATURE_NEON, 16, 24, fp64_neon),
    {.dtype = NULL},
};
#endif

static const char *const dtypes[] = {"int8", "int16", "int32", "int64", "fp32", "fp64", NULL};

static const struct param params[] = {
    PARAM_DTYPE(dtypes, "int32"),
    PARAM_ISA(isas, "Scalar integers use the general-purpose registers."),
    PARAM_SEED,
    {.name = NULL},
};

WORKLOAD(compare) = {
    .name = "compare",
    .description = "Comparisons on independent registers; the results are counted.",
    .rate = OPERATION_RATE("Comparisons per second, one per instruction and lane; counting the "
                           "results does not count as an operation"),
    .params = params,
    .own = kernels,
    KERNEL_FUNCTIONS,
};
