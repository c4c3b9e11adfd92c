/* int_mul_add: a multiplication and an addition in turn, modulo the width of a lane. */
#include "cpu_features.h"
#include "integer_multiply.h"
#include "loops.h"
#include "vector_kernel.h"
#include "workload.h"

#if defined(__x86_64__)
/* 3·x + 7, on general-purpose and 512-bit registers */
static const struct recipe pairs = {.rounds = PAIRS,
                                    .steps = 2,
                                    .operations = 2,
                                    .multiplier = 3,
                                    .addend = 7,
                                    .constants = {ALL(3), ALL(7)}};
static const struct recipe chained = {.rounds = 3,
                                      .steps = 2,
                                      .operations = 2,
                                      .multiplier = 3,
                                      .addend = 7,
                                      .constants = {ALL(3), ALL(7)}};
/* As compilers do, 8 and 16 bits are multiplied in 32-bit registers. */
static const struct recipe scalar_pairs = {.rounds = PAIRS,
                                           .steps = 2,
                                           .operations = 2,
                                           .multiplier = 3,
                                           .addend = 7,
                                           .lane = "int32",
                                           .operand = "int32",
                                           .constants = {ALL(3), ALL(7)}};
static const struct recipe int8_sse2 = {.rounds = 4,
                                        .steps = 7,
                                        .operations = 2,
                                        .multiplier = 3,
                                        .addend = 7,
                                        .operand = "int16",
                                        .constants = INT8_CONSTANTS};
static const struct recipe int8_avx2 = {.rounds = 4,
                                        .steps = 6,
                                        .operations = 2,
                                        .multiplier = 3,
                                        .addend = 7,
                                        .operand = "int16",
                                        .constants = INT8_CONSTANTS};
static const struct recipe int8_avx512 = {.rounds = 4,
                                          .steps = 5,
                                          .operations = 2,
                                          .multiplier = 3,
                                          .addend = 7,
                                          .operand = "int16",
                                          .constants = INT8_CONSTANTS};

/* x + 8·3 − 5·3, the products made ahead: a chain of multiplications and additions would be too
 * long for sixteen registers. */
#define LAGGED_RECIPE(instructions)                                                                \
    {                                                                                              \
        .rounds = LAGGED_ROUNDS, .steps = (instructions), .operations = 4, .multiplier = 1,        \
        .addend = 9, .constants = {ALL(8), ALL(-5), ALL(3)}                                        \
    }
/* Multiplications on the first half of the accumulators, additions on the second: 3·x and x + 7. */
#define APART(factor, summand)                                                                     \
    .rounds = 8, .steps = 1, .operations = 1, .multiplier = (factor), .addend = (summand),         \
    .constants = {ALL(0), ALL(0), ALL(3), ALL(7)}
static const struct recipe apart_second = {APART(1, 7)};
static const struct recipe apart = {APART(3, 0), .second_half = &apart_second};
static const struct recipe lagged_sse2 = LAGGED_RECIPE(6);
static const struct recipe lagged_avx2 = LAGGED_RECIPE(4);

/* Laid out by hand: one line is one instruction. */
/* clang-format off */
#define PRODUCT_SSE(t, k, multiply, add, ...)                                                      \
    "movdqa %%xmm" XK2 ", %%xmm" t "\n\t"                                                          \
    multiply " %%xmm" k ", %%xmm" t "\n\t"
#define PRODUCT_AVX2(t, k, multiply, add) multiply " %%ymm" k ", %%ymm" XK2 ", %%ymm" t "\n\t"
#define ADD_SSE(a, t, multiply, add, ...) add " %%xmm" t ", %%xmm" a "\n\t"
#define ADD_AVX2(a, t, multiply, add) add " %%ymm" t ", %%ymm" a ", %%ymm" a "\n\t"
#define MULTIPLY_THEN_ADD(a, multiply, add)                                                        \
    DO_VEX(a, multiply, ZK0, "zmm") DO_VEX(a, add, ZK1, "zmm")
/* Three times: in longer loops Golden Cove reaches 94 to 97 % with int16, in this one 99 %. */
#define CHAINED_AVX512(name, multiply, add)                                                        \
    KERNEL_AVX512(name, EACH_24, "", TIMES_3(EACH_24(MULTIPLY_THEN_ADD, multiply, add)),           \
                  DO_VEX, multiply, XK3, "zmm")
/* Where an addition waits for a product, Zen 4 reaches 70 % of the bound with the addition next, 83 to
 * 91 % with sixteen registers in any order tried, presumably because it is ready late, is the oldest
 * then, and goes to one of the two pipes that multiply. So no addition waits for one: multiplications
 * on the first half of the accumulators, additions on the second, two of each in turn (100 %). */
#define TWO_APART(a, b, c, d, M, multiply, add, K, r)                                              \
    M(a, multiply, K##K2, r) M(b, multiply, K##K2, r) M(c, add, K##K3, r) M(d, add, K##K3, r)
#define APART_7(...)                                                                               \
    TWO_APART("0", "1", "7", "8", __VA_ARGS__) TWO_APART("2", "3", "9", "10", __VA_ARGS__)         \
    TWO_APART("4", "5", "11", "12", __VA_ARGS__) TWO_APART("6", "0", "13", "7", __VA_ARGS__)       \
    TWO_APART("1", "2", "8", "9", __VA_ARGS__) TWO_APART("3", "4", "10", "11", __VA_ARGS__)        \
    TWO_APART("5", "6", "12", "13", __VA_ARGS__)
#define APART_12(...)                                                                              \
    TWO_APART("0", "1", "12", "13", __VA_ARGS__) TWO_APART("2", "3", "14", "15", __VA_ARGS__)      \
    TWO_APART("4", "5", "16", "17", __VA_ARGS__) TWO_APART("6", "7", "18", "19", __VA_ARGS__)      \
    TWO_APART("8", "9", "20", "21", __VA_ARGS__) TWO_APART("10", "11", "22", "23", __VA_ARGS__)
#define APART_SSE(name, multiply, add)                                                             \
    KERNEL_SSE(name, EACH_14, "movdqa", "16", "",                                                  \
               TIMES_4(APART_7(DO_SSE, multiply, add, X, "xmm")), DO_SSE, multiply, XK3, "xmm")
#define APART_AVX2(name, multiply, add)                                                            \
    KERNEL_VEX(name, EACH_14, "ymm", "vmovdqa", "32", "",                                          \
               TIMES_4(APART_7(DO_VEX, multiply, add, X, "ymm")), DO_VEX, multiply, XK3, "ymm")
#define APART_AVX512(name, multiply, add)                                                          \
    KERNEL_AVX512(name, EACH_24, "", TIMES_8(APART_12(DO_VEX, multiply, add, Z, "zmm")), DO_VEX,   \
                  multiply, XK3, "zmm")
/* clang-format on */

KERNEL_INT8_SSE(int_mul_add_int8_sse2, ADD_SSE_BYTES)
KERNEL_INT8_AVX2(int_mul_add_int8_avx2, ADD_AVX2_BYTES)
KERNEL_INT8_AVX512(int_mul_add_int8_avx512, STEP_MULTIPLY_ADD_INT8_AVX512)
KERNEL_INT8_AMD(int_mul_add_int8_avx512_amd, ADD_AVX512_BYTES)
LAGGED_SSE(int_mul_add_int16_sse2, "movdqa", "16", PRODUCT_SSE, ADD_SSE, "pmullw", "paddw", 0)
APART_SSE(int_mul_add_int16_sse2_amd, "pmullw", "paddw")
LAGGED_AVX2(int_mul_add_int16_avx2, PRODUCT_AVX2, ADD_AVX2, "vpmullw", "vpaddw")
APART_AVX2(int_mul_add_int16_avx2_amd, "vpmullw", "vpaddw")
CHAINED_AVX512(int_mul_add_int16_avx512, "vpmullw", "vpaddw")
APART_AVX512(int_mul_add_int16_avx512_amd, "vpmullw", "vpaddw")
PAIRS_GPR(int_mul_add_int32_scalar, "imul", "add", "eax", "edx", "ebx", "ecx", "d", "4")
PAIRS_IN_TURN_GPR(int_mul_add_int32_scalar_amd, "imul", "add", "eax", "edx", "ebx", "ecx", "d", "4")
LAGGED_SSE(int_mul_add_int32_sse2, "movdqa", "16", PRODUCT_SSE, ADD_SSE, "pmulld", "paddd", 0)
APART_SSE(int_mul_add_int32_sse2_amd, "pmulld", "paddd")
LAGGED_AVX2(int_mul_add_int32_avx2, PRODUCT_AVX2, ADD_AVX2, "vpmulld", "vpaddd")
APART_AVX2(int_mul_add_int32_avx2_amd, "vpmulld", "vpaddd")
CHAINED_AVX512(int_mul_add_int32_avx512, "vpmulld", "vpaddd")
APART_AVX512(int_mul_add_int32_avx512_amd, "vpmulld", "vpaddd")
PAIRS_GPR(int_mul_add_int64_scalar, "imul", "add", "rax", "rdx", "rbx", "rcx", "", "8")
PAIRS_IN_TURN_GPR(int_mul_add_int64_scalar_amd, "imul", "add", "rax", "rdx", "rbx", "rcx", "", "8")
CHAINED_AVX512(int_mul_add_int64_avx512, "vpmullq", "vpaddq")
APART_AVX512(int_mul_add_int64_avx512_amd, "vpmullq", "vpaddq")

static const struct kernel kernels[] = {
    {"int8", "scalar", NULL, FEATURE_SSE2, 4, 10, &scalar_pairs, int_mul_add_int32_scalar_amd_loop,
     loop_add_chain, "AuthenticAMD"},
    {"int8", "scalar", NULL, FEATURE_SSE2, 4, 10, &scalar_pairs, int_mul_add_int32_scalar_loop,
     loop_add_chain, NULL},
    ROW(int_mul_add, int8, sse2, FEATURE_SSE2, 16, 9, int8_sse2),
    ROW(int_mul_add, int8, avx2, FEATURE_AVX2, 32, 9, int8_avx2),
    ROW_AMD(int_mul_add, int8, avx512, FEATURE_AVX512BW, 64, 20, int8_avx512),
    ROW(int_mul_add, int8, avx512, FEATURE_AVX512BW, 64, 12, int8_avx512),
    {"int16", "scalar", NULL, FEATURE_SSE2, 4, 10, &scalar_pairs, int_mul_add_int32_scalar_amd_loop,
     loop_add_chain, "AuthenticAMD"},
    {"int16", "scalar", NULL, FEATURE_SSE2, 4, 10, &scalar_pairs, int_mul_add_int32_scalar_loop,
     loop_add_chain, NULL},
    ROW_AMD(int_mul_add, int16, sse2, FEATURE_SSE2, 16, 14, apart),
    ROW(int_mul_add, int16, sse2, FEATURE_SSE2, 16, 3, lagged_sse2),
    ROW_AMD(int_mul_add, int16, avx2, FEATURE_AVX2, 32, 14, apart),
    ROW(int_mul_add, int16, avx2, FEATURE_AVX2, 32, 3, lagged_avx2),
    ROW_AMD(int_mul_add, int16, avx512, FEATURE_AVX512BW, 64, 24, apart),
    ROW(int_mul_add, int16, avx512, FEATURE_AVX512BW, 64, 24, chained),
    ROW_GPR_AMD(int_mul_add, int32, FEATURE_SSE2, 4, 10, pairs),
    ROW_GPR(int_mul_add, int32, FEATURE_SSE2, 4, 10, pairs),
    ROW_AMD(int_mul_add, int32, sse2, FEATURE_SSE41, 16, 14, apart),
    ROW(int_mul_add, int32, sse2, FEATURE_SSE41, 16, 3, lagged_sse2),
    ROW_AMD(int_mul_add, int32, avx2, FEATURE_AVX2, 32, 14, apart),
    ROW(int_mul_add, int32, avx2, FEATURE_AVX2, 32, 3, lagged_avx2),
    ROW_AMD(int_mul_add, int32, avx512, FEATURE_AVX512F, 64, 24, apart),
    ROW(int_mul_add, int32, avx512, FEATURE_AVX512F, 64, 24, chained),
    ROW_GPR_AMD(int_mul_add, int64, FEATURE_SSE2, 8, 10, pairs),
    ROW_GPR(int_mul_add, int64, FEATURE_SSE2, 8, 10, pairs),
    ROW_AMD(int_mul_add, int64, avx512, FEATURE_AVX512DQ, 64, 24, apart),
    ROW(int_mul_add, int64, avx512, FEATURE_AVX512DQ, 64, 24, chained),
    {.dtype = NULL},
};
#else
/* x + 8·3 − 5·3 */
static const struct recipe pairs = {.rounds = PAIRS,
                                    .steps = 2,
                                    .operations = 4,
                                    .multiplier = 1,
                                    .addend = 9,
                                    .constants = {ALL(8), ALL(5), ALL(3)}};

PAIRS_FUSED_NEON(int_mul_add_int8_neon, "mla", "mls", ".16b", ".16b")
PAIRS_FUSED_NEON(int_mul_add_int16_neon, "mla", "mls", ".8h", ".8h")
PAIRS_FUSED_GPR(int_mul_add_int32_scalar, "madd", "msub", "w", "4")
PAIRS_FUSED_NEON(int_mul_add_int32_neon, "mla", "mls", ".4s", ".4s")
PAIRS_FUSED_GPR(int_mul_add_int64_scalar, "madd", "msub", "x", "8")

PAIRS_FUSED_SVE(int_mul_add_int8_sve, "mla", "mls", "b")
PAIRS_FUSED_SVE(int_mul_add_int16_sve, "mla", "mls", "h")
PAIRS_FUSED_SVE(int_mul_add_int32_sve, "mla", "mls", "s")
PAIRS_FUSED_SVE(int_mul_add_int64_sve, "mla", "mls", "d")

static const struct kernel kernels[] = {
    ROW(int_mul_add, int8, neon, FEATURE_NEON, 16, 24, pairs),
    ROW(int_mul_add, int8, sve, FEATURE_SVE, 0, 24, pairs),
    ROW(int_mul_add, int16, neon, FEATURE_NEON, 16, 24, pairs),
    ROW(int_mul_add, int16, sve, FEATURE_SVE, 0, 24, pairs),
    ROW_GPR(int_mul_add, int32, FEATURE_NEON, 4, 16, pairs),
    ROW(int_mul_add, int32, neon, FEATURE_NEON, 16, 24, pairs),
    ROW(int_mul_add, int32, sve, FEATURE_SVE, 0, 24, pairs),
    ROW_GPR(int_mul_add, int64, FEATURE_NEON, 8, 16, pairs),
    ROW(int_mul_add, int64, sve, FEATURE_SVE, 0, 24, pairs),
    {.dtype = NULL},
};
#endif

static const struct param params[] = {
    PARAM_DTYPE(integer_dtypes, "int32"),
    PARAM_ISA(isas,
              "x86 has no int8 multiplication: several instructions make up one. Scalar operations "
              "on 8 and 16 bits use 32-bit registers. Arm multiplies and adds in one instruction."),
    PARAM_SEED,
    {.name = NULL},
};

WORKLOAD(int_mul_add) = {
    .name = "int_mul_add",
    .description = "Alternating integer multiplications and additions on independent registers.",
    .rate = OPERATION_RATE("Multiplications and additions per second, one of each per lane"),
    .params = params,
    .own = kernels,
    KERNEL_FUNCTIONS,
};
