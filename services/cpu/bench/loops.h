/* The assembly loops of the vector kernels. They are written out instead of left to the compiler:
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
#if defined(__x86_64__)
enum { MULTIPLY_CHAIN_LENGTH = 16 };
/* MULTIPLY_CHAIN_LENGTH dependent 64-bit multiplications an iteration. */
void loop_multiply_chain(uint64_t iterations);
#endif

#define EACH_12(M, ...)                                                                            \
    M("0", __VA_ARGS__)                                                                            \
    M("1", __VA_ARGS__)                                                                            \
    M("2", __VA_ARGS__)                                                                            \
    M("3", __VA_ARGS__)                                                                            \
    M("4", __VA_ARGS__)                                                                            \
    M("5", __VA_ARGS__)                                                                            \
    M("6", __VA_ARGS__)                                                                            \
    M("7", __VA_ARGS__)                                                                            \
    M("8", __VA_ARGS__) M("9", __VA_ARGS__) M("10", __VA_ARGS__) M("11", __VA_ARGS__)
#define EACH_24(M, ...)                                                                            \
    EACH_12(M, __VA_ARGS__)                                                                        \
    M("12", __VA_ARGS__)                                                                           \
    M("13", __VA_ARGS__)                                                                           \
    M("14", __VA_ARGS__)                                                                           \
    M("15", __VA_ARGS__)                                                                           \
    M("16", __VA_ARGS__)                                                                           \
    M("17", __VA_ARGS__)                                                                           \
    M("18", __VA_ARGS__)                                                                           \
    M("19", __VA_ARGS__)                                                                           \
    M("20", __VA_ARGS__) M("21", __VA_ARGS__) M("22", __VA_ARGS__) M("23", __VA_ARGS__)

/* PAIRS times `M`. */
#define TIMES_PAIRS(M, ...)                                                                        \
    M(__VA_ARGS__)                                                                                 \
    M(__VA_ARGS__)                                                                                 \
    M(__VA_ARGS__) M(__VA_ARGS__) M(__VA_ARGS__) M(__VA_ARGS__) M(__VA_ARGS__) M(__VA_ARGS__)
/* Add the first constant to every accumulator, subtract the second. */
#define PAIR(EACH, I, add, sub, k0, k1, ...)                                                       \
    EACH(I, add, k0, __VA_ARGS__) EACH(I, sub, k1, __VA_ARGS__)
#define BODY(...) TIMES_PAIRS(PAIR, __VA_ARGS__)

#if defined(__x86_64__)
#include "loops_x86_64.h"
#else
#include "loops_aarch64.h"
#endif

#endif
