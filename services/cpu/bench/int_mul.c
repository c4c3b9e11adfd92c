/* int_mul: multiplications on independent accumulators, modulo the width of a lane. */
#include "cpu_features.h"
#include "integer_multiply.h"
#include "loops.h"
#include "vector_kernel.h"
#include "workload.h"

/* 27·x: no number has more different powers modulo 2^n. */
static const struct recipe pairs = {.rounds = PAIRS,
                                    .steps = 2,
                                    .operations = 2,
                                    .multiplier = 27,
                                    .addend = 0,
                                    .constants = {ALL(3), ALL(9)}};

#if defined(__x86_64__)
static const struct recipe one_pair = {.rounds = 1,
                                       .steps = 2,
                                       .operations = 2,
                                       .multiplier = 27,
                                       .addend = 0,
                                       .constants = {ALL(3), ALL(9)}};
static const struct recipe memory_pairs = {.rounds = 4,
                                           .steps = 2,
                                           .operations = 2,
                                           .multiplier = 27,
                                           .addend = 0,
                                           .constants = {ALL(3), ALL(9)}};
/* As compilers do, 8 and 16 bits are multiplied in 32-bit registers. */
static const struct recipe scalar_pairs = {.rounds = PAIRS,
                                           .steps = 2,
                                           .operations = 2,
                                           .multiplier = 27,
                                           .addend = 0,
                                           .lane = "int32",
                                           .operand = "int32",
                                           .constants = {ALL(3), ALL(9)}};
static const struct recipe int8_sse2 = {.rounds = 4,
                                        .steps = 6,
                                        .operations = 1,
                                        .multiplier = 3,
                                        .addend = 0,
                                        .operand = "int16",
                                        .constants = INT8_CONSTANTS};
static const struct recipe int8_avx2 = {.rounds = 4,
                                        .steps = 5,
                                        .operations = 1,
                                        .multiplier = 3,
                                        .addend = 0,
                                        .operand = "int16",
                                        .constants = INT8_CONSTANTS};
static const struct recipe int8_avx512 = {.rounds = 4,
                                          .steps = 4,
                                          .operations = 1,
                                          .multiplier = 3,
                                          .addend = 0,
                                          .operand = "int16",
                                          .constants = INT8_CONSTANTS};

/* The latency of ten cycles takes all sixteen registers, so the constants stay in memory. */
#define DO_SSE_MEMORY(a, op, offset) op " " offset "(%[constants]), %%xmm" a "\n\t"
#define DO_AVX2_MEMORY(a, op, offset) op " " offset "(%[constants]), %%ymm" a ", %%ymm" a "\n\t"
#define BODY_MEMORY(M, op) TIMES_4(EACH_16(M, op, "0") EACH_16(M, op, "64"))

KERNEL_INT8_SSE(int_mul_int8_sse2, ADD_NOTHING)
KERNEL_INT8_AVX2(int_mul_int8_avx2, ADD_NOTHING)
KERNEL_INT8_AVX512(int_mul_int8_avx512, STEP_MULTIPLY_INT8_AVX512)
KERNEL_INT8_AMD(int_mul_int8_avx512_amd, ADD_NOTHING)
PAIRS_SSE(int_mul_int16_sse2, "pmullw", "pmullw", "movdqa", "16")
PAIRS_VEX(int_mul_int16_avx2, "vpmullw", "vpmullw", "ymm", "vmovdqa", "32")
PAIRS_AVX512(int_mul_int16_avx512, "vpmullw", "vpmullw")
PAIRS_GPR(int_mul_int32_scalar, "imul", "imul", "eax", "edx", "ebx", "ecx", "d", "4")
KERNEL_SSE(int_mul_int32_sse2, EACH_16, "movdqa", "16", "", BODY_MEMORY(DO_SSE_MEMORY, "pmulld"),
           DO_SSE, "pmulld", XK3, "xmm")
KERNEL_VEX(int_mul_int32_avx2, EACH_16, "ymm", "vmovdqa", "32", "",
           BODY_MEMORY(DO_AVX2_MEMORY, "vpmulld"), DO_VEX, "vpmulld", XK3, "ymm")
/* Once, as Golden Cove reaches 99.7 % of its limit in 48 of these instructions, and 94 to 97 % in two
 * to eight times as many. */
KERNEL_AVX512(int_mul_int32_avx512, EACH_24, "",
              EACH_24(DO_VEX, "vpmulld", ZK0, "zmm") EACH_24(DO_VEX, "vpmulld", ZK1, "zmm"), DO_VEX,
              "vpmulld", XK3, "zmm")
PAIRS_GPR(int_mul_int64_scalar, "imul", "imul", "rax", "rdx", "rbx", "rcx", "", "8")
PAIRS_AVX512(int_mul_int64_avx512, "vpmullq", "vpmullq")

static const struct kernel kernels[] = {
    {"int8", "scalar", NULL, FEATURE_SSE2, 4, 10, &scalar_pairs, int_mul_int32_scalar_loop,
     loop_add_chain, NULL},
    ROW(int_mul, int8, sse2, FEATURE_SSE2, 16, 9, int8_sse2),
    ROW(int_mul, int8, avx2, FEATURE_AVX2, 32, 9, int8_avx2),
    ROW_AMD(int_mul, int8, avx512, FEATURE_AVX512BW, 64, 20, int8_avx512),
    ROW(int_mul, int8, avx512, FEATURE_AVX512BW, 64, 12, int8_avx512),
    {"int16", "scalar", NULL, FEATURE_SSE2, 4, 10, &scalar_pairs, int_mul_int32_scalar_loop,
     loop_add_chain, NULL},
    ROW(int_mul, int16, sse2, FEATURE_SSE2, 16, 12, pairs),
    ROW(int_mul, int16, avx2, FEATURE_AVX2, 32, 12, pairs),
    ROW(int_mul, int16, avx512, FEATURE_AVX512BW, 64, 24, pairs),
    ROW_GPR(int_mul, int32, FEATURE_SSE2, 4, 10, pairs),
    ROW(int_mul, int32, sse2, FEATURE_SSE41, 16, 16, memory_pairs),
    ROW(int_mul, int32, avx2, FEATURE_AVX2, 32, 16, memory_pairs),
    ROW(int_mul, int32, avx512, FEATURE_AVX512F, 64, 24, one_pair),
    ROW_GPR(int_mul, int64, FEATURE_SSE2, 8, 10, pairs),
    ROW(int_mul, int64, avx512, FEATURE_AVX512DQ, 64, 24, pairs),
    {.dtype = NULL},
};
#else
PAIRS_NEON(int_mul_int8_neon, "mul", "mul", ".16b")
PAIRS_NEON(int_mul_int16_neon, "mul", "mul", ".8h")
PAIRS_GPR(int_mul_int32_scalar, "mul", "mul", "w", "4")
PAIRS_NEON(int_mul_int32_neon, "mul", "mul", ".4s")
PAIRS_GPR(int_mul_int64_scalar, "mul", "mul", "x", "8")

PAIRS_SVE(int_mul_int8_sve, DO_SVE_PREDICATED, "mul", "mul", "b")
PAIRS_SVE(int_mul_int16_sve, DO_SVE_PREDICATED, "mul", "mul", "h")
PAIRS_SVE(int_mul_int32_sve, DO_SVE_PREDICATED, "mul", "mul", "s")
PAIRS_SVE(int_mul_int64_sve, DO_SVE_PREDICATED, "mul", "mul", "d")

static const struct kernel kernels[] = {
    ROW(int_mul, int8, neon, FEATURE_NEON, 16, 24, pairs),
    ROW(int_mul, int8, sve, FEATURE_SVE, 0, 24, pairs),
    ROW(int_mul, int16, neon, FEATURE_NEON, 16, 24, pairs),
    ROW(int_mul, int16, sve, FEATURE_SVE, 0, 24, pairs),
    ROW_GPR(int_mul, int32, FEATURE_NEON, 4, 16, pairs),
    ROW(int_mul, int32, neon, FEATURE_NEON, 16, 24, pairs),
    ROW(int_mul, int32, sve, FEATURE_SVE, 0, 24, pairs),
    ROW_GPR(int_mul, int64, FEATURE_NEON, 8, 16, pairs),
    ROW(int_mul, int64, sve, FEATURE_SVE, 0, 24, pairs),
    {.dtype = NULL},
};
#endif

static const struct param params[] = {
    PARAM_DTYPE(integer_dtypes, "int32"),
    PARAM_ISA(isas, "x86 has no int8 multiplication: several instructions make up one. Scalar "
                    "multiplications of 8 and 16 bits use 32-bit registers."),
    PARAM_SEED,
    {.name = NULL},
};

WORKLOAD(int_mul) = {
    .name = "int_mul",
    .description =
        "Integer multiplications on independent registers; they keep the low half of the product.",
    .rate = OPERATION_RATE("Multiplications per second, one per lane"),
    .params = params,
    .own = kernels,
    KERNEL_FUNCTIONS,
};
