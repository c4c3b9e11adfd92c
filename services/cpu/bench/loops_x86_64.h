/* AT&T syntax. `a` is the accumulator's number, `k` a constant's, `t` that of a register for an
 * intermediate result, `r` the register name before the number. */

/* Laid out by hand: the formatter does not see where an instruction ends. */
/* clang-format off */

/* The numbers of the registers that hold the constants: of sixteen (X) and of thirty-two (Z). They
 * are loaded before the accumulators: more than eleven of these take XK4, fourteen also XK0 and XK1. */
#define XK0 "12"
#define XK1 "13"
#define XK2 "14"
#define XK3 "15"
#define XK4 "11"
#define ZK0 "28"
#define ZK1 "29"
#define ZK2 "30"
#define ZK3 "31"
#define ZK4 "27"

#define DO_SSE(a, op, k, r) op " %%" r k ", %%" r a "\n\t"
#define DO_VEX(a, op, k, r) op " %%" r k ", %%" r a ", %%" r a "\n\t"
/* Fused multiply-add, and the dot products of the same form: a += k·h. */
#define DO_FMA(a, op, k, r, h) op " %%" r k ", %%" r h ", %%" r a "\n\t"

#define LOAD(a, mov, bytes, r) mov " " bytes "*" a "(%[state]), %%" r a "\n\t"
#define STORE(a, mov, bytes, r) mov " %%" r a ", " bytes "*" a "(%[state])\n\t"
#define LOAD_CONSTANTS(K, mov, r)                                                                  \
    mov " (%[constants]), %%" r K##K0 "\n\t"                                                       \
    mov " 64(%[constants]), %%" r K##K1 "\n\t"                                                     \
    mov " 128(%[constants]), %%" r K##K2 "\n\t"                                                    \
    mov " 192(%[constants]), %%" r K##K3 "\n\t"                                                    \
    mov " 256(%[constants]), %%" r K##K4 "\n\t"

#define LOOP_BEGIN ".p2align 6\n1:\n\t"
#define LOOP_END "dec %[n]\n\tjnz 1b\n\t"

#define CLOBBER_16                                                                                 \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",       \
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
/* A compiler without AVX-512 neither uses nor knows the upper sixteen and the masks. */
#if defined(__AVX512F__)
#define CLOBBER_32                                                                                 \
    CLOBBER_16, "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24",   \
        "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4",    \
        "k5", "k6", "k7"
#else
#define CLOBBER_32 CLOBBER_16
#endif

#define LOOP(name, EACH, K, r, mov, bytes, before, body, after, clobbers)                                  \
    static void name##_loop(uint64_t iterations, void *state, const void *constants)               \
    {                                                                                              \
        __asm__ volatile(LOAD_CONSTANTS(K, mov, r)                                                 \
                         EACH(LOAD, mov, bytes, r)                                                 \
                         before                                                                    \
                         LOOP_BEGIN                                                                \
                         body                                                                      \
                         LOOP_END                                                                  \
                         EACH(STORE, mov, bytes, r)                                                \
                         after                                                                     \
                         : [n] "+&r"(iterations)                                                   \
                         : [state] "r"(state), [constants] "r"(constants)                          \
                         : "cc", "memory", clobbers);                                              \
    }

#define ADD_4 "add %[y], %[x]\n\tadd %[y], %[x]\n\tadd %[y], %[x]\n\tadd %[y], %[x]\n\t"
#define ADD_16 ADD_4 ADD_4 ADD_4 ADD_4

/* CHAIN_CYCLES additions with what `M` gives for accumulators 0 to 4 in between. */
#define CHAIN(name, before, M, after, clobbers, ...)                                               \
    static void name##_chain(uint64_t iterations)                                                  \
    {                                                                                              \
        uint64_t x = 0;                                                                            \
        __asm__ volatile(before                                                                    \
                         LOOP_BEGIN                                                                \
                         ADD_16 M("0", __VA_ARGS__)                                                \
                         ADD_16 M("1", __VA_ARGS__)                                                \
                         ADD_16 M("2", __VA_ARGS__)                                                \
                         ADD_16 M("3", __VA_ARGS__)                                                \
                         ADD_16 M("4", __VA_ARGS__)                                                \
                         LOOP_END                                                                  \
                         after                                                                     \
                         : [n] "+&r"(iterations), [x] "+&r"(x)                                     \
                         : [y] "r"((uint64_t)3)                                                    \
                         : "cc", clobbers);                                                        \
    }

/* Zeros in the registers the chains use: leftovers might be denormals, which run slowly. */
#define CLEAR_XMM(a) "xorps %%xmm" a ", %%xmm" a "\n\t"
#define CLEAR_SSE                                                                                  \
    CLEAR_XMM("0") CLEAR_XMM("1") CLEAR_XMM("2") CLEAR_XMM("3") CLEAR_XMM("4") CLEAR_XMM(XK3)
#define CLEAR_AVX "vzeroall\n\t"
#define LEAVE_AVX "vzeroupper\n\t"

/* A loop and its chain. `before` prepares the first iteration. What follows `body` is the step that
 * the chain carries, with its arguments; it uses the registers of X. */
#define KERNEL_SSE(name, EACH, mov, bytes, before, body, M, ...)                                   \
    LOOP(name, EACH, X, "xmm", mov, bytes, before, body, "", CLOBBER_16)                           \
    CHAIN(name, CLEAR_SSE, M, "", CLOBBER_16, __VA_ARGS__)
#define KERNEL_VEX(name, EACH, r, mov, bytes, before, body, M, ...)                                \
    LOOP(name, EACH, X, r, mov, bytes, before, body, LEAVE_AVX, CLOBBER_16)                        \
    CHAIN(name, CLEAR_AVX, M, LEAVE_AVX, CLOBBER_16, __VA_ARGS__)
#define KERNEL_AVX512(name, EACH, before, body, M, ...)                                            \
    LOOP(name, EACH, Z, "zmm", "vmovdqa64", "64", before, body, LEAVE_AVX, CLOBBER_32)             \
    CHAIN(name, CLEAR_AVX, M, LEAVE_AVX, CLOBBER_16, __VA_ARGS__)

/* Of pairs of instructions `first` and `second`. Twelve accumulators of sixteen registers are at
 * least latency x pipes of nearly every x86-64 CPU so far (5 x 2). */
#define PAIRS_SSE(name, first, second, mov, bytes)                                                 \
    KERNEL_SSE(name, EACH_12, mov, bytes, "",                                                      \
               BODY_PAIRS(EACH_12, DO_SSE, first, second, XK0, XK1, "xmm"),                        \
               DO_SSE, first, XK3, "xmm")
#define PAIRS_VEX(name, first, second, r, mov, bytes)                                              \
    KERNEL_VEX(name, EACH_12, r, mov, bytes, "",                                                   \
               BODY_PAIRS(EACH_12, DO_VEX, first, second, XK0, XK1, r), DO_VEX, first, XK3, r)
#define PAIRS_AVX512(name, first, second)                                                          \
    KERNEL_AVX512(name, EACH_24, "", BODY_PAIRS(EACH_24, DO_VEX, first, second, ZK0, ZK1, "zmm"),      \
                  DO_VEX, first, XK3, "zmm")
/* The same of the form a += k·h, with the third constant as h. */
#define PAIRS_FMA_VEX(name, first, second, r, mov, bytes)                                          \
    KERNEL_VEX(name, EACH_12, r, mov, bytes, "",                                                   \
               BODY_PAIRS(EACH_12, DO_FMA, first, second, XK0, XK1, r, XK2),                       \
               DO_FMA, first, XK3, r, XK2)
#define PAIRS_FMA_AVX512(name, first, second)                                                      \
    KERNEL_AVX512(name, EACH_24, "",                                                               \
                  BODY_PAIRS(EACH_24, DO_FMA, first, second, ZK0, ZK1, "zmm", ZK2),                \
                  DO_FMA, first, XK3, "zmm", XK2)

/* ---- intermediate results ------------------------------------------------------------------- */

/* Two kinds of instructions; the second takes what the first has made: M(t, k) makes an
 * intermediate result from constant k, A(a, t) adds one to an accumulator. An A takes what an M
 * made eight Ms ago, so none ever waits. In this order three times over, Golden Cove reaches 99 % of
 * what its ports allow; others stay at 82 to 97 %.
 * Each of the nine intermediate registers gets constants 0 and 1 in turn, so a missing M leaves a
 * wrong value behind. Thirty-six instructions; they add three times both constants' results to
 * each of three accumulators. The registers of the intermediate results are 3 to 11. */
#define LAGGED(M, A, ...) \
    A("0", "4", __VA_ARGS__) M("3", XK0, __VA_ARGS__) M("4", XK1, __VA_ARGS__) A("1", "5", __VA_ARGS__) \
    A("1", "6", __VA_ARGS__) M("5", XK0, __VA_ARGS__) M("6", XK1, __VA_ARGS__) A("2", "7", __VA_ARGS__) \
    A("2", "8", __VA_ARGS__) M("7", XK0, __VA_ARGS__) M("8", XK1, __VA_ARGS__) A("0", "9", __VA_ARGS__) \
    A("0", "10", __VA_ARGS__) M("9", XK0, __VA_ARGS__) M("10", XK1, __VA_ARGS__) A("1", "11", __VA_ARGS__) \
    A("1", "3", __VA_ARGS__) M("11", XK0, __VA_ARGS__) M("3", XK1, __VA_ARGS__) A("2", "4", __VA_ARGS__) \
    A("2", "5", __VA_ARGS__) M("4", XK0, __VA_ARGS__) M("5", XK1, __VA_ARGS__) A("0", "6", __VA_ARGS__) \
    A("0", "7", __VA_ARGS__) M("6", XK0, __VA_ARGS__) M("7", XK1, __VA_ARGS__) A("1", "8", __VA_ARGS__) \
    A("1", "9", __VA_ARGS__) M("8", XK0, __VA_ARGS__) M("9", XK1, __VA_ARGS__) A("2", "10", __VA_ARGS__) \
    A("2", "11", __VA_ARGS__) M("10", XK0, __VA_ARGS__) M("11", XK1, __VA_ARGS__) A("0", "3", __VA_ARGS__)
/* What the iteration before the first would have left. */
#define LAGGED_BEFORE(M, ...)                                                                      \
    M("3", XK1, __VA_ARGS__) M("4", XK0, __VA_ARGS__) M("5", XK1, __VA_ARGS__)                     \
    M("6", XK0, __VA_ARGS__) M("7", XK1, __VA_ARGS__) M("8", XK0, __VA_ARGS__)                     \
    M("9", XK1, __VA_ARGS__) M("10", XK0, __VA_ARGS__) M("11", XK1, __VA_ARGS__)
#define EACH_3(M, ...) M("0", __VA_ARGS__) M("1", __VA_ARGS__) M("2", __VA_ARGS__)
enum { LAGGED_ROUNDS = 3 * 3 }; /* of M, M, A, A on each accumulator */

/* The arguments are the instructions: of M, of A, and what else M takes. The chain carries A's. */
#define LAGGED_SSE(name, mov, bytes, M, A, make, add, ...)                                         \
    KERNEL_SSE(name, EACH_3, mov, bytes, LAGGED_BEFORE(M, make, add, __VA_ARGS__),                 \
               TIMES_3(LAGGED(M, A, make, add, __VA_ARGS__)), DO_SSE, add, XK3, "xmm")
#define LAGGED_AVX2(name, M, A, make, add)                                                         \
    KERNEL_VEX(name, EACH_3, "ymm", "vmovdqa", "32", LAGGED_BEFORE(M, make, add),                  \
               TIMES_3(LAGGED(M, A, make, add)), DO_VEX, add, XK3, "ymm")

/* ---- general-purpose registers -------------------------------------------------------------- */

/* Ten accumulators. Latency is 1, but Intel's cores bind an instruction to a port when it is
 * renamed: with eight, five ports stay at 94 %, with ten at 98 %. `b` and `c` are the names that
 * rbx and rcx have at this width, `s` the suffix of the numbered ones. */
#define EACH_GPR_8(M, s, ...)                                                                      \
    M("0", "r8" s, __VA_ARGS__) M("1", "r9" s, __VA_ARGS__) M("2", "r10" s, __VA_ARGS__)           \
    M("3", "r11" s, __VA_ARGS__) M("4", "r12" s, __VA_ARGS__) M("5", "r13" s, __VA_ARGS__)         \
    M("6", "r14" s, __VA_ARGS__) M("7", "r15" s, __VA_ARGS__)
#define EACH_GPR(M, b, c, s, ...)                                                                  \
    EACH_GPR_8(M, s, __VA_ARGS__) M("8", b, __VA_ARGS__) M("9", c, __VA_ARGS__)
#define LOAD_GPR(i, name, bytes) "mov " bytes "*" i "(%[state]), %%" name "\n\t"
#define STORE_GPR(i, name, bytes) "mov %%" name ", " bytes "*" i "(%[state])\n\t"
#define DO_GPR(i, name, op, k) op " %%" k ", %%" name "\n\t"

#define CLOBBER_GPR                                                                                \
    "rdx", "rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"

/* Pairs of `first` and `second`. The address of the constants comes in rax and makes room for the
 * first of them. */
#define KERNEL_GPR(name, k0, k1, b, c, s, bytes, body)                                             \
    static void name##_loop(uint64_t iterations, void *state, const void *constants)               \
    {                                                                                              \
        __asm__ volatile("mov 64(%%rax), %%" k1 "\n\t"                                             \
                         "mov (%%rax), %%" k0 "\n\t"                                               \
                         EACH_GPR(LOAD_GPR, b, c, s, bytes)                                        \
                         LOOP_BEGIN                                                                \
                         body                                                                      \
                         LOOP_END                                                                  \
                         EACH_GPR(STORE_GPR, b, c, s, bytes)                                       \
                         : [n] "+&r"(iterations), "+&a"(constants)                                 \
                         : [state] "r"(state)                                                      \
                         : "cc", "memory", CLOBBER_GPR);                                           \
    }
#define PAIRS_GPR(name, first, second, k0, k1, b, c, s, bytes)                                     \
    KERNEL_GPR(name, k0, k1, b, c, s, bytes,                                                       \
               TIMES_8(EACH_GPR(DO_GPR, b, c, s, first, k0) EACH_GPR(DO_GPR, b, c, s, second, k1)))
/* One of each in turn, for cores whose queues each feed one pipe, AMD's: ten multiplications in a
 * row fill the queue of the only pipe that multiplies, and what comes behind them waits (77 %). */
#define PAIR_GPR(i, name, first, k0, second, k1)                                                   \
    DO_GPR(i, name, first, k0) DO_GPR(i, name, second, k1)
#define PAIRS_IN_TURN_GPR(name, first, second, k0, k1, b, c, s, bytes)                             \
    KERNEL_GPR(name, k0, k1, b, c, s, bytes, TIMES_8(EACH_GPR(PAIR_GPR, b, c, s, first, k0, second, k1)))
