/* Multiplication of 8-bit lanes, which no x86 vector instruction does: the even bytes by a 16-bit
 * multiplication whose upper half is dropped, the odd ones by a second whose operand has its lower
 * half masked out, then both halves joined. Constant 0 masks the odd bytes, 1 and 2 multiply (as 16
 * bits), 4 masks the even bytes where there is no and-not of the right form. `t` is an intermediate
 * register. */
#ifndef CPU_BENCH_INTEGER_MULTIPLY_H
#define CPU_BENCH_INTEGER_MULTIPLY_H

#include "loops.h"

/* Laid out by hand: one line is one instruction. */
/* clang-format off */
#if defined(__x86_64__)
#define MULTIPLY_INT8_SSE(a, t)                                                                    \
    "movdqa %%xmm" a ", %%xmm" t "\n\t"                                                            \
    "pand %%xmm" XK0 ", %%xmm" t "\n\t"                                                            \
    "pmullw %%xmm" XK1 ", %%xmm" a "\n\t"                                                          \
    "pmullw %%xmm" XK2 ", %%xmm" t "\n\t"                                                          \
    "pand %%xmm" XK4 ", %%xmm" a "\n\t"                                                            \
    "por %%xmm" t ", %%xmm" a "\n\t"
#define MULTIPLY_INT8_AVX2(a, t)                                                                   \
    "vpand %%ymm" XK0 ", %%ymm" a ", %%ymm" t "\n\t"                                               \
    "vpmullw %%ymm" XK1 ", %%ymm" a ", %%ymm" a "\n\t"                                             \
    "vpmullw %%ymm" XK2 ", %%ymm" t ", %%ymm" t "\n\t"                                             \
    "vpand %%ymm" XK4 ", %%ymm" a ", %%ymm" a "\n\t"                                               \
    "vpor %%ymm" t ", %%ymm" a ", %%ymm" a "\n\t"
/* 0xdc: (a and not mask) or t */
#define MULTIPLY_INT8_AVX512(a, t)                                                                 \
    "vpandd %%zmm" ZK0 ", %%zmm" a ", %%zmm" t "\n\t"                                              \
    "vpmullw %%zmm" ZK1 ", %%zmm" a ", %%zmm" a "\n\t"                                             \
    "vpmullw %%zmm" ZK2 ", %%zmm" t ", %%zmm" t "\n\t"                                             \
    "vpternlogd $0xdc, %%zmm" ZK0 ", %%zmm" t ", %%zmm" a "\n\t"

#define STEP_MULTIPLY_INT8_SSE(a, t, ...) MULTIPLY_INT8_SSE(a, t)
#define STEP_MULTIPLY_INT8_AVX2(a, t, ...) MULTIPLY_INT8_AVX2(a, t)
#define STEP_MULTIPLY_INT8_AVX512(a, t, ...) MULTIPLY_INT8_AVX512(a, t)
#define STEP_MULTIPLY_ADD_INT8_SSE(a, t, ...)                                                      \
    MULTIPLY_INT8_SSE(a, t) DO_SSE(a, "paddb", XK3, "xmm")
#define STEP_MULTIPLY_ADD_INT8_AVX2(a, t, ...)                                                     \
    MULTIPLY_INT8_AVX2(a, t) DO_VEX(a, "vpaddb", XK3, "ymm")
#define STEP_MULTIPLY_ADD_INT8_AVX512(a, t, ...)                                                   \
    MULTIPLY_INT8_AVX512(a, t) DO_VEX(a, "vpaddb", ZK3, "zmm")

/* Eight or twelve accumulators share three intermediate registers: what another has left in one
 * shows when an instruction is missing. */
#define KERNEL_INT8_SSE(name, STEP)                                                                \
    KERNEL_SSE(name, EACH_8, "movdqa", "16", "", TIMES_4(EACH_8_WITH_3(STEP, "8", "9", "10", 0)),      \
               DO_SSE, "pmullw", XK3, "xmm")
#define KERNEL_INT8_AVX2(name, STEP)                                                               \
    KERNEL_VEX(name, EACH_8, "ymm", "vmovdqa", "32", "",                                              \
               TIMES_4(EACH_8_WITH_3(STEP, "8", "9", "10", 0)), DO_VEX, "vpmullw", XK3, "ymm")
#define KERNEL_INT8_AVX512(name, STEP)                                                             \
    KERNEL_AVX512(name, EACH_12, "", TIMES_4(EACH_12_WITH_3(STEP, "12", "13", "14", 0)), DO_VEX, "vpmullw", XK3, "zmm")
#endif
/* clang-format on */

/* What one round of int8 does: three times the lane, plus seven in int_mul_add. */
#define INT8_CONSTANTS {ALL(0xff00), ALL(3), ALL(3), ALL(0x0707), ALL(0x00ff)}

#endif
