/* Multiplication of 8-bit lanes, which no x86 vector instruction does: the even bytes by a 16-bit
 * multiplication whose upper half is dropped, the odd ones by a second whose operand has its lower
 * half masked out, then both halves joined. Constant 0 masks the odd bytes, 1 multiplies (as 16 bits;
 * with AVX-512 2 does the odd ones), 4 masks the even bytes where there is no and-not of the right
 * form, 3 is what int_mul_add adds. `t` is an intermediate register. */
#ifndef CPU_BENCH_INTEGER_MULTIPLY_H
#define CPU_BENCH_INTEGER_MULTIPLY_H

#include "loops.h"

/* Laid out by hand: one line is one instruction. */
/* clang-format off */
#if defined(__x86_64__)
#define MASK_SSE(a, t)                                                                             \
    "movdqa %%xmm" a ", %%xmm" t "\n\t"                                                            \
    "pand %%xmm" XK0 ", %%xmm" t "\n\t"
#define TIMES_SSE(a) DO_SSE(a, "pmullw", XK1, "xmm")
#define KEEP_SSE(a) DO_SSE(a, "pand", XK4, "xmm")
#define JOIN_SSE(a, t) DO_SSE(a, "por", t, "xmm")
#define ADD_SSE_BYTES(a) DO_SSE(a, "paddb", XK3, "xmm")
#define MASK_AVX2(a, t) "vpand %%ymm" XK0 ", %%ymm" a ", %%ymm" t "\n\t"
#define TIMES_AVX2(a) DO_VEX(a, "vpmullw", XK1, "ymm")
#define KEEP_AVX2(a) DO_VEX(a, "vpand", XK4, "ymm")
#define JOIN_AVX2(a, t) DO_VEX(a, "vpor", t, "ymm")
#define ADD_AVX2_BYTES(a) DO_VEX(a, "vpaddb", XK3, "ymm")
#define ADD_NOTHING(a)
/* 0xdc: (a and not mask) or t */
#define MULTIPLY_INT8_AVX512(a, t)                                                                 \
    "vpandd %%zmm" ZK0 ", %%zmm" a ", %%zmm" t "\n\t"                                              \
    "vpmullw %%zmm" ZK1 ", %%zmm" a ", %%zmm" a "\n\t"                                             \
    "vpmullw %%zmm" ZK2 ", %%zmm" t ", %%zmm" t "\n\t"                                             \
    "vpternlogd $0xdc, %%zmm" ZK0 ", %%zmm" t ", %%zmm" a "\n\t"

#define STEP_MULTIPLY_INT8_AVX512(a, t, ...) MULTIPLY_INT8_AVX512(a, t)
#define STEP_MULTIPLY_ADD_INT8_AVX512(a, t, ...)                                                   \
    MULTIPLY_INT8_AVX512(a, t) DO_VEX(a, "vpaddb", ZK3, "zmm")

/* Products in turn, each two behind the one before in the second half of its instructions: `a` and
 * `t` begin, `b` and `u` are joined, `c` is added to. One product after the other reaches 92 to 96 %
 * of what the ports of Golden Cove allow, this order 97.6 %. Nine accumulators share three
 * intermediate registers, and one held constant 2: what another has left
 * in one shows when an instruction is missing. */
#define INT8_ROW(a, t, b, u, c, X, ADD)                                                            \
    MASK_##X(a, t) KEEP_##X(b) ADD(c) JOIN_##X(b, u) TIMES_##X(a) TIMES_##X(t)
#define INT8_FIRST(X, ADD)                                                                         \
    MASK_##X("0", "9") TIMES_##X("0") TIMES_##X("9")                                               \
    MASK_##X("1", "10") TIMES_##X("1") TIMES_##X("10")                                             \
    MASK_##X("2", XK2) KEEP_##X("0") JOIN_##X("0", "9") TIMES_##X("2") TIMES_##X(XK2)
#define INT8_3_TO_8(X, ADD)                                                                        \
    INT8_ROW("3", "9", "1", "10", "0", X, ADD) INT8_ROW("4", "10", "2", XK2, "1", X, ADD)          \
    INT8_ROW("5", XK2, "3", "9", "2", X, ADD) INT8_ROW("6", "9", "4", "10", "3", X, ADD)           \
    INT8_ROW("7", "10", "5", XK2, "4", X, ADD) INT8_ROW("8", XK2, "6", "9", "5", X, ADD)
#define INT8_0_TO_2(X, ADD)                                                                        \
    INT8_ROW("0", "9", "7", "10", "6", X, ADD) INT8_ROW("1", "10", "8", XK2, "7", X, ADD)          \
    INT8_ROW("2", XK2, "0", "9", "8", X, ADD)
#define INT8_LAST(X, ADD)                                                                          \
    KEEP_##X("7") ADD("6") JOIN_##X("7", "10") KEEP_##X("8") ADD("7") JOIN_##X("8", XK2) ADD("8")
#define INT8_FOUR_TIMES(X, ADD)                                                                    \
    INT8_FIRST(X, ADD) TIMES_3(INT8_3_TO_8(X, ADD) INT8_0_TO_2(X, ADD)) INT8_3_TO_8(X, ADD)        \
    INT8_LAST(X, ADD)
#define KERNEL_INT8_SSE(name, ADD)                                                                 \
    KERNEL_SSE(name, EACH_9, "movdqa", "16", "", INT8_FOUR_TIMES(SSE, ADD), DO_SSE, "pmullw", XK3, "xmm")
#define KERNEL_INT8_AVX2(name, ADD)                                                                \
    KERNEL_VEX(name, EACH_9, "ymm", "vmovdqa", "32", "", INT8_FOUR_TIMES(AVX2, ADD),               \
               DO_VEX, "vpmullw", XK3, "ymm")
/* Twelve accumulators of thirty-two registers need no such order on Golden Cove. */
#define KERNEL_INT8_AVX512(name, STEP)                                                             \
    KERNEL_AVX512(name, EACH_12, "", TIMES_4(EACH_12_WITH_3(STEP, "12", "13", "14", 0)), DO_VEX, "vpmullw", XK3, "zmm")

/* On Zen 4, where one product after the other reaches 85 %, two are made at a time, `a` and `b`, while
 * the two before, `c` and `d`, are joined and the two before those, `e` and `f`, added to (100 %).
 * Twenty accumulators share four intermediate registers, two at a time. */
#define MASK_AVX512(a, t) "vpandd %%zmm" ZK0 ", %%zmm" a ", %%zmm" t "\n\t"
#define TIMES_AVX512(a) DO_VEX(a, "vpmullw", ZK1, "zmm")
#define JOIN_AVX512(a, t) "vpternlogd $0xdc, %%zmm" ZK0 ", %%zmm" t ", %%zmm" a "\n\t"
#define ADD_AVX512_BYTES(a) DO_VEX(a, "vpaddb", ZK3, "zmm")
#define TWO_PRODUCTS(a, b, t, u)                                                                   \
    TIMES_AVX512(a) TIMES_AVX512(b) TIMES_AVX512(t) TIMES_AVX512(u)
#define TWO_ROW(a, b, t, u, c, d, v, w, e, f, ADD)                                                 \
    MASK_AVX512(a, t) MASK_AVX512(b, u) ADD(e) ADD(f) TWO_PRODUCTS(a, b, t, u)                     \
    JOIN_AVX512(c, v) JOIN_AVX512(d, w)
#define TWO_AT_FIRST                                                                               \
    MASK_AVX512("0", "20") MASK_AVX512("1", "21") TWO_PRODUCTS("0", "1", "20", "21")               \
    MASK_AVX512("2", "22") MASK_AVX512("3", "23") TWO_PRODUCTS("2", "3", "22", "23")               \
    JOIN_AVX512("0", "20") JOIN_AVX512("1", "21")
#define TWO_0_AND_2(ADD)                                                                           \
    TWO_ROW("0", "1", "20", "21", "18", "19", "22", "23", "16", "17", ADD)                         \
    TWO_ROW("2", "3", "22", "23", "0", "1", "20", "21", "18", "19", ADD)
#define TWO_4_TO_18(ADD)                                                                           \
    TWO_ROW("4", "5", "20", "21", "2", "3", "22", "23", "0", "1", ADD)                             \
    TWO_ROW("6", "7", "22", "23", "4", "5", "20", "21", "2", "3", ADD)                             \
    TWO_ROW("8", "9", "20", "21", "6", "7", "22", "23", "4", "5", ADD)                             \
    TWO_ROW("10", "11", "22", "23", "8", "9", "20", "21", "6", "7", ADD)                           \
    TWO_ROW("12", "13", "20", "21", "10", "11", "22", "23", "8", "9", ADD)                         \
    TWO_ROW("14", "15", "22", "23", "12", "13", "20", "21", "10", "11", ADD)                       \
    TWO_ROW("16", "17", "20", "21", "14", "15", "22", "23", "12", "13", ADD)                       \
    TWO_ROW("18", "19", "22", "23", "16", "17", "20", "21", "14", "15", ADD)
#define TWO_AT_LAST(ADD)                                                                           \
    ADD("16") ADD("17") JOIN_AVX512("18", "22") JOIN_AVX512("19", "23") ADD("18") ADD("19")
#define KERNEL_INT8_AMD(name, ADD)                                                                 \
    KERNEL_AVX512(name, EACH_20, "",                                                               \
                  TWO_AT_FIRST TIMES_3(TWO_4_TO_18(ADD) TWO_0_AND_2(ADD)) TWO_4_TO_18(ADD)    \
                  TWO_AT_LAST(ADD),                                                                \
                  DO_VEX, "vpmullw", XK3, "zmm")
#endif
/* clang-format on */

/* What one round of int8 does: three times the lane, plus seven in int_mul_add. */
#define INT8_CONSTANTS {ALL(0xff00), ALL(3), ALL(3), ALL(0x0707), ALL(0x00ff)}

#endif
