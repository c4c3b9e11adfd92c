/* dot: instructions that multiply pairs of small types and add the products to wider lanes, and
 * multiply-adds of half precision: what inference runs on. */
#include "cpu_features.h"
#include "loops.h"
#include "vector_kernel.h"
#include "workload.h"

/* Two instructions a round: a lane gains the sum of its products of constants 0 and 2, then that of
 * 1 and 2. Operations are multiplications and additions. */
#define PRODUCTS(count, type, gain, first, second)                                                 \
    {                                                                                              \
        .rounds = PAIRS, .steps = 2, .operations = 2 * 2 * (count), .multiplier = 1,               \
        .addend = (gain), .lane = (type), .constants = {first, second, ALL(1)}                     \
    }
#define LANES(a, b, c, d) {a, b, c, d}

/* 4·2 − 7, 2·2 − 3 */
static const struct recipe int8_4 = PRODUCTS(4, "int32", 1, ALL(2), LANES(-2, -2, -2, -1));
#if defined(__x86_64__)
#include "tiles.h"

static const struct recipe int16_2 = PRODUCTS(2, "int32", 1, ALL(2), LANES(-2, -1, -2, -1));
#endif
static const struct recipe bf16_2 = PRODUCTS(2, "fp32", 1, ALL(2), LANES(-2, -1, -2, -1));
/* Half precision is exact for so few numbers that an iteration must add only one: seven times
 * x + 8·½ − 8·½, then x + 8·½ − 6·½. */
static const struct recipe fp16_fma = {.rounds = 1,
                                       .steps = 16,
                                       .operations = 32,
                                       .multiplier = 1,
                                       .addend = 1,
                                       .constants = {ALL(8), ALL(8), ALL(0.5), ALL(6)}};
#define BODY_FP16(EACH, M, fma, fnma, ...)                                                         \
    TIMES_7(EACH(M, fma, ZK0, __VA_ARGS__) EACH(M, fnma, ZK1, __VA_ARGS__))                        \
    EACH(M, fma, ZK0, __VA_ARGS__) EACH(M, fnma, ZK3, __VA_ARGS__)

#if defined(__x86_64__)
/* 64·1 − 48·1, 32·1 − 16·1. A tile instruction takes sixteen cycles and counts as so many steps. */
#define TILE_PRODUCTS(count, type, second)                                                         \
    {                                                                                              \
        .rounds = PAIRS, .steps = 2 * 16, .operations = 2 * 2 * (count), .multiplier = 1,          \
        .addend = 16, .lane = (type), .constants = {ALL(1), second, ALL(1)}                        \
    }
static const struct recipe tile_int8 = TILE_PRODUCTS(64, "int32", LANES(-1, -1, -1, 0));
static const struct recipe tile_16 = TILE_PRODUCTS(32, "fp32", LANES(-1, 0, -1, 0));

/* Without the prefix the assembler takes the encoding of AVX-512. */
PAIRS_FMA_VEX(dot_int8_avx2, "%{vex%} vpdpbusd", "%{vex%} vpdpbusd", "ymm", "vmovdqa", "32")
PAIRS_FMA_AVX512(dot_int8_avx512, "vpdpbusd", "vpdpbusd")
TILES(dot_int8_amx, DO_TILE, "tdpbssd")
PAIRS_FMA_VEX(dot_int16_avx2, "%{vex%} vpdpwssd", "%{vex%} vpdpwssd", "ymm", "vmovdqa", "32")
PAIRS_FMA_AVX512(dot_int16_avx512, "vpdpwssd", "vpdpwssd")
PAIRS_FMA_AVX512(dot_bf16_avx512, "vdpbf16ps", "vdpbf16ps")
TILES(dot_bf16_amx, DO_TILE, "tdpbf16ps")
KERNEL_AVX512(dot_fp16_avx512, EACH_24, "",
              BODY_FP16(EACH_24, DO_FMA, "vfmadd231ph", "vfnmadd231ph", "zmm", ZK2), DO_FMA,
              "vfmadd231ph", XK3, "zmm", XK2)
TILES(dot_fp16_amx, DO_TILE_FP16, )

const struct kernel dot_kernels[] = {
    ROW(dot, int8, avx2, FEATURE_AVX2 | FEATURE_AVX_VNNI, 32, 12, int8_4),
    ROW(dot, int8, avx512, FEATURE_AVX512F | FEATURE_AVX512_VNNI, 64, 24, int8_4),
    ROW(dot, int8, amx, FEATURE_AMX_INT8, TILE_BYTES, 4, tile_int8),
    ROW(dot, int16, avx2, FEATURE_AVX2 | FEATURE_AVX_VNNI, 32, 12, int16_2),
    ROW(dot, int16, avx512, FEATURE_AVX512F | FEATURE_AVX512_VNNI, 64, 24, int16_2),
    ROW(dot, bf16, avx512, FEATURE_AVX512F | FEATURE_AVX512_BF16, 64, 24, bf16_2),
    ROW(dot, bf16, amx, FEATURE_AMX_BF16, TILE_BYTES, 4, tile_16),
    ROW(dot, fp16, avx512, FEATURE_AVX512F | FEATURE_AVX512_FP16, 64, 24, fp16_fma),
    ROW(dot, fp16, amx, FEATURE_AMX_FP16, TILE_BYTES, 4, tile_16),
    {.dtype = NULL},
};
#else
/* 8 − 6, 4 − 3 */
static const struct recipe int8_8 = PRODUCTS(8, "int32", 2, ALL(1), LANES(-1, -1, -1, 0));
static const struct recipe bf16_4 = PRODUCTS(4, "fp32", 1, ALL(1), LANES(-1, -1, -1, 0));

/* For the assembler alone: the compiler uses none of it. */
__asm__(".arch armv8.6-a+fp16\n");

PAIRS_FUSED_NEON(dot_int8_neon, "sdot", "sdot", ".4s", ".16b")
PAIRS_FUSED_NEON(dot_int8_mmla, "smmla", "smmla", ".4s", ".16b")
PAIRS_FUSED_NEON(dot_bf16_neon, "bfdot", "bfdot", ".4s", ".8h")
PAIRS_FUSED_NEON(dot_bf16_mmla, "bfmmla", "bfmmla", ".4s", ".8h")
KERNEL_NEON(dot_fp16_neon, EACH_24,
            BODY_FP16(EACH_24, DO_FUSED_NEON, "fmla", "fmls", ".8h", ".8h", ZK2), DO_FUSED_NEON,
            "fmla", ZK3, ".8h", ".8h", ZK2)

const struct kernel dot_kernels[] = {
    ROW(dot, int8, neon, FEATURE_DOTPROD, 16, 24, int8_4),
    ROW(dot, int8, mmla, FEATURE_I8MM, 16, 24, int8_8),
    ROW(dot, bf16, neon, FEATURE_BF16, 16, 24, bf16_2),
    ROW(dot, bf16, mmla, FEATURE_BF16, 16, 24, bf16_4),
    ROW(dot, fp16, neon, FEATURE_FP16, 16, 24, fp16_fma),
    {.dtype = NULL},
};
#endif

static const char *const dtypes[] = {"int8", "int16", "bf16", "fp16", NULL};
static const char *const dot_isas[] = {"best", "avx2", "avx512", "amx", "neon", "mmla", NULL};

static const struct param params[] = {
    PARAM_DTYPE(dtypes, "int8"),
    PARAM_ISA(dot_isas,
              "avx2 stands for AVX-VNNI, mmla for the matrix instructions of I8MM and BF16. fp16 "
              "accumulates in fp16 (amx: in fp32), bf16 in fp32, integers in int32."),
    PARAM_SEED,
    {.name = NULL},
};

WORKLOAD(dot) = {
    .name = "dot",
    .description = "Dot products and multiply-adds on small data types, as used for inference.",
    .rate = OPERATION_RATE(
        "Operations per second; each multiplication and each addition counts as one"),
    .params = params,
    .own = dot_kernels,
    KERNEL_FUNCTIONS,
};
