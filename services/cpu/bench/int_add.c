/* int_add: additions on independent accumulators. */
#include "cpu_features.h"
#include "loops.h"
#include "vector_kernel.h"
#include "workload.h"

/* x + 8 + 3: an odd sum, so that even int8 repeats only after as many rounds as it has values. */
static const struct recipe pairs = {.rounds = PAIRS,
                                    .steps = 2,
                                    .operations = 2,
                                    .multiplier = 1,
                                    .addend = 11,
                                    .constants = {ALL(8), ALL(3)}};

#if defined(__x86_64__)
PAIRS_GPR(int_add_int8_scalar, "add", "add", "al", "dl", "bl", "cl", "b", "1")
PAIRS_SSE(int_add_int8_sse2, "paddb", "paddb", "movdqa", "16")
PAIRS_VEX(int_add_int8_avx2, "vpaddb", "vpaddb", "ymm", "vmovdqa", "32")
PAIRS_AVX512(int_add_int8_avx512, "vpaddb", "vpaddb")
PAIRS_GPR(int_add_int16_scalar, "add", "add", "ax", "dx", "bx", "cx", "w", "2")
PAIRS_SSE(int_add_int16_sse2, "paddw", "paddw", "movdqa", "16")
PAIRS_VEX(int_add_int16_avx2, "vpaddw", "vpaddw", "ymm", "vmovdqa", "32")
PAIRS_AVX512(int_add_int16_avx512, "vpaddw", "vpaddw")
PAIRS_GPR(int_add_int32_scalar, "add", "add", "eax", "edx", "ebx", "ecx", "d", "4")
PAIRS_SSE(int_add_int32_sse2, "paddd", "paddd", "movdqa", "16")
PAIRS_VEX(int_add_int32_avx2, "vpaddd", "vpaddd", "ymm", "vmovdqa", "32")
PAIRS_AVX512(int_add_int32_avx512, "vpaddd", "vpaddd")
PAIRS_GPR(int_add_int64_scalar, "add", "add", "rax", "rdx", "rbx", "rcx", "", "8")
PAIRS_SSE(int_add_int64_sse2, "paddq", "paddq", "movdqa", "16")
PAIRS_VEX(int_add_int64_avx2, "vpaddq", "vpaddq", "ymm", "vmovdqa", "32")
PAIRS_AVX512(int_add_int64_avx512, "vpaddq", "vpaddq")

const struct kernel int_add_kernels[] = {
    ROW_GPR(int_add, int8, FEATURE_SSE2, 1, 10, pairs),
    ROW(int_add, int8, sse2, FEATURE_SSE2, 16, 12, pairs),
    ROW(int_add, int8, avx2, FEATURE_AVX2, 32, 12, pairs),
    ROW(int_add, int8, avx512, FEATURE_AVX512BW, 64, 24, pairs),
    ROW_GPR(int_add, int16, FEATURE_SSE2, 2, 10, pairs),
    ROW(int_add, int16, sse2, FEATURE_SSE2, 16, 12, pairs),
    ROW(int_add, int16, avx2, FEATURE_AVX2, 32, 12, pairs),
    ROW(int_add, int16, avx512, FEATURE_AVX512BW, 64, 24, pairs),
    ROW_GPR(int_add, int32, FEATURE_SSE2, 4, 10, pairs),
    ROW(int_add, int32, sse2, FEATURE_SSE2, 16, 12, pairs),
    ROW(int_add, int32, avx2, FEATURE_AVX2, 32, 12, pairs),
    ROW(int_add, int32, avx512, FEATURE_AVX512F, 64, 24, pairs),
    ROW_GPR(int_add, int64, FEATURE_SSE2, 8, 10, pairs),
    ROW(int_add, int64, sse2, FEATURE_SSE2, 16, 12, pairs),
    ROW(int_add, int64, avx2, FEATURE_AVX2, 32, 12, pairs),
    ROW(int_add, int64, avx512, FEATURE_AVX512F, 64, 24, pairs),
    {.dtype = NULL},
};
#else
PAIRS_NEON(int_add_int8_neon, "add", "add", ".16b")
PAIRS_NEON(int_add_int16_neon, "add", "add", ".8h")
PAIRS_GPR(int_add_int32_scalar, "add", "add", "w", "4")
PAIRS_NEON(int_add_int32_neon, "add", "add", ".4s")
PAIRS_GPR(int_add_int64_scalar, "add", "add", "x", "8")
PAIRS_NEON(int_add_int64_neon, "add", "add", ".2d")

PAIRS_SVE(int_add_int8_sve, DO_SVE, "add", "add", "b")
PAIRS_SVE(int_add_int16_sve, DO_SVE, "add", "add", "h")
PAIRS_SVE(int_add_int32_sve, DO_SVE, "add", "add", "s")
PAIRS_SVE(int_add_int64_sve, DO_SVE, "add", "add", "d")

const struct kernel int_add_kernels[] = {
    ROW(int_add, int8, neon, FEATURE_NEON, 16, 24, pairs),
    ROW(int_add, int8, sve, FEATURE_SVE, 0, 24, pairs),
    ROW(int_add, int16, neon, FEATURE_NEON, 16, 24, pairs),
    ROW(int_add, int16, sve, FEATURE_SVE, 0, 24, pairs),
    ROW_GPR(int_add, int32, FEATURE_NEON, 4, 16, pairs),
    ROW(int_add, int32, neon, FEATURE_NEON, 16, 24, pairs),
    ROW(int_add, int32, sve, FEATURE_SVE, 0, 24, pairs),
    ROW_GPR(int_add, int64, FEATURE_NEON, 8, 16, pairs),
    ROW(int_add, int64, neon, FEATURE_NEON, 16, 24, pairs),
    ROW(int_add, int64, sve, FEATURE_SVE, 0, 24, pairs),
    {.dtype = NULL},
};
#endif

static const struct param params[] = {
    PARAM_DTYPE(integer_dtypes, "int32"),
    PARAM_ISA(isas, "Scalar integers use the general-purpose registers."),
    PARAM_SEED,
    {.name = NULL},
};

WORKLOAD(int_add) = {
    .name = "int_add",
    .description = "Integer additions on independent registers.",
    .rate = OPERATION_RATE("Additions per second, one per instruction and lane"),
    .params = params,
    .own = int_add_kernels,
    KERNEL_FUNCTIONS,
};
