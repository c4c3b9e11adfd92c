/* The assembly loops of the kernels. They are written out instead of left to the compiler:
 * compilers were seen to keep accumulators in memory, and to merge those that are equal. A test
 * counts their instructions in the disassembly. */
#ifndef CPU_BENCH_LOOPS_H
#define CPU_BENCH_LOOPS_H

#include <stdint.h>

/* Counter and branch only. */
void loop_empty(uint64_t iterations);
/* CHAIN_CYCLES dependent additions an iteration, nothing else. Registers only: Golden Cove removes
 * additions of an immediate at rename. */
void loop_add_chain(uint64_t iterations);
enum { SUM_CHAIN_ADDEND = 3 };
/* The same additions, each of SUM_CHAIN_ADDEND, beginning with `x`: the sum, to be verified. */
uint64_t loop_sum_chain(uint64_t iterations, uint64_t x);
#if defined(__x86_64__)
enum { MULTIPLY_CHAIN_LENGTH = 16 };
/* MULTIPLY_CHAIN_LENGTH dependent 64-bit multiplications an iteration. */
void loop_multiply_chain(uint64_t iterations);
#endif

/* Laid out by hand: one line is one list. */
/* clang-format off */

/* `M` with the number of every accumulator. */
#define EACH_4(M, ...) M("0", __VA_ARGS__) M("1", __VA_ARGS__) M("2", __VA_ARGS__) M("3", __VA_ARGS__)
#define EACH_8(M, ...)                                                                             \
    EACH_4(M, __VA_ARGS__)                                                                         \
    M("4", __VA_ARGS__) M("5", __VA_ARGS__) M("6", __VA_ARGS__) M("7", __VA_ARGS__)
#define EACH_9(M, ...) EACH_8(M, __VA_ARGS__) M("8", __VA_ARGS__)
#define EACH_12(M, ...)                                                                            \
    EACH_8(M, __VA_ARGS__)                                                                         \
    M("8", __VA_ARGS__) M("9", __VA_ARGS__) M("10", __VA_ARGS__) M("11", __VA_ARGS__)
#define EACH_14(M, ...) EACH_12(M, __VA_ARGS__) M("12", __VA_ARGS__) M("13", __VA_ARGS__)
#define EACH_16(M, ...) EACH_14(M, __VA_ARGS__) M("14", __VA_ARGS__) M("15", __VA_ARGS__)
#define EACH_20(M, ...)                                                                            \
    EACH_16(M, __VA_ARGS__)                                                                        \
    M("16", __VA_ARGS__) M("17", __VA_ARGS__) M("18", __VA_ARGS__) M("19", __VA_ARGS__)
#define EACH_24(M, ...)                                                                            \
    EACH_12(M, __VA_ARGS__)                                                                        \
    M("12", __VA_ARGS__) M("13", __VA_ARGS__) M("14", __VA_ARGS__) M("15", __VA_ARGS__)            \
    M("16", __VA_ARGS__) M("17", __VA_ARGS__) M("18", __VA_ARGS__) M("19", __VA_ARGS__)            \
    M("20", __VA_ARGS__) M("21", __VA_ARGS__) M("22", __VA_ARGS__) M("23", __VA_ARGS__)

/* `X` with the numbers of four accumulators at a time: two kinds of instructions in turn, four of
 * each, keep the ports of Golden Cove busier (99 %) than twelve of each (88 %) or one of each (91 %):
 * it binds instructions to ports when it renames them. In loops of at most 168 of them, that is:
 * with 192 it is back at 89 %. */
#define FOURS_12(X, ...)                                                                           \
    X("0", "1", "2", "3", __VA_ARGS__) X("4", "5", "6", "7", __VA_ARGS__)                          \
    X("8", "9", "10", "11", __VA_ARGS__)
#define FOURS_24(X, ...)                                                                           \
    FOURS_12(X, __VA_ARGS__)                                                                       \
    X("12", "13", "14", "15", __VA_ARGS__) X("16", "17", "18", "19", __VA_ARGS__)                  \
    X("20", "21", "22", "23", __VA_ARGS__)
#define FOUR(a, b, c, d, M, ...)                                                                   \
    M(a, __VA_ARGS__) M(b, __VA_ARGS__) M(c, __VA_ARGS__) M(d, __VA_ARGS__)

/* The same as EACH with a second number, of a register for an intermediate result. */
#define EACH_8_WITH_3(M, x, y, z, ...)                                                             \
    M("0", x, __VA_ARGS__) M("1", y, __VA_ARGS__) M("2", z, __VA_ARGS__) M("3", x, __VA_ARGS__)    \
    M("4", y, __VA_ARGS__) M("5", z, __VA_ARGS__) M("6", x, __VA_ARGS__) M("7", y, __VA_ARGS__)
#define EACH_12_WITH_3(M, x, y, z, ...)                                                            \
    EACH_8_WITH_3(M, x, y, z, __VA_ARGS__)                                                         \
    M("8", z, __VA_ARGS__) M("9", x, __VA_ARGS__) M("10", y, __VA_ARGS__) M("11", z, __VA_ARGS__)
#define EACH_24_WITH_3(M, x, y, z, ...)                                                            \
    EACH_12_WITH_3(M, x, y, z, __VA_ARGS__)                                                        \
    M("12", y, __VA_ARGS__) M("13", z, __VA_ARGS__) M("14", x, __VA_ARGS__) M("15", y, __VA_ARGS__) \
    M("16", z, __VA_ARGS__) M("17", x, __VA_ARGS__) M("18", y, __VA_ARGS__) M("19", z, __VA_ARGS__) \
    M("20", x, __VA_ARGS__) M("21", y, __VA_ARGS__) M("22", z, __VA_ARGS__) M("23", x, __VA_ARGS__)

#define TIMES_2(body) body body
#define TIMES_3(body) body body body
#define TIMES_4(body) body body body body
#define TIMES_6(body) TIMES_4(body) TIMES_2(body)
#define TIMES_7(body) TIMES_4(body) body body body
#define TIMES_8(body) TIMES_4(body) TIMES_4(body)

/* PAIRS rounds of two instructions on every accumulator, each with a constant of its own. */
#define BODY_PAIRS(EACH, M, first, second, k0, k1, ...)                                            \
    TIMES_8(EACH(M, first, k0, __VA_ARGS__) EACH(M, second, k1, __VA_ARGS__))

#if defined(__x86_64__)
#include "loops_x86_64.h"
#else
#include "loops_aarch64.h"
#endif
/* clang-format on */

#endif
