/* popcnt: population counts whose results are added up, on independent registers. */
#include "cpu_features.h"
#include "loops.h"
#include "vector_kernel.h"
#include "workload.h"

/* 127 has 7 bits, 7 has 3, 3 has 2: three counts in a row, each of the result of the one before, and
 * an addition of 2. Without any one of them it would be another number: without the first count, the
 * register still holds the 2 of the round before, which has 1 bit. */
#define COUNTS(times, lanes)                                                                       \
    {                                                                                              \
        .rounds = (times), .steps = 4, .operations = 3, .multiplier = 1, .addend = 2,              \
        .lane = (lanes), .operand = (lanes), .constants = {ALL(127)}                               \
    }

/* Laid out by hand: one line is one instruction or one list. */
/* clang-format off */

/* Of an accumulator `a` and the register `t` of its count. */
#define FROM_CONSTANT(a, t, count, add, k) count(t, k)
#define FROM_COUNT(a, t, count, add, k) count(t, t)
#define ADD_UP(a, t, count, add, k) add(a, t)
/* One round. Each result is used as many instructions later as there are accumulators. */
#define ROUND(EACH, ...)                                                                           \
    EACH(FROM_CONSTANT, __VA_ARGS__) EACH(FROM_COUNT, __VA_ARGS__)                                 \
    EACH(FROM_COUNT, __VA_ARGS__) EACH(ADD_UP, __VA_ARGS__)

/* Twelve counts at a time take their latency of 2 or 3 cycles on up to four pipes. */
#define WITH_COUNT_12(M, ...)                                                                      \
    M("0", "12", __VA_ARGS__) M("1", "13", __VA_ARGS__) M("2", "14", __VA_ARGS__)                  \
    M("3", "15", __VA_ARGS__) M("4", "16", __VA_ARGS__) M("5", "17", __VA_ARGS__)                  \
    M("6", "18", __VA_ARGS__) M("7", "19", __VA_ARGS__) M("8", "20", __VA_ARGS__)                  \
    M("9", "21", __VA_ARGS__) M("10", "22", __VA_ARGS__) M("11", "23", __VA_ARGS__)
enum { VECTOR_ROUNDS = 4 };

#if defined(__x86_64__)
static const struct recipe vector = COUNTS(VECTOR_ROUNDS, NULL);

#define COUNT_AVX512(suffix, t, from) "vpopcnt" suffix " %%zmm" from ", %%zmm" t "\n\t"
#define ADD_AVX512(suffix, a, t) "vpadd" suffix " %%zmm" t ", %%zmm" a ", %%zmm" a "\n\t"
#define COUNT_B(t, from) COUNT_AVX512("b", t, from)
#define COUNT_W(t, from) COUNT_AVX512("w", t, from)
#define COUNT_D(t, from) COUNT_AVX512("d", t, from)
#define COUNT_Q(t, from) COUNT_AVX512("q", t, from)
#define ADD_B(a, t) ADD_AVX512("b", a, t)
#define ADD_W(a, t) ADD_AVX512("w", a, t)
#define ADD_D(a, t) ADD_AVX512("d", a, t)
#define ADD_Q(a, t) ADD_AVX512("q", a, t)
#define POPCNT_AVX512(name, count, add, plain)                                                     \
    KERNEL_AVX512(name, EACH_12, "", TIMES_4(ROUND(WITH_COUNT_12, count, add, ZK0)),               \
                  DO_VEX, plain, XK3, "zmm")

/* Five at a time: a latency of 3 cycles on the one port that Intel's cores have for it. */
enum { SCALAR_ROUNDS = 12 };
static const struct recipe scalar = COUNTS(SCALAR_ROUNDS, NULL);
/* As compilers do, 8 and 16 bits are counted in 32-bit registers. */
static const struct recipe narrow_scalar = COUNTS(SCALAR_ROUNDS, "int32");

#define WITH_COUNT_5(M, b, c, s, ...)                                                              \
    M("r8" s, "r13" s, __VA_ARGS__) M("r9" s, "r14" s, __VA_ARGS__)                                \
    M("r10" s, "r15" s, __VA_ARGS__) M("r11" s, b, __VA_ARGS__) M("r12" s, c, __VA_ARGS__)
#define EACH_GPR_5(M, s, bytes)                                                                    \
    M("0", "r8" s, bytes) M("1", "r9" s, bytes) M("2", "r10" s, bytes) M("3", "r11" s, bytes)      \
    M("4", "r12" s, bytes)
#define COUNT_GPR(t, from) "popcnt %%" from ", %%" t "\n\t"
#define ADD_GPR(a, t) "add %%" t ", %%" a "\n\t"
/* The address of the constants comes in rax and makes room for the one that is counted. */
#define POPCNT_GPR(name, k, b, c, s, bytes)                                                        \
    static void name##_loop(uint64_t iterations, void *state, const void *constants)               \
    {                                                                                              \
        __asm__ volatile("mov (%%rax), %%" k "\n\t"                                                \
                         EACH_GPR_5(LOAD_GPR, s, bytes)                                            \
                         LOOP_BEGIN                                                                \
                         TIMES_8(ROUND(WITH_COUNT_5, b, c, s, COUNT_GPR, ADD_GPR, k))              \
                         TIMES_4(ROUND(WITH_COUNT_5, b, c, s, COUNT_GPR, ADD_GPR, k))              \
                         LOOP_END                                                                  \
                         EACH_GPR_5(STORE_GPR, s, bytes)                                           \
                         : [n] "+&r"(iterations), "+&a"(constants)                                 \
                         : [state] "r"(state)                                                      \
                         : "cc", "memory", CLOBBER_GPR);                                           \
    }
/* clang-format on */

POPCNT_AVX512(popcnt_int8_avx512, COUNT_B, ADD_B, "vpaddb")
POPCNT_AVX512(popcnt_int16_avx512, COUNT_W, ADD_W, "vpaddw")
POPCNT_GPR(popcnt_int32_scalar, "eax", "ebx", "ecx", "d", "4")
POPCNT_AVX512(popcnt_int32_avx512, COUNT_D, ADD_D, "vpaddd")
POPCNT_GPR(popcnt_int64_scalar, "rax", "rbx", "rcx", "", "8")
POPCNT_AVX512(popcnt_int64_avx512, COUNT_Q, ADD_Q, "vpaddq")

static const struct kernel kernels[] = {
    {"int8", "scalar", NULL, FEATURE_POPCNT, 4, 5, &narrow_scalar, popcnt_int32_scalar_loop,
     loop_add_chain, NULL},
    ROW(popcnt, int8, avx512, FEATURE_AVX512_BITALG, 64, 12, vector),
    {"int16", "scalar", NULL, FEATURE_POPCNT, 4, 5, &narrow_scalar, popcnt_int32_scalar_loop,
     loop_add_chain, NULL},
    ROW(popcnt, int16, avx512, FEATURE_AVX512_BITALG, 64, 12, vector),
    ROW_GPR(popcnt, int32, FEATURE_POPCNT, 4, 5, scalar),
    ROW(popcnt, int32, avx512, FEATURE_AVX512_VPOPCNTDQ, 64, 12, vector),
    ROW_GPR(popcnt, int64, FEATURE_POPCNT, 8, 5, scalar),
    ROW(popcnt, int64, avx512, FEATURE_AVX512_VPOPCNTDQ, 64, 12, vector),
    {.dtype = NULL},
};
#else
static const struct recipe vector = COUNTS(VECTOR_ROUNDS, NULL);

#define COUNT_NEON(t, from) "cnt v" t ".16b, v" from ".16b\n\t"
#define ADD_NEON(a, t) "add v" a ".16b, v" a ".16b, v" t ".16b\n\t"
/* clang-format on */

KERNEL_NEON(popcnt_int8_neon, EACH_12, TIMES_4(ROUND(WITH_COUNT_12, COUNT_NEON, ADD_NEON, ZK0)),
            DO_PLAIN, "add", ZK3, "v", ".16b")

/* NEON counts the bits of bytes alone, and general-purpose registers have no such instruction. */
static const struct kernel kernels[] = {
    ROW(popcnt, int8, neon, FEATURE_NEON, 16, 12, vector),
    {.dtype = NULL},
};
#endif

static const struct param params[] = {
    PARAM_DTYPE(integer_dtypes, "int64"),
    PARAM_ISA(isas, "scalar stands for POPCNT on the general-purpose registers."),
    PARAM_SEED,
    {.name = NULL},
};

WORKLOAD(popcnt) = {
    .name = "popcnt",
    .description = "Population counts (the number of bits set) on independent registers; the "
                   "results are added up.",
    .rate = OPERATION_RATE("Population counts per second, one per instruction and lane; adding up "
                           "the results does not count as an operation"),
    .params = params,
    .own = kernels,
    KERNEL_FUNCTIONS,
};
