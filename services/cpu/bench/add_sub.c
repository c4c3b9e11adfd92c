/* add_sub: alternating additions and subtractions on independent accumulators. */
#include "cpu_features.h"
#include "cpu_workloads.h"
#include "loops.h"
#include "vector_kernel.h"

#if defined(__x86_64__)
KERNEL_GPR(add_sub_int8_scalar, "al", "dl", "bl", "cl", "b", "1")
KERNEL_GPR(add_sub_int16_scalar, "ax", "dx", "bx", "cx", "w", "2")
KERNEL_GPR(add_sub_int32_scalar, "eax", "edx", "ebx", "ecx", "d", "4")
KERNEL_GPR(add_sub_int64_scalar, "rax", "rdx", "rbx", "rcx", "", "8")
KERNEL_SSE(add_sub_int8_sse2, "paddb", "psubb", "movdqa", "16")
KERNEL_SSE(add_sub_int16_sse2, "paddw", "psubw", "movdqa", "16")
KERNEL_SSE(add_sub_int32_sse2, "paddd", "psubd", "movdqa", "16")
KERNEL_SSE(add_sub_int64_sse2, "paddq", "psubq", "movdqa", "16")
KERNEL_VEX(add_sub_int8_avx2, DO_VEX, "vpaddb", "vpsubb", "ymm", "vmovdqa", "32")
KERNEL_VEX(add_sub_int16_avx2, DO_VEX, "vpaddw", "vpsubw", "ymm", "vmovdqa", "32")
KERNEL_VEX(add_sub_int32_avx2, DO_VEX, "vpaddd", "vpsubd", "ymm", "vmovdqa", "32")
KERNEL_VEX(add_sub_int64_avx2, DO_VEX, "vpaddq", "vpsubq", "ymm", "vmovdqa", "32")
KERNEL_AVX512(add_sub_int8_avx512, DO_VEX, "vpaddb", "vpsubb")
KERNEL_AVX512(add_sub_int16_avx512, DO_VEX, "vpaddw", "vpsubw")
KERNEL_AVX512(add_sub_int32_avx512, DO_VEX, "vpaddd", "vpsubd")
KERNEL_AVX512(add_sub_int64_avx512, DO_VEX, "vpaddq", "vpsubq")
KERNEL_SSE(add_sub_fp32_scalar, "addss", "subss", "movss", "4")
KERNEL_SSE(add_sub_fp32_sse2, "addps", "subps", "movdqa", "16")
KERNEL_VEX(add_sub_fp32_avx2, DO_VEX, "vaddps", "vsubps", "ymm", "vmovdqa", "32")
KERNEL_AVX512(add_sub_fp32_avx512, DO_VEX, "vaddps", "vsubps")
KERNEL_SSE(add_sub_fp64_scalar, "addsd", "subsd", "movsd", "8")
KERNEL_SSE(add_sub_fp64_sse2, "addpd", "subpd", "movdqa", "16")
KERNEL_VEX(add_sub_fp64_avx2, DO_VEX, "vaddpd", "vsubpd", "ymm", "vmovdqa", "32")
KERNEL_AVX512(add_sub_fp64_avx512, DO_VEX, "vaddpd", "vsubpd")

static const struct kernel kernels[] = {
    {"int8", "scalar", FEATURE_SSE2, 1, 10, 1, add_sub_int8_scalar_loop, loop_add_chain},
    {"int8", "sse2", FEATURE_SSE2, 16, 12, 1, add_sub_int8_sse2_loop, add_sub_int8_sse2_chain},
    {"int8", "avx2", FEATURE_AVX2, 32, 12, 1, add_sub_int8_avx2_loop, add_sub_int8_avx2_chain},
    {"int8", "avx512", FEATURE_AVX512BW, 64, 24, 1, add_sub_int8_avx512_loop,
     add_sub_int8_avx512_chain},
    {"int16", "scalar", FEATURE_SSE2, 2, 10, 1, add_sub_int16_scalar_loop, loop_add_chain},
    {"int16", "sse2", FEATURE_SSE2, 16, 12, 1, add_sub_int16_sse2_loop, add_sub_int16_sse2_chain},
    {"int16", "avx2", FEATURE_AVX2, 32, 12, 1, add_sub_int16_avx2_loop, add_sub_int16_avx2_chain},
    {"int16", "avx512", FEATURE_AVX512BW, 64, 24, 1, add_sub_int16_avx512_loop,
     add_sub_int16_avx512_chain},
    {"int32", "scalar", FEATURE_SSE2, 4, 10, 1, add_sub_int32_scalar_loop, loop_add_chain},
    {"int32", "sse2", FEATURE_SSE2, 16, 12, 1, add_sub_int32_sse2_loop, add_sub_int32_sse2_chain},
    {"int32", "avx2", FEATURE_AVX2, 32, 12, 1, add_sub_int32_avx2_loop, add_sub_int32_avx2_chain},
    {"int32", "avx512", FEATURE_AVX512F, 64, 24, 1, add_sub_int32_avx512_loop,
     add_sub_int32_avx512_chain},
    {"int64", "scalar", FEATURE_SSE2, 8, 10, 1, add_sub_int64_scalar_loop, loop_add_chain},
    {"int64", "sse2", FEATURE_SSE2, 16, 12, 1, add_sub_int64_sse2_loop, add_sub_int64_sse2_chain},
    {"int64", "avx2", FEATURE_AVX2, 32, 12, 1, add_sub_int64_avx2_loop, add_sub_int64_avx2_chain},
    {"int64", "avx512", FEATURE_AVX512F, 64, 24, 1, add_sub_int64_avx512_loop,
     add_sub_int64_avx512_chain},
    {"fp32", "scalar", FEATURE_SSE2, 4, 12, 1, add_sub_fp32_scalar_loop, add_sub_fp32_scalar_chain},
    {"fp32", "sse2", FEATURE_SSE2, 16, 12, 1, add_sub_fp32_sse2_loop, add_sub_fp32_sse2_chain},
    {"fp32", "avx2", FEATURE_AVX2, 32, 12, 1, add_sub_fp32_avx2_loop, add_sub_fp32_avx2_chain},
    {"fp32", "avx512", FEATURE_AVX512F, 64, 24, 1, add_sub_fp32_avx512_loop,
     add_sub_fp32_avx512_chain},
    {"fp64", "scalar", FEATURE_SSE2, 8, 12, 1, add_sub_fp64_scalar_loop, add_sub_fp64_scalar_chain},
    {"fp64", "sse2", FEATURE_SSE2, 16, 12, 1, add_sub_fp64_sse2_loop, add_sub_fp64_sse2_chain},
    {"fp64", "avx2", FEATURE_AVX2, 32, 12, 1, add_sub_fp64_avx2_loop, add_sub_fp64_avx2_chain},
    {"fp64", "avx512", FEATURE_AVX512F, 64, 24, 1, add_sub_fp64_avx512_loop,
     add_sub_fp64_avx512_chain},
    {.dtype = NULL},
};
#else
KERNEL_GPR(add_sub_int32_scalar, "w", "4")
KERNEL_GPR(add_sub_int64_scalar, "x", "8")
KERNEL_NEON(add_sub_int8_neon, DO_ADD, "add", "sub", "v", ".16b", "q", "16")
KERNEL_NEON(add_sub_int16_neon, DO_ADD, "add", "sub", "v", ".8h", "q", "16")
KERNEL_NEON(add_sub_int32_neon, DO_ADD, "add", "sub", "v", ".4s", "q", "16")
KERNEL_NEON(add_sub_int64_neon, DO_ADD, "add", "sub", "v", ".2d", "q", "16")
KERNEL_NEON(add_sub_fp32_scalar, DO_ADD, "fadd", "fsub", "s", "", "s", "4")
KERNEL_NEON(add_sub_fp32_neon, DO_ADD, "fadd", "fsub", "v", ".4s", "q", "16")
KERNEL_NEON(add_sub_fp64_scalar, DO_ADD, "fadd", "fsub", "d", "", "d", "8")
KERNEL_NEON(add_sub_fp64_neon, DO_ADD, "fadd", "fsub", "v", ".2d", "q", "16")

static const struct kernel kernels[] = {
    {"int8", "neon", FEATURE_NEON, 16, 24, 1, add_sub_int8_neon_loop, add_sub_int8_neon_chain},
    {"int16", "neon", FEATURE_NEON, 16, 24, 1, add_sub_int16_neon_loop, add_sub_int16_neon_chain},
    {"int32", "scalar", FEATURE_NEON, 4, 16, 1, add_sub_int32_scalar_loop, loop_add_chain},
    {"int32", "neon", FEATURE_NEON, 16, 24, 1, add_sub_int32_neon_loop, add_sub_int32_neon_chain},
    {"int64", "scalar", FEATURE_NEON, 8, 16, 1, add_sub_int64_scalar_loop, loop_add_chain},
    {"int64", "neon", FEATURE_NEON, 16, 24, 1, add_sub_int64_neon_loop, add_sub_int64_neon_chain},
    {"fp32", "scalar", FEATURE_NEON, 4, 24, 1, add_sub_fp32_scalar_loop, add_sub_fp32_scalar_chain},
    {"fp32", "neon", FEATURE_NEON, 16, 24, 1, add_sub_fp32_neon_loop, add_sub_fp32_neon_chain},
    {"fp64", "scalar", FEATURE_NEON, 8, 24, 1, add_sub_fp64_scalar_loop, add_sub_fp64_scalar_chain},
    {"fp64", "neon", FEATURE_NEON, 16, 24, 1, add_sub_fp64_neon_loop, add_sub_fp64_neon_chain},
    {.dtype = NULL},
};
#endif

static const char *const dtypes[] = {"int8", "int16", "int32", "int64", "fp32", "fp64", NULL};

static const struct param params[] = {
    {.name = "dtype",
     .type = PARAM_CHOICE,
     .initial = "int32",
     .choices = dtypes,
     .help = "Type of each lane."},
    {.name = "isa",
     .type = PARAM_CHOICE,
     .initial = "best",
     .choices = isas,
     .help = "Instruction set and width; best: the widest this CPU has. Scalar integers use the "
             "general-purpose registers."},
    {.name = NULL},
};

const struct workload add_sub_workload = {
    .name = "add_sub",
    .description =
        "Additions and subtractions on independent registers, integer and floating point.",
    .rate = {"operations_per_second", "operation/s",
             "Additions and subtractions a second, one each instruction and lane: sum over the "
             "threads of the median of their clean slices.",
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
