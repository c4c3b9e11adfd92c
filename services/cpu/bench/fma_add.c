/* fma_add: fused multiply-adds and plain additions mixed. Cores that add on other ports than they
 * multiply on (AMD since Zen, Intel since Golden Cove) do more this way than by FMA alone. */
#include "cpu_features.h"
#include "loops.h"
#include "vector_kernel.h"
#include "workload.h"

/* The constants are 2, and -3 or 1. One to one: x + 2·2 − 3. Two to one: x + 2·2 − 2·2 + 1. */
static const struct recipe one_to_one = {.rounds = 6,
                                         .steps = 2,
                                         .operations = 3,
                                         .multiplier = 1,
                                         .addend = 1,
                                         .constants = {[2] = ALL(2), [3] = ALL(-3)}};
static const struct recipe two_to_one = {.rounds = 4,
                                         .steps = 3,
                                         .operations = 5,
                                         .multiplier = 1,
                                         .addend = 1,
                                         .constants = {[2] = ALL(2), [3] = ALL(1)}};

#define ROUND_OF_4(p, q, r, s, FUSED, fma, PLAIN, add, c, d, ...)                                  \
    FOUR(p, q, r, s, FUSED, fma, c, __VA_ARGS__, c) FOUR(p, q, r, s, PLAIN, add, d, __VA_ARGS__)
#define BODY_11(FOURS, ...) TIMES_6(FOURS(ROUND_OF_4, __VA_ARGS__))

/* Four multiply-adds, then two additions, always on the next accumulators: the order that keeps
 * the ports of Golden Cove at 99 % (others: 82 to 95 %). Of fourteen accumulators, the most that
 * two constants leave of sixteen registers, each gets one of every kind in seven such rows. */
/* clang-format off */
#define ROW_OF_6(a, b, c, d, e, f, FUSED, fma, fnma, PLAIN, add, k, m, ...)                        \
    FUSED(a, fma, k, __VA_ARGS__, k) FUSED(b, fma, k, __VA_ARGS__, k)                              \
    FUSED(c, fnma, k, __VA_ARGS__, k) FUSED(d, fnma, k, __VA_ARGS__, k)                            \
    PLAIN(e, add, m, __VA_ARGS__) PLAIN(f, add, m, __VA_ARGS__)
#define BODY_21_ROWS(...)                                                                          \
    TIMES_4(ROW_OF_6("0", "1", "2", "3", "4", "5", __VA_ARGS__)                                    \
            ROW_OF_6("6", "7", "8", "9", "10", "11", __VA_ARGS__)                                  \
            ROW_OF_6("12", "13", "0", "1", "2", "3", __VA_ARGS__)                                  \
            ROW_OF_6("4", "5", "6", "7", "8", "9", __VA_ARGS__)                                    \
            ROW_OF_6("10", "11", "12", "13", "0", "1", __VA_ARGS__)                                \
            ROW_OF_6("2", "3", "4", "5", "6", "7", __VA_ARGS__)                                    \
            ROW_OF_6("8", "9", "10", "11", "12", "13", __VA_ARGS__))
#define BODY_21(EACH, FUSED, fma, fnma, PLAIN, add, c, d, ...)                                     \
    TIMES_4(EACH(FUSED, fma, c, __VA_ARGS__, c) EACH(FUSED, fnma, c, __VA_ARGS__, c)               \
            EACH(PLAIN, add, d, __VA_ARGS__))
/* clang-format on */

#define MIX(type, set, ratio, needs, bytes, count, made, name)                                     \
    {.dtype = #type,                                                                               \
     .isa = #set,                                                                                  \
     .mix = (ratio),                                                                               \
     .features = (needs),                                                                          \
     .register_bytes = (bytes),                                                                    \
     .accumulators = (count),                                                                      \
     .recipe = &(made),                                                                            \
     .loop = name##_##type##_##set##_loop,                                                         \
     .chain = name##_##type##_##set##_chain}
#define MIXES(dtype, isa, needs, bytes, count_11, count_21)                                        \
    MIX(dtype, isa, "1:1", needs, bytes, count_11, one_to_one, fma_add_11),                        \
        MIX(dtype, isa, "2:1", needs, bytes, count_21, two_to_one, fma_add_21)

#if defined(__x86_64__)
#define MIXES_VEX(dtype, isa, s, r, mov, bytes)                                                    \
    KERNEL_VEX(fma_add_11_##dtype##_##isa, EACH_12, r, mov, bytes, "",                             \
               BODY_11(FOURS_12, DO_FMA, "vfmadd231" s, DO_VEX, "vadd" s, XK2, XK3, r), DO_FMA,    \
               "vfmadd231" s, XK3, r, XK2)                                                         \
    KERNEL_VEX(fma_add_21_##dtype##_##isa, EACH_14, r, mov, bytes, "",                             \
               BODY_21_ROWS(DO_FMA, "vfmadd231" s, "vfnmadd231" s, DO_VEX, "vadd" s, XK2, XK3, r), \
               DO_FMA, "vfmadd231" s, XK3, r, XK2)
#define MIXES_AVX512(dtype, s)                                                                     \
    KERNEL_AVX512(fma_add_11_##dtype##_avx512, EACH_24, "",                                        \
                  BODY_11(FOURS_24, DO_FMA, "vfmadd231" s, DO_VEX, "vadd" s, ZK2, ZK3, "zmm"),     \
                  DO_FMA, "vfmadd231" s, XK3, "zmm", XK2)                                          \
    KERNEL_AVX512(fma_add_21_##dtype##_avx512, EACH_24, "",                                        \
                  BODY_21(EACH_24, DO_FMA, "vfmadd231" s, "vfnmadd231" s, DO_VEX, "vadd" s, ZK2,   \
                          ZK3, "zmm"),                                                             \
                  DO_FMA, "vfmadd231" s, XK3, "zmm", XK2)

MIXES_VEX(fp64, scalar, "sd", "xmm", "vmovsd", "8")
MIXES_VEX(fp64, sse2, "pd", "xmm", "vmovdqa", "16")
MIXES_VEX(fp64, avx2, "pd", "ymm", "vmovdqa", "32")
MIXES_AVX512(fp64, "pd")
MIXES_VEX(fp32, scalar, "ss", "xmm", "vmovss", "4")
MIXES_VEX(fp32, sse2, "ps", "xmm", "vmovdqa", "16")
MIXES_VEX(fp32, avx2, "ps", "ymm", "vmovdqa", "32")
MIXES_AVX512(fp32, "ps")

static const struct kernel kernels[] = {
    MIXES(fp64, scalar, FEATURE_FMA, 8, 12, 14),
    MIXES(fp64, sse2, FEATURE_FMA, 16, 12, 14),
    MIXES(fp64, avx2, FEATURE_AVX2 | FEATURE_FMA, 32, 12, 14),
    MIXES(fp64, avx512, FEATURE_AVX512F, 64, 24, 24),
    MIXES(fp32, scalar, FEATURE_FMA, 4, 12, 14),
    MIXES(fp32, sse2, FEATURE_FMA, 16, 12, 14),
    MIXES(fp32, avx2, FEATURE_AVX2 | FEATURE_FMA, 32, 12, 14),
    MIXES(fp32, avx512, FEATURE_AVX512F, 64, 24, 24),
    {.dtype = NULL},
};
#else
#define MIXES_SCALAR(dtype, r, bytes)                                                              \
    KERNEL_SCALAR(fma_add_11_##dtype##_scalar, r, bytes,                                           \
                  BODY_11(FOURS_24, DO_FUSED, "fmadd", DO_PLAIN, "fadd", ZK2, ZK3, r, ""),         \
                  DO_FUSED, "fmadd", ZK3, r, "", ZK2)                                              \
    KERNEL_SCALAR(fma_add_21_##dtype##_scalar, r, bytes,                                           \
                  BODY_21(EACH_24, DO_FUSED, "fmadd", "fmsub", DO_PLAIN, "fadd", ZK2, ZK3, r, ""), \
                  DO_FUSED, "fmadd", ZK3, r, "", ZK2)
#define MIXES_NEON(dtype, shape)                                                                   \
    KERNEL_NEON(fma_add_11_##dtype##_neon, EACH_24,                                                \
                BODY_11(FOURS_24, DO_MLA, "fmla", DO_PLAIN, "fadd", ZK2, ZK3, "v", shape), DO_MLA, \
                "fmla", ZK3, "v", shape, ZK2)                                                      \
    KERNEL_NEON(fma_add_21_##dtype##_neon, EACH_24,                                                \
                BODY_21(EACH_24, DO_MLA, "fmla", "fmls", DO_PLAIN, "fadd", ZK2, ZK3, "v", shape),  \
                DO_MLA, "fmla", ZK3, "v", shape, ZK2)

#define MIXES_SVE(dtype, e)                                                                        \
    KERNEL_SVE(fma_add_11_##dtype##_sve, e,                                                        \
               BODY_11(FOURS_24, DO_SVE_FUSED, "fmla", DO_SVE, "fadd", ZK2, ZK3, e), DO_SVE_FUSED, \
               "fmla", ZK3, e, ZK2)                                                                \
    KERNEL_SVE(fma_add_21_##dtype##_sve, e,                                                        \
               BODY_21(EACH_24, DO_SVE_FUSED, "fmla", "fmls", DO_SVE, "fadd", ZK2, ZK3, e),        \
               DO_SVE_FUSED, "fmla", ZK3, e, ZK2)

MIXES_SCALAR(fp64, "d", "8")
MIXES_NEON(fp64, ".2d")
MIXES_SCALAR(fp32, "s", "4")
MIXES_NEON(fp32, ".4s")

MIXES_SVE(fp64, "d")
MIXES_SVE(fp32, "s")

static const struct kernel kernels[] = {
    MIXES(fp64, scalar, FEATURE_NEON, 8, 24, 24),
    MIXES(fp64, neon, FEATURE_NEON, 16, 24, 24),
    MIXES(fp64, sve, FEATURE_SVE, 0, 24, 24),
    MIXES(fp32, scalar, FEATURE_NEON, 4, 24, 24),
    MIXES(fp32, neon, FEATURE_NEON, 16, 24, 24),
    MIXES(fp32, sve, FEATURE_SVE, 0, 24, 24),
    {.dtype = NULL},
};
#endif

static const char *const mixes[] = {"best", "1:1", "2:1", NULL};

static const struct param params[] = {
    PARAM_DTYPE(float_dtypes, "fp64"),
    PARAM_ISA(isas, "sse2 stands for the 128-bit FMA3 instructions."),
    {.name = "mix",
     .type = PARAM_CHOICE,
     .initial = "best",
     .choices = mixes,
     .resolved = "best",
     .resolved_once = true,
     .help = "Ratio of fused multiply-adds to additions; best: the fastest in a short comparison."},
    PARAM_SEED,
    {.name = NULL},
};

WORKLOAD(fma_add) = {
    .name = "fma_add",
    .description = "A mix of fused multiply-adds and additions: the floating-point peak of cores "
                   "that have separate ports for additions.",
    .rate = OPERATION_RATE("Floating-point operations per second, two per fused multiply-add and "
                           "lane, one per addition and lane"),
    .params = params,
    .own = kernels,
    KERNEL_FUNCTIONS,
};
