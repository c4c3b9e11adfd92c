/* `a` is the accumulator's number, `k` a constant's, `r` the register letter, `shape` what follows
 * the number. */

/* Laid out by hand: the formatter does not see where an instruction ends. */
/* clang-format off */

/* The numbers of the registers that hold the constants, all accumulators being below. */
#define ZK0 "28"
#define ZK1 "29"
#define ZK2 "30"
#define ZK3 "31"
#define ZK4 "27"

#define DO_PLAIN(a, op, k, r, shape) op " " r a shape ", " r a shape ", " r k shape "\n\t"
/* a + k·h: the scalar form, and that of vectors, whose operands may be of another shape. */
#define DO_FUSED(a, op, k, r, shape, h) op " " r a ", " r k ", " r h ", " r a "\n\t"
#define DO_FUSED_NEON(a, op, k, shape, operand, h)                                                 \
    op " v" a shape ", v" k operand ", v" h operand "\n\t"
#define DO_MLA(a, op, k, r, shape, h) op " " r a shape ", " r k shape ", " r h shape "\n\t"

#define LOAD(a, q, bytes) "ldr " q a ", [%[state], #" bytes "*" a "]\n\t"
#define STORE(a, q, bytes) "str " q a ", [%[state], #" bytes "*" a "]\n\t"
#define LOAD_CONSTANTS(q)                                                                          \
    "ldr " q ZK0 ", [%[constants]]\n\t"                                                            \
    "ldr " q ZK1 ", [%[constants], #64]\n\t"                                                       \
    "ldr " q ZK2 ", [%[constants], #128]\n\t"                                                      \
    "ldr " q ZK3 ", [%[constants], #192]\n\t"                                                      \
    "ldr " q ZK4 ", [%[constants], #256]\n\t"

#define LOOP_BEGIN ".p2align 6\n1:\n\t"
#define LOOP_END "subs %[n], %[n], #1\n\tb.ne 1b\n\t"

#define CLOBBER_32                                                                                 \
    "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", \
        "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", \
        "v28", "v29", "v30", "v31"
#define CLOBBER_GPR                                                                                \
    "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x19", "x20", "x21",   \
        "x22", "x23", "x24", "x25", "x26"

#define ADD_4                                                                                      \
    "add %[x], %[x], %[y]\n\tadd %[x], %[x], %[y]\n\tadd %[x], %[x], %[y]\n\t"                     \
    "add %[x], %[x], %[y]\n\t"
#define ADD_16 ADD_4 ADD_4 ADD_4 ADD_4

/* Zeros in the registers the chains use: leftovers might be denormals, which run slowly. */
#define CLEAR(a) "movi v" a ".2d, #0\n\t"
#define CLEAR_NEON CLEAR("0") CLEAR("1") CLEAR("2") CLEAR("3") CLEAR("4") CLEAR(ZK3) CLEAR(ZK2)

/* A loop on 24 accumulators, at least latency x pipes of the Neoverse and Cortex cores (4 x 4), and
 * CHAIN_CYCLES additions with what `M` gives for accumulators 0 to 4 in between. `q` and `bytes`
 * make the loads and stores; what follows `body` is the chain's step with its arguments. */
#define KERNEL(name, EACH, q, bytes, body, M, ...)                                                 \
    static void name##_loop(uint64_t iterations, void *state, const void *constants)               \
    {                                                                                              \
        __asm__ volatile(LOAD_CONSTANTS(q)                                                         \
                         EACH(LOAD, q, bytes)                                                      \
                         LOOP_BEGIN                                                                \
                         body                                                                      \
                         LOOP_END                                                                  \
                         EACH(STORE, q, bytes)                                                     \
                         : [n] "+&r"(iterations)                                                   \
                         : [state] "r"(state), [constants] "r"(constants)                          \
                         : "cc", "memory", CLOBBER_32);                                            \
    }                                                                                              \
    static void name##_chain(uint64_t iterations)                                                  \
    {                                                                                              \
        uint64_t x = 0;                                                                            \
        __asm__ volatile(CLEAR_NEON                                                                \
                         LOOP_BEGIN                                                                \
                         ADD_16 M("0", __VA_ARGS__)                                                \
                         ADD_16 M("1", __VA_ARGS__)                                                \
                         ADD_16 M("2", __VA_ARGS__)                                                \
                         ADD_16 M("3", __VA_ARGS__)                                                \
                         ADD_16 M("4", __VA_ARGS__)                                                \
                         LOOP_END                                                                  \
                         : [n] "+&r"(iterations), [x] "+&r"(x)                                     \
                         : [y] "r"((uint64_t)3)                                                    \
                         : "cc", CLOBBER_32);                                                      \
    }
#define KERNEL_SCALAR(name, r, bytes, body, M, ...)                                                \
    KERNEL(name, EACH_24, r, bytes, body, M, __VA_ARGS__)
#define KERNEL_NEON(name, EACH, body, M, ...) KERNEL(name, EACH, "q", "16", body, M, __VA_ARGS__)

/* Of pairs of instructions `first` and `second`. */
#define PAIRS_SCALAR(name, first, second, r, bytes)                                                \
    KERNEL_SCALAR(name, r, bytes, BODY_PAIRS(EACH_24, DO_PLAIN, first, second, ZK0, ZK1, r, ""),   \
                  DO_PLAIN, first, ZK3, r, "")
#define PAIRS_NEON(name, first, second, shape)                                                     \
    KERNEL_NEON(name, EACH_24,                                                                     \
                BODY_PAIRS(EACH_24, DO_PLAIN, first, second, ZK0, ZK1, "v", shape),                \
                DO_PLAIN, first, ZK3, "v", shape)
/* The same of the form a + k·h, with the third constant as h. */
#define PAIRS_FUSED_SCALAR(name, first, second, r, bytes)                                          \
    KERNEL_SCALAR(name, r, bytes,                                                                  \
                  BODY_PAIRS(EACH_24, DO_FUSED, first, second, ZK0, ZK1, r, "", ZK2),              \
                  DO_FUSED, first, ZK3, r, "", ZK2)
#define PAIRS_FUSED_NEON(name, first, second, shape, operand)                                      \
    KERNEL_NEON(name, EACH_24,                                                                     \
                BODY_PAIRS(EACH_24, DO_FUSED_NEON, first, second, ZK0, ZK1, shape, operand, ZK2),  \
                DO_FUSED_NEON, first, ZK3, shape, operand, ZK2)

/* SVE, of whatever length. The constants repeat every 128 bits; `e` is the letter of a lane's
 * size (b h s d), and every lane takes part. */
#define DO_SVE(a, op, k, e) op " z" a "." e ", z" a "." e ", z" k "." e "\n\t"
#define DO_SVE_PREDICATED(a, op, k, e) op " z" a "." e ", p0/m, z" a "." e ", z" k "." e "\n\t"
#define DO_SVE_FUSED(a, op, k, e, h) op " z" a "." e ", p0/m, z" k "." e ", z" h "." e "\n\t"
#define LOAD_SVE(a, ...) "ldr z" a ", [%[state], #" a ", mul vl]\n\t"
#define STORE_SVE(a, ...) "str z" a ", [%[state], #" a ", mul vl]\n\t"
#define REPEAT(k) "dup z" k ".q, z" k ".q[0]\n\t"
#define CLEAR_SVE(a) "dup z" a ".b, #0\n\t"
#define SVE_BEGIN ".arch_extension sve\n\tptrue p0.b\n\t"

#define KERNEL_SVE(name, e, body, M, ...)                                                          \
    static void name##_loop(uint64_t iterations, void *state, const void *constants)               \
    {                                                                                              \
        __asm__ volatile(SVE_BEGIN                                                                 \
                         LOAD_CONSTANTS("q")                                                       \
                         REPEAT(ZK0) REPEAT(ZK1) REPEAT(ZK2) REPEAT(ZK3)                           \
                         EACH_24(LOAD_SVE, 0)                                                      \
                         LOOP_BEGIN                                                                \
                         body                                                                      \
                         LOOP_END                                                                  \
                         EACH_24(STORE_SVE, 0)                                                     \
                         : [n] "+&r"(iterations)                                                   \
                         : [state] "r"(state), [constants] "r"(constants)                          \
                         : "cc", "memory", CLOBBER_32);                                            \
    }                                                                                              \
    static void name##_chain(uint64_t iterations)                                                  \
    {                                                                                              \
        uint64_t x = 0;                                                                            \
        __asm__ volatile(SVE_BEGIN                                                                 \
                         CLEAR_SVE("0") CLEAR_SVE("1") CLEAR_SVE("2") CLEAR_SVE("3")               \
                         CLEAR_SVE("4") CLEAR_SVE(ZK2) CLEAR_SVE(ZK3)                              \
                         LOOP_BEGIN                                                                \
                         ADD_16 M("0", __VA_ARGS__)                                                \
                         ADD_16 M("1", __VA_ARGS__)                                                \
                         ADD_16 M("2", __VA_ARGS__)                                                \
                         ADD_16 M("3", __VA_ARGS__)                                                \
                         ADD_16 M("4", __VA_ARGS__)                                                \
                         LOOP_END                                                                  \
                         : [n] "+&r"(iterations), [x] "+&r"(x)                                     \
                         : [y] "r"((uint64_t)3)                                                    \
                         : "cc", CLOBBER_32);                                                      \
    }
#define PAIRS_SVE(name, M, first, second, e)                                                       \
    KERNEL_SVE(name, e, BODY_PAIRS(EACH_24, M, first, second, ZK0, ZK1, e), M, first, ZK3, e)
#define PAIRS_FUSED_SVE(name, first, second, e)                                                    \
    KERNEL_SVE(name, e, BODY_PAIRS(EACH_24, DO_SVE_FUSED, first, second, ZK0, ZK1, e, ZK2),        \
               DO_SVE_FUSED, first, ZK3, e, ZK2)

/* General-purpose registers: 16 accumulators, latency 1, at most 8 pipes so far. The constants lie
 * in registers 5 to 7. */
#define EACH_GPR(M, r, ...)                                                                        \
    M("0", r "8", __VA_ARGS__) M("1", r "9", __VA_ARGS__) M("2", r "10", __VA_ARGS__)              \
    M("3", r "11", __VA_ARGS__) M("4", r "12", __VA_ARGS__) M("5", r "13", __VA_ARGS__)            \
    M("6", r "14", __VA_ARGS__) M("7", r "15", __VA_ARGS__) M("8", r "19", __VA_ARGS__)            \
    M("9", r "20", __VA_ARGS__) M("10", r "21", __VA_ARGS__) M("11", r "22", __VA_ARGS__)          \
    M("12", r "23", __VA_ARGS__) M("13", r "24", __VA_ARGS__) M("14", r "25", __VA_ARGS__)         \
    M("15", r "26", __VA_ARGS__)
#define LOAD_GPR(i, name, bytes) "ldr " name ", [%[state], #" bytes "*" i "]\n\t"
#define STORE_GPR(i, name, bytes) "str " name ", [%[state], #" bytes "*" i "]\n\t"
#define DO_GPR(i, name, op, k) op " " name ", " name ", " k "\n\t"
#define DO_FUSED_GPR(i, name, op, k, h) op " " name ", " k ", " h ", " name "\n\t"

#define LOOP_GPR(name, r, bytes, body)                                                             \
    static void name##_loop(uint64_t iterations, void *state, const void *constants)               \
    {                                                                                              \
        __asm__ volatile("ldr " r "5, [%[constants]]\n\t"                                          \
                         "ldr " r "6, [%[constants], #64]\n\t"                                     \
                         "ldr " r "7, [%[constants], #128]\n\t"                                    \
                         EACH_GPR(LOAD_GPR, r, bytes)                                              \
                         LOOP_BEGIN                                                                \
                         body                                                                      \
                         LOOP_END                                                                  \
                         EACH_GPR(STORE_GPR, r, bytes)                                             \
                         : [n] "+&r"(iterations)                                                   \
                         : [state] "r"(state), [constants] "r"(constants)                          \
                         : "cc", "memory", CLOBBER_GPR);                                           \
    }
#define PAIRS_GPR(name, first, second, r, bytes)                                                   \
    LOOP_GPR(name, r, bytes, TIMES_8(EACH_GPR(DO_GPR, r, first, r "5") EACH_GPR(DO_GPR, r, second, r "6")))
#define PAIRS_FUSED_GPR(name, first, second, r, bytes)                                             \
    LOOP_GPR(name, r, bytes, TIMES_8(EACH_GPR(DO_FUSED_GPR, r, first, r "5", r "7")                \
                                     EACH_GPR(DO_FUSED_GPR, r, second, r "6", r "7")))
