/* AT&T syntax. `a` is the accumulator's number, `k` a constant's, `r` the register name before the
 * number. */

/* Laid out by hand: the formatter does not see where an instruction ends. */
/* clang-format off */
#define DO_SSE(a, op, k, r, h) op " %%" r k ", %%" r a "\n\t"
#define DO_VEX(a, op, k, r, h) op " %%" r k ", %%" r a ", %%" r a "\n\t"
#define DO_FMA(a, op, k, r, h) op " %%" r k ", %%" r h ", %%" r a "\n\t"

#define LOAD(a, mov, bytes, r) mov " " bytes "*" a "(%[state]), %%" r a "\n\t"
#define STORE(a, mov, bytes, r) mov " %%" r a ", " bytes "*" a "(%[state])\n\t"

#define LOOP_BEGIN ".p2align 6\n1:\n\t"
#define LOOP_END "dec %[n]\n\tjnz 1b\n\t"

#define CLOBBER_16                                                                                 \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",       \
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
/* A compiler that was not told of AVX-512 neither uses nor knows the upper sixteen. */
#if defined(__AVX512F__)
#define CLOBBER_32                                                                                 \
    CLOBBER_16, "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24",   \
        "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31"
#else
#define CLOBBER_32 CLOBBER_16
#endif

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

#define LOOP(name, EACH, M, add, sub, r, mov, bytes, k0, k1, k2, after, clobbers)                  \
    static void name##_loop(uint64_t iterations, void *state, const void *constants)               \
    {                                                                                              \
        __asm__ volatile(mov " (%[constants]), %%" r k0 "\n\t"                                     \
                         mov " 64(%[constants]), %%" r k1 "\n\t"                                   \
                         mov " 128(%[constants]), %%" r k2 "\n\t"                                  \
                         EACH(LOAD, mov, bytes, r)                                                 \
                         LOOP_BEGIN                                                                \
                         BODY(EACH, M, add, sub, k0, k1, r, k2)                                    \
                         LOOP_END                                                                  \
                         EACH(STORE, mov, bytes, r)                                                \
                         after                                                                     \
                         : [n] "+&r"(iterations)                                                   \
                         : [state] "r"(state), [constants] "r"(constants)                          \
                         : "cc", "memory", clobbers);                                              \
    }

/* Zeros in the registers the chains use: leftovers might be denormals, which run slowly. */
#define CLEAR_XMM(a) "xorps %%xmm" a ", %%xmm" a "\n\t"
#define CLEAR_SSE                                                                                  \
    CLEAR_XMM("0") CLEAR_XMM("1") CLEAR_XMM("2") CLEAR_XMM("3") CLEAR_XMM("4") CLEAR_XMM("13")
#define CLEAR_AVX "vzeroall\n\t"
#define LEAVE_AVX "vzeroupper\n\t"

/* 12 accumulators: at least latency x pipes of every x86-64 CPU so far (5 x 2). */
#define KERNEL_SSE(name, add, sub, mov, bytes)                                                     \
    LOOP(name, EACH_12, DO_SSE, add, sub, "xmm", mov, bytes, "13", "14", "15", "", CLOBBER_16)     \
    CHAIN(name, CLEAR_SSE, DO_SSE, "", CLOBBER_16, add, "13", "xmm", "15")
#define KERNEL_VEX(name, M, add, sub, r, mov, bytes)                                               \
    LOOP(name, EACH_12, M, add, sub, r, mov, bytes, "13", "14", "15", LEAVE_AVX, CLOBBER_16)       \
    CHAIN(name, CLEAR_AVX, M, LEAVE_AVX, CLOBBER_16, add, "13", r, "15")
#define KERNEL_AVX512(name, M, add, sub)                                                           \
    LOOP(name, EACH_24, M, add, sub, "zmm", "vmovdqa64", "64", "29", "30", "31", LEAVE_AVX,        \
         CLOBBER_32)                                                                               \
    CHAIN(name, CLEAR_AVX, M, LEAVE_AVX, CLOBBER_16, add, "13", "zmm", "15")

/* General-purpose registers: ten accumulators. Latency is 1, but Intel's cores bind an instruction
 * to a port when it is renamed: with eight, five ports stay at 94 %, with ten at 98 %. `b` and `c`
 * are the names that rbx and rcx have at this width, `s` the suffix of the numbered ones. */
#define EACH_GPR(M, b, c, s, ...)                                                                  \
    M("0", "r8" s, __VA_ARGS__) M("1", "r9" s, __VA_ARGS__) M("2", "r10" s, __VA_ARGS__)           \
    M("3", "r11" s, __VA_ARGS__) M("4", "r12" s, __VA_ARGS__) M("5", "r13" s, __VA_ARGS__)         \
    M("6", "r14" s, __VA_ARGS__) M("7", "r15" s, __VA_ARGS__) M("8", b, __VA_ARGS__)               \
    M("9", c, __VA_ARGS__)
#define LOAD_GPR(i, name, bytes) "mov " bytes "*" i "(%[state]), %%" name "\n\t"
#define STORE_GPR(i, name, bytes) "mov %%" name ", " bytes "*" i "(%[state])\n\t"
#define DO_GPR(i, name, op, k) op " %%" k ", %%" name "\n\t"
#define PAIR_GPR(k0, k1, b, c, s)                                                                  \
    EACH_GPR(DO_GPR, b, c, s, "add", k0) EACH_GPR(DO_GPR, b, c, s, "sub", k1)

/* The address of the constants comes in rax and makes room for the first of them. */
#define KERNEL_GPR(name, k0, k1, b, c, s, bytes)                                                   \
    static void name##_loop(uint64_t iterations, void *state, const void *constants)               \
    {                                                                                              \
        __asm__ volatile("mov 64(%%rax), %%" k1 "\n\t"                                             \
                         "mov (%%rax), %%" k0 "\n\t"                                               \
                         EACH_GPR(LOAD_GPR, b, c, s, bytes)                                        \
                         LOOP_BEGIN                                                                \
                         TIMES_PAIRS(PAIR_GPR, k0, k1, b, c, s)                                    \
                         LOOP_END                                                                  \
                         EACH_GPR(STORE_GPR, b, c, s, bytes)                                       \
                         : [n] "+&r"(iterations), "+&a"(constants)                                 \
                         : [state] "r"(state)                                                      \
                         : "cc", "memory", "rdx", "rbx", "rcx", "r8", "r9", "r10", "r11", "r12",   \
                           "r13", "r14", "r15");                                                   \
    }
