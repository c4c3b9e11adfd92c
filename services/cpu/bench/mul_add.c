/* mul_add: multiplications and additions as separate instructions, in turn. */
#include "cpu_features.h"
#include "loops.h"
#include "vector_kernel.h"
#include "workload.h"

/* (2·x + 8)·½ − 3 */
static const struct recipe quads = {.rounds = 3,
                                    .steps = 4,
                                    .operations = 4,
                                    .multiplier = 1,
                                    .addend = 1,
                                    .growth = 2,
                                    .constants = {ALL(2), ALL(8), ALL(0.5), ALL(-3)}};

/* `K` is the prefix of the constants' numbers; after it what `M` takes behind a constant. */
#define ROUND_OF_4(a, b, c, d, M, mul, add, K, ...)                                                \
    FOUR(a, b, c, d, M, mul, K##K0, __VA_ARGS__)                                                   \
    FOUR(a, b, c, d, M, add, K##K1, __VA_ARGS__)                                                   \
    FOUR(a, b, c, d, M, mul, K##K2, __VA_ARGS__)                                                   \
    FOUR(a, b, c, d, M, add, K##K3, __VA_ARGS__)
#define BODY_QUADS(FOURS, ...) TIMES_3(FOURS(ROUND_OF_4, __VA_ARGS__))

#if defined(__x86_64__)
/* x + 1 + 1 of the first half, x·2·½ of the second. */
#define APART(summand)                                                                             \
    .rounds = 4, .steps = 2, .operations = 2, .multiplier = 1, .addend = (summand), .growth = 2,   \
    .constants = {ALL(2), ALL(0), ALL(0.5), ALL(1)}
static const struct recipe apart_second = {APART(0)};
static const struct recipe apart = {APART(2), .second_half = &apart_second};

#define QUADS_SSE(name, mul, add, mov, bytes)                                                      \
    KERNEL_SSE(name, EACH_12, mov, bytes, "", BODY_QUADS(FOURS_12, DO_SSE, mul, add, X, "xmm"),    \
               DO_SSE, mul, XK3, "xmm")
#define QUADS_AVX2(name, mul, add)                                                                 \
    KERNEL_VEX(name, EACH_12, "ymm", "vmovdqa", "32", "",                                          \
               BODY_QUADS(FOURS_12, DO_VEX, mul, add, X, "ymm"), DO_VEX, mul, XK3, "ymm")
/* AMD's cores have two pipes for multiplications and two others for additions, and twelve accumulators
 * leave their 3 + 3 cycles of latency no slack: Zen 4 stays at 0.94 to 0.99 of what its pipes allow,
 * now and then at 0.83. Multiplications on seven registers and additions on seven others leave some
 * (0.99). For that one of the constants stays in memory. */
/* Laid out by hand: one line is one list. */
/* clang-format off */
#define FROM_MEMORY_SSE(a, op, r) op " (%[constants]), %%" r a "\n\t"
#define FROM_MEMORY_VEX(a, op, r) op " (%[constants]), %%" r a ", %%" r a "\n\t"
#define APART_7(MEMORY, M, mul, add, r)                                                            \
    MEMORY("7", mul, r) MEMORY("8", mul, r) M("0", add, XK3, r) M("1", add, XK3, r)                \
    MEMORY("9", mul, r) MEMORY("10", mul, r) M("2", add, XK3, r) M("3", add, XK3, r)               \
    MEMORY("11", mul, r) MEMORY("12", mul, r) M("4", add, XK3, r) M("5", add, XK3, r)              \
    MEMORY("13", mul, r) M("7", mul, XK2, r) M("6", add, XK3, r) M("0", add, XK3, r)               \
    M("8", mul, XK2, r) M("9", mul, XK2, r) M("1", add, XK3, r) M("2", add, XK3, r)                \
    M("10", mul, XK2, r) M("11", mul, XK2, r) M("3", add, XK3, r) M("4", add, XK3, r)              \
    M("12", mul, XK2, r) M("13", mul, XK2, r) M("5", add, XK3, r) M("6", add, XK3, r)
/* clang-format on */
#define APART_SSE(name, mul, add, mov, bytes)                                                      \
    KERNEL_SSE(name, EACH_14, mov, bytes, "",                                                      \
               TIMES_4(APART_7(FROM_MEMORY_SSE, DO_SSE, mul, add, "xmm")), DO_SSE, mul, XK3,       \
               "xmm")
#define APART_AVX2(name, mul, add)                                                                 \
    KERNEL_VEX(name, EACH_14, "ymm", "vmovdqa", "32", "",                                          \
               TIMES_4(APART_7(FROM_MEMORY_VEX, DO_VEX, mul, add, "ymm")), DO_VEX, mul, XK3,       \
               "ymm")
#define QUADS_AVX512(name, mul, add)                                                               \
    KERNEL_AVX512(name, EACH_24, "", BODY_QUADS(FOURS_24, DO_VEX, mul, add, Z, "zmm"), DO_VEX,     \
                  mul, XK3, "zmm")

QUADS_SSE(mul_add_fp64_scalar, "mulsd", "addsd", "movsd", "8")
APART_SSE(mul_add_fp64_scalar_amd, "mulsd", "addsd", "movsd", "8")
QUADS_SSE(mul_add_fp64_sse2, "mulpd", "addpd", "movdqa", "16")
APART_SSE(mul_add_fp64_sse2_amd, "mulpd", "addpd", "movdqa", "16")
QUADS_AVX2(mul_add_fp64_avx2, "vmulpd", "vaddpd")
APART_AVX2(mul_add_fp64_avx2_amd, "vmulpd", "vaddpd")
QUADS_AVX512(mul_add_fp64_avx512, "vmulpd", "vaddpd")
QUADS_SSE(mul_add_fp32_scalar, "mulss", "addss", "movss", "4")
APART_SSE(mul_add_fp32_scalar_amd, "mulss", "addss", "movss", "4")
QUADS_SSE(mul_add_fp32_sse2, "mulps", "addps", "movdqa", "16")
APART_SSE(mul_add_fp32_sse2_amd, "mulps", "addps", "movdqa", "16")
QUADS_AVX2(mul_add_fp32_avx2, "vmulps", "vaddps")
APART_AVX2(mul_add_fp32_avx2_amd, "vmulps", "vaddps")
QUADS_AVX512(mul_add_fp32_avx512, "vmulps", "vaddps")

static const struct kernel kernels[] = {
    ROW_AMD(mul_add, fp64, scalar, FEATURE_SSE2, 8, 14, apart),
    ROW(mul_add, fp64, scalar, FEATURE_SSE2, 8, 12, quads),
    ROW_AMD(mul_add, fp64, sse2, FEATURE_SSE2, 16, 14, apart),
    ROW(mul_add, fp64, sse2, FEATURE_SSE2, 16, 12, quads),
    ROW_AMD(mul_add, fp64, avx2, FEATURE_AVX2, 32, 14, apart),
    ROW(mul_add, fp64, avx2, FEATURE_AVX2, 32, 12, quads),
    ROW(mul_add, fp64, avx512, FEATURE_AVX512F, 64, 24, quads),
    ROW_AMD(mul_add, fp32, scalar, FEATURE_SSE2, 4, 14, apart),
    ROW(mul_add, fp32, scalar, FEATURE_SSE2, 4, 12, quads),
    ROW_AMD(mul_add, fp32, sse2, FEATURE_SSE2, 16, 14, apart),
    ROW(mul_add, fp32, sse2, FEATURE_SSE2, 16, 12, quads),
    ROW_AMD(mul_add, fp32, avx2, FEATURE_AVX2, 32, 14, apart),
    ROW(mul_add, fp32, avx2, FEATURE_AVX2, 32, 12, quads),
    ROW(mul_add, fp32, avx512, FEATURE_AVX512F, 64, 24, quads),
    {.dtype = NULL},
};
#else
#define QUADS_SCALAR(name, r, bytes)                                                               \
    KERNEL_SCALAR(name, r, bytes, BODY_QUADS(FOURS_24, DO_PLAIN, "fmul", "fadd", Z, r, ""),        \
                  DO_PLAIN, "fmul", ZK3, r, "")
#define QUADS_NEON(name, shape)                                                                    \
    KERNEL_NEON(name, EACH_24, BODY_QUADS(FOURS_24, DO_PLAIN, "fmul", "fadd", Z, "v", shape),      \
                DO_PLAIN, "fmul", ZK3, "v", shape)

#define QUADS_SVE(name, e)                                                                         \
    KERNEL_SVE(name, e, BODY_QUADS(FOURS_24, DO_SVE, "fmul", "fadd", Z, e), DO_SVE, "fmul", ZK3, e)

QUADS_SCALAR(mul_add_fp64_scalar, "d", "8")
QUADS_NEON(mul_add_fp64_neon, ".2d")
QUADS_SCALAR(mul_add_fp32_scalar, "s", "4")
QUADS_NEON(mul_add_fp32_neon, ".4s")

QUADS_SVE(mul_add_fp64_sve, "d")
QUADS_SVE(mul_add_fp32_sve, "s")

static const struct kernel kernels[] = {
    ROW(mul_add, fp64, scalar, FEATURE_NEON, 8, 24, quads),
    ROW(mul_add, fp64, neon, FEATURE_NEON, 16, 24, quads),
    ROW(mul_add, fp64, sve, FEATURE_SVE, 0, 24, quads),
    ROW(mul_add, fp32, scalar, FEATURE_NEON, 4, 24, quads),
    ROW(mul_add, fp32, neon, FEATURE_NEON, 16, 24, quads),
    ROW(mul_add, fp32, sve, FEATURE_SVE, 0, 24, quads),
    {.dtype = NULL},
};
#endif

static const struct param params[] = {
    PARAM_DTYPE(float_dtypes, "fp64"),
    PARAM_ISA(isas, ""),
    PARAM_SEED,
    {.name = NULL},
};

WORKLOAD(mul_add) = {
    .name = "mul_add",
    .description = "Floating-point multiplications and additions as separate instructions.",
    .rate = OPERATION_RATE(
        "Floating-point operations per second, one per multiplication or addition and lane"),
    .params = params,
    .own = kernels,
    KERNEL_FUNCTIONS,
};
