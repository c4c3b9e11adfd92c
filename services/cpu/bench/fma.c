/* fma: fused multiply-add, alternating x + c·h and x − d·h on independent accumulators. */
#include "cpu_features.h"
#include "loops.h"
#include "vector_kernel.h"
#include "workload.h"

/* x + 8·½ − 6·½ */
static const struct recipe pairs = {.rounds = PAIRS,
                                    .steps = 2,
                                    .operations = 4,
                                    .multiplier = 1,
                                    .addend = 1,
                                    .constants = {ALL(8), ALL(6), ALL(0.5)}};

#if defined(__x86_64__)
PAIRS_FMA_VEX(fma_fp64_scalar, "vfmadd231sd", "vfnmadd231sd", "xmm", "vmovsd", "8")
PAIRS_FMA_VEX(fma_fp32_scalar, "vfmadd231ss", "vfnmadd231ss", "xmm", "vmovss", "4")
PAIRS_FMA_VEX(fma_fp64_sse2, "vfmadd231pd", "vfnmadd231pd", "xmm", "vmovdqa", "16")
PAIRS_FMA_VEX(fma_fp32_sse2, "vfmadd231ps", "vfnmadd231ps", "xmm", "vmovdqa", "16")
PAIRS_FMA_VEX(fma_fp64_avx2, "vfmadd231pd", "vfnmadd231pd", "ymm", "vmovdqa", "32")
PAIRS_FMA_VEX(fma_fp32_avx2, "vfmadd231ps", "vfnmadd231ps", "ymm", "vmovdqa", "32")
PAIRS_FMA_AVX512(fma_fp64_avx512, "vfmadd231pd", "vfnmadd231pd")
PAIRS_FMA_AVX512(fma_fp32_avx512, "vfmadd231ps", "vfnmadd231ps")

const struct kernel fma_kernels[] = {
    ROW(fma, fp64, scalar, FEATURE_FMA, 8, 12, pairs),
    ROW(fma, fp64, sse2, FEATURE_FMA, 16, 12, pairs),
    ROW(fma, fp64, avx2, FEATURE_AVX2 | FEATURE_FMA, 32, 12, pairs),
    ROW(fma, fp64, avx512, FEATURE_AVX512F, 64, 24, pairs),
    ROW(fma, fp32, scalar, FEATURE_FMA, 4, 12, pairs),
    ROW(fma, fp32, sse2, FEATURE_FMA, 16, 12, pairs),
    ROW(fma, fp32, avx2, FEATURE_AVX2 | FEATURE_FMA, 32, 12, pairs),
    ROW(fma, fp32, avx512, FEATURE_AVX512F, 64, 24, pairs),
    {.dtype = NULL},
};
#else
PAIRS_FUSED_SCALAR(fma_fp64_scalar, "fmadd", "fmsub", "d", "8")
PAIRS_FUSED_SCALAR(fma_fp32_scalar, "fmadd", "fmsub", "s", "4")
PAIRS_FUSED_NEON(fma_fp64_neon, "fmla", "fmls", ".2d", ".2d")
PAIRS_FUSED_NEON(fma_fp32_neon, "fmla", "fmls", ".4s", ".4s")

PAIRS_FUSED_SVE(fma_fp64_sve, "fmla", "fmls", "d")
PAIRS_FUSED_SVE(fma_fp32_sve, "fmla", "fmls", "s")

const struct kernel fma_kernels[] = {
    ROW(fma, fp64, scalar, FEATURE_NEON, 8, 24, pairs),
    ROW(fma, fp64, neon, FEATURE_NEON, 16, 24, pairs),
    ROW(fma, fp64, sve, FEATURE_SVE, 0, 24, pairs),
    ROW(fma, fp32, scalar, FEATURE_NEON, 4, 24, pairs),
    ROW(fma, fp32, neon, FEATURE_NEON, 16, 24, pairs),
    ROW(fma, fp32, sve, FEATURE_SVE, 0, 24, pairs),
    {.dtype = NULL},
};
#endif

static const struct param params[] = {
    PARAM_DTYPE(float_dtypes, "fp64"),
    PARAM_ISA(isas, "sse2 stands for the 128-bit FMA3 instructions."),
    PARAM_SEED,
    {.name = NULL},
};

WORKLOAD(fma) = {
    .name = "fma",
    .description = "Fused multiply-add on independent registers: the floating-point peak.",
    .rate =
        OPERATION_RATE("Floating-point operations per second, two per fused multiply-add and lane"),
    .params = params,
    .own = fma_kernels,
    KERNEL_FUNCTIONS,
};
