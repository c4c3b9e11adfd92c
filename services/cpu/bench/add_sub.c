/* add_sub: alternating additions and subtractions on independent accumulators. */
#include "cpu_features.h"
#include "loops.h"
#include "vector_kernel.h"
#include "workload.h"

/* x + 8 − 7 */
static const struct recipe pairs = {.rounds = PAIRS,
                                    .steps = 2,
                                    .operations = 2,
                                    .multiplier = 1,
                                    .addend = 1,
                                    .constants = {ALL(8), ALL(7)}};

#if defined(__x86_64__)
PAIRS_GPR(add_sub_int8_scalar, "add", "sub", "al", "dl", "bl", "cl", "b", "1")
PAIRS_SSE(add_sub_int8_sse2, "paddb", "psubb", "movdqa", "16")
PAIRS_VEX(add_sub_int8_avx2, "vpaddb", "vpsubb", "ymm", "vmovdqa", "32")
PAIRS_AVX512(add_sub_int8_avx512, "vpaddb", "vpsubb")
PAIRS_GPR(add_sub_int16_scalar, "add", "sub", "ax", "dx", "bx", "cx", "w", "2")
PAIRS_SSE(add_sub_int16_sse2, "paddw", "psubw", "movdqa", "16")
PAIRS_VEX(add_sub_int16_avx2, "vpaddw", "vpsubw", "ymm", "vmovdqa", "32")
PAIRS_AVX512(add_sub_int16_avx512, "vpaddw", "vpsubw")
PAIRS_GPR(add_sub_int32_scalar, "add", "sub", "eax", "edx", "ebx", "ecx", "d", "4")
PAIRS_SSE(add_sub_int32_sse2, "paddd", "psubd", "movdqa", "16")
PAIRS_VEX(add_sub_int32_avx2, "vpaddd", "vpsubd", "ymm", "vmovdqa", "32")
PAIRS_AVX512(add_sub_int32_avx512, "vpaddd", "vpsubd")
PAIRS_GPR(add_sub_int64_scalar, "add", "sub", "rax", "rdx", "rbx", "rcx", "", "8")
PAIRS_SSE(add_sub_int64_sse2, "paddq", "psubq", "movdqa", "16")
PAIRS_VEX(add_sub_int64_avx2, "vpaddq", "vpsubq", "ymm", "vmovdqa", "32")
PAIRS_AVX512(add_sub_int64_avx512, "vpaddq", "vpsubq")
PAIRS_SSE(add_sub_fp32_scalar, "addss", "subss", "movss", "4")
PAIRS_SSE(add_sub_fp32_sse2, "addps", "subps", "movdqa", "16")
PAIRS_VEX(add_sub_fp32_avx2, "vaddps", "vsubps", "ymm", "vmovdqa", "32")
PAIRS_AVX512(add_sub_fp32_avx512, "vaddps", "vsubps")
PAIRS_SSE(add_sub_fp64_scalar, "addsd", "subsd", "movsd", "8")
PAIRS_SSE(add_sub_fp64_sse2, "addpd", "subpd", "movdqa", "16")
PAIRS_VEX(add_sub_fp64_avx2, "vaddpd", "vsubpd", "ymm", "vmovdqa", "32")
PAIRS_AVX512(add_sub_fp64_avx512, "vaddpd", "vsubpd")

static const struct kernel kernels[] = {
    ROW_GPR(add_sub, int8, FEATURE_SSE2, 1, 10, pairs),
    ROW(add_sub, int8, sse2, FEATURE_SSE2, 16, 12, pairs),
    ROW(add_sub, int8, avx2, FEATURE_AVX2, 32, 12, pairs),
    ROW(add_sub, int8, avx512, FEATURE_AVX512BW, 64, 24, pairs),
    ROW_GPR(add_sub, int16, FEATURE_SSE2, 2, 10, pairs),
    ROW(add_sub, int16, sse2, FEATURE_SSE2, 16, 12, pairs),
    ROW(add_sub, int16, avx2, FEATURE_AVX2, 32, 12, pairs),
    ROW(add_sub, int16, avx512, FEATURE_AVX512BW, 64, 24, pairs),
    ROW_GPR(add_sub, int32, FEATURE_SSE2, 4, 10, pairs),
    ROW(add_sub, int32, sse2, FEATURE_SSE2, 16, 12, pairs),
    ROW(add_sub, int32, avx2, FEATURE_AVX2, 32, 12, pairs),
    ROW(add_sub, int32, avx512, FEATURE_AVX512F, 64, 24, pairs),
    ROW_GPR(add_sub, int64, FEATURE_SSE2, 8, 10, pairs),
    ROW(add_sub, int64, sse2, FEATURE_SSE2, 16, 12, pairs),
    ROW(add_sub, int64, avx2, FEATURE_AVX2, 32, 12, pairs),
    ROW(add_sub, int64, avx512, FEATURE_AVX512F, 64, 24, pairs),
    ROW(add_sub, fp32, scalar, FEATURE_SSE2, 4, 12, pairs),
    ROW(add_sub, fp32, sse2, FEATURE_SSE2, 16, 12, pairs),
    ROW(add_sub, fp32, avx2, FEATURE_AVX2, 32, 12, pairs),
    ROW(add_sub, fp32, avx512, FEATURE_AVX512F, 64, 24, pairs),
    ROW(add_sub, fp64, scalar, FEATURE_SSE2, 8, 12, pairs),
    ROW(add_sub, fp64, sse2, FEATURE_SSE2, 16, 12, pairs),
    ROW(add_sub, fp64, avx2, FEATURE_AVX2, 32, 12, pairs),
    ROW(add_sub, fp64, avx512, FEATURE_AVX512F, 64, 24, pairs),
    {.dtype = NULL},
};
#else
PAIRS_NEON(add_sub_int8_neon, "add", "sub", ".16b")
PAIRS_NEON(add_sub_int16_neon, "add", "sub", ".8h")
PAIRS_GPR(add_sub_int32_scalar, "add", "sub", "w", "4")
PAIRS_NEON(add_sub_int32_neon, "add", "sub", ".4s")
PAIRS_GPR(add_sub_int64_scalar, "add", "sub", "x", "8")
PAIRS_NEON(add_sub_int64_neon, "add", "sub", ".2d")
PAIRS_SCALAR(add_sub_fp32_scalar, "fadd", "fsub", "s", "4")
PAIRS_NEON(add_sub_fp32_neon, "fadd", "fsub", ".4s")
PAIRS_SCALAR(add_sub_fp64_scalar, "fadd", "fsub", "d", "8")
PAIRS_NEON(add_sub_fp64_neon, "fadd", "fsub", ".2d")

PAIRS_SVE(add_sub_int8_sve, DO_SVE, "add", "sub", "b")
PAIRS_SVE(add_sub_int16_sve, DO_SVE, "add", "sub", "h")
PAIRS_SVE(add_sub_int32_sve, DO_SVE, "add", "sub", "s")
PAIRS_SVE(add_sub_int64_sve, DO_SVE, "add", "sub", "d")
PAIRS_SVE(add_sub_fp32_sve, DO_SVE, "fadd", "fsub", "s")
PAIRS_SVE(add_sub_fp64_sve, DO_SVE, "fadd", "fsub", "d")

static const struct kernel kernels[] = {
    ROW(add_sub, int8, neon, FEATURE_NEON, 16, 24, pairs),
    ROW(add_sub, int8, sve, FEATURE_SVE, 0, 24, pairs),
    ROW(add_sub, int16, neon, FEATURE_NEON, 16, 24, pairs),
    ROW(add_sub, int16, sve, FEATURE_SVE, 0, 24, pairs),
    ROW_GPR(add_sub, int32, FEATURE_NEON, 4, 16, pairs),
    ROW(add_sub, int32, neon, FEATURE_NEON, 16, 24, pairs),
    ROW(add_sub, int32, sve, FEATURE_SVE, 0, 24, pairs),
    ROW_GPR(add_sub, int64, FEATURE_NEON, 8, 16, pairs),
    ROW(add_sub, int64, neon, FEATURE_NEON, 16, 24, pairs),
    ROW(add_sub, int64, sve, FEATURE_SVE, 0, 24, pairs),
    ROW(add_sub, fp32, scalar, FEATURE_NEON, 4, 24, pairs),
    ROW(add_sub, fp32, neon, FEATURE_NEON, 16, 24, pairs),
    ROW(add_sub, fp32, sve, FEATURE_SVE, 0, 24, pairs),
    ROW(add_sub, fp64, scalar, FEATURE_NEON, 8, 24, pairs),
    ROW(add_sub, fp64, neon, FEATURE_NEON, 16, 24, pairs),
    ROW(add_sub, fp64, sve, FEATURE_SVE, 0, 24, pairs),
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

WORKLOAD(add_sub) = {
    .name = "add_sub",
    .description = "Integer or floating-point additions and subtractions on independent registers.",
    .rate = OPERATION_RATE("Additions and subtractions per second, one per instruction and lane"),
    .params = params,
    .own = kernels,
    KERNEL_FUNCTIONS,
};
