/* fma: fused multiply-add, alternating x + c·h and x − d·h on independent accumulators. */
#include "cpu_features.h"
#include "cpu_workloads.h"
#include "loops.h"
#include "vector_kernel.h"

#if defined(__x86_64__)
KERNEL_VEX(fma_fp64_scalar, DO_FMA, "vfmadd231sd", "vfnmadd231sd", "xmm", "movsd", "8")
KERNEL_VEX(fma_fp32_scalar, DO_FMA, "vfmadd231ss", "vfnmadd231ss", "xmm", "movss", "4")
KERNEL_VEX(fma_fp64_sse2, DO_FMA, "vfmadd231pd", "vfnmadd231pd", "xmm", "vmovdqa", "16")
KERNEL_VEX(fma_fp32_sse2, DO_FMA, "vfmadd231ps", "vfnmadd231ps", "xmm", "vmovdqa", "16")
KERNEL_VEX(fma_fp64_avx2, DO_FMA, "vfmadd231pd", "vfnmadd231pd", "ymm", "vmovdqa", "32")
KERNEL_VEX(fma_fp32_avx2, DO_FMA, "vfmadd231ps", "vfnmadd231ps", "ymm", "vmovdqa", "32")
KERNEL_AVX512(fma_fp64_avx512, DO_FMA, "vfmadd231pd", "vfnmadd231pd")
KERNEL_AVX512(fma_fp32_avx512, DO_FMA, "vfmadd231ps", "vfnmadd231ps")

static const struct kernel kernels[] = {
    {"fp64", "scalar", FEATURE_FMA, 8, 12, 2, fma_fp64_scalar_loop, fma_fp64_scalar_chain},
    {"fp64", "sse2", FEATURE_FMA, 16, 12, 2, fma_fp64_sse2_loop, fma_fp64_sse2_chain},
    {"fp64", "avx2", FEATURE_AVX2 | FEATURE_FMA, 32, 12, 2, fma_fp64_avx2_loop,
     fma_fp64_avx2_chain},
    {"fp64", "avx512", FEATURE_AVX512F, 64, 24, 2, fma_fp64_avx512_loop, fma_fp64_avx512_chain},
    {"fp32", "scalar", FEATURE_FMA, 4, 12, 2, fma_fp32_scalar_loop, fma_fp32_scalar_chain},
    {"fp32", "sse2", FEATURE_FMA, 16, 12, 2, fma_fp32_sse2_loop, fma_fp32_sse2_chain},
    {"fp32", "avx2", FEATURE_AVX2 | FEATURE_FMA, 32, 12, 2, fma_fp32_avx2_loop,
     fma_fp32_avx2_chain},
    {"fp32", "avx512", FEATURE_AVX512F, 64, 24, 2, fma_fp32_avx512_loop, fma_fp32_avx512_chain},
    {.dtype = NULL},
};
#else
KERNEL_NEON(fma_fp64_scalar, DO_FMADD, "fmadd", "fmsub", "d", "", "d", "8")
KERNEL_NEON(fma_fp32_scalar, DO_FMADD, "fmadd", "fmsub", "s", "", "s", "4")
KERNEL_NEON(fma_fp64_neon, DO_FMLA, "fmla", "fmls", "v", ".2d", "q", "16")
KERNEL_NEON(fma_fp32_neon, DO_FMLA, "fmla", "fmls", "v", ".4s", "q", "16")

static const struct kernel kernels[] = {
    {"fp64", "scalar", FEATURE_NEON, 8, 24, 2, fma_fp64_scalar_loop, fma_fp64_scalar_chain},
    {"fp64", "neon", FEATURE_NEON, 16, 24, 2, fma_fp64_neon_loop, fma_fp64_neon_chain},
    {"fp32", "scalar", FEATURE_NEON, 4, 24, 2, fma_fp32_scalar_loop, fma_fp32_scalar_chain},
    {"fp32", "neon", FEATURE_NEON, 16, 24, 2, fma_fp32_neon_loop, fma_fp32_neon_chain},
    {.dtype = NULL},
};
#endif

static const char *const dtypes[] = {"fp64", "fp32", NULL};

static const struct param params[] = {
    {.name = "dtype",
     .type = PARAM_CHOICE,
     .initial = "fp64",
     .choices = dtypes,
     .help = "Type of each lane."},
    {.name = "isa",
     .type = PARAM_CHOICE,
     .initial = "best",
     .choices = isas,
     .help = "Instruction set and width; best: the widest this CPU has. sse2 stands for 128 bits "
             "in the FMA3 encoding."},
    {.name = NULL},
};

const struct workload fma_workload = {
    .name = "fma",
    .description = "Fused multiply-add on independent registers: the floating-point peak.",
    .rate = {"operations_per_second", "operation/s",
             "Floating-point operations a second, two each fused multiply-add and lane: sum over "
             "the threads of the median of their clean slices.",
             COMBINE_SUM},
    .params = params,
    .own = kernels,
    .resolve = kernel_resolve,
    .unsupported = kernel_unsupported,
    .setup = kernel_setup,
    .step = kernel_step,
    .empty_loop = kernel_empty_loop,
    .clock_hertz = kernel_clock_hertz,
    .teardown = kernel_teardown,
};
