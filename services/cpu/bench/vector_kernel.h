/* Kernels that run one class of instructions on independent accumulators held in registers.
 *
 * The operands are small whole numbers, and what a loop iteration makes of a lane is known exactly
 * (struct recipe), so the value of every lane after any number of iterations is known too: a
 * missing, merged or wrong instruction does not go unseen. No denormals, no overflow of floating
 * point. (Narrow integers repeat, int8 after 64 iterations or fewer: they would miss a loop that ran
 * such a multiple too few.) */
#ifndef CPU_BENCH_VECTOR_KERNEL_H
#define CPU_BENCH_VECTOR_KERNEL_H

#include "workload.h"

enum {
    PAIRS = 8, /* of instructions on each accumulator in one loop iteration, where a round is two */
    REGISTER_BYTES = 64,          /* at most; the tiles of AMX have 16 such rows */
    TILE_BYTES = 1024,            /* of 16 rows of 64 bytes */
    ACCUMULATOR_BYTES = 24 * 256, /* of all together, at most: SVE of 2048 bits */
    CONSTANTS = 5,                /* registers */
    PATTERN = 4,                  /* lanes after which a constant repeats */
    CHAIN_CYCLES = 80,            /* dependent additions in one iteration of a clock chain */
};

/* A constant whose lanes are all the same. */
#define ALL(value) {value, value, value, value}

/* What the instructions of a loop do. A round is what is done to every accumulator; it makes
 * multiplier · x + addend of a lane x (modulo its width, for integers). */
struct recipe {
    unsigned rounds;     /* in one loop iteration */
    unsigned steps;      /* instructions of a round on one accumulator */
    unsigned operations; /* of a round on one lane of an accumulator */
    uint64_t multiplier, addend;
    unsigned growth;     /* a lane grows to so many times its value in between; 0: it does not */
    const char *lane;    /* type of the accumulators' lanes; NULL: the kernel's dtype */
    const char *operand; /* type of the constants' lanes; NULL: the kernel's dtype */
    double constants[CONSTANTS][PATTERN];
    /* What the second half of the accumulators becomes instead, in as many rounds, steps and
     * operations; NULL: all become the same. */
    const struct recipe *second_half;
};

struct kernel {
    const char *dtype;
    const char *isa;
    const char *mix;         /* NULL: the workload has no such parameter */
    unsigned features;       /* set of enum feature */
    unsigned register_bytes; /* of one accumulator; 0: of an SVE register */
    unsigned accumulators;
    const struct recipe *recipe;
    /* Loads the accumulators from `state`, does `iterations`, stores them. `constants` are full
     * registers. */
    void (*loop)(uint64_t iterations, void *state, const void *constants);
    /* CHAIN_CYCLES dependent one-cycle additions an iteration, with some of the kernel's
     * instructions between them. */
    void (*chain)(uint64_t iterations);
    /* The CPUID vendor whose cores this row is for; it stands before the row for all. NULL: all. */
    const char *vendor;
};

/* The row of a table for the loop and the chain called name_dtype_isa. */
#define ROW(name, type, set, needs, bytes, count, made)                                            \
    {.dtype = #type,                                                                               \
     .isa = #set,                                                                                  \
     .features = (needs),                                                                          \
     .register_bytes = (bytes),                                                                    \
     .accumulators = (count),                                                                      \
     .recipe = &(made),                                                                            \
     .loop = name##_##type##_##set##_loop,                                                         \
     .chain = name##_##type##_##set##_chain}
/* The loop that suits AMD's cores: name_dtype_isa_amd. */
#define ROW_AMD(name, type, set, needs, bytes, count, made)                                        \
    {.dtype = #type,                                                                               \
     .isa = #set,                                                                                  \
     .features = (needs),                                                                          \
     .register_bytes = (bytes),                                                                    \
     .accumulators = (count),                                                                      \
     .recipe = &(made),                                                                            \
     .loop = name##_##type##_##set##_amd_loop,                                                     \
     .chain = name##_##type##_##set##_amd_chain,                                                   \
     .vendor = "AuthenticAMD"}
/* The same for a loop on general-purpose registers, which needs no licence. */
#define ROW_GPR(name, type, needs, bytes, count, made)                                             \
    {.dtype = #type,                                                                               \
     .isa = "scalar",                                                                              \
     .features = (needs),                                                                          \
     .register_bytes = (bytes),                                                                    \
     .accumulators = (count),                                                                      \
     .recipe = &(made),                                                                            \
     .loop = name##_##type##_scalar_loop,                                                          \
     .chain = loop_add_chain}

#define ROW_GPR_AMD(name, type, needs, bytes, count, made)                                         \
    {.dtype = #type,                                                                               \
     .isa = "scalar",                                                                              \
     .features = (needs),                                                                          \
     .register_bytes = (bytes),                                                                    \
     .accumulators = (count),                                                                      \
     .recipe = &(made),                                                                            \
     .loop = name##_##type##_scalar_amd_loop,                                                      \
     .chain = loop_add_chain,                                                                      \
     .vendor = "AuthenticAMD"}

/* The rows of `fma`, `dot` and `int_add`, for workloads that keep the core busy with them. */
extern const struct kernel fma_kernels[];
extern const struct kernel dot_kernels[];
extern const struct kernel int_add_kernels[];

/* Lists that workloads share. */
extern const char *const isas[];
extern const char *const float_dtypes[];
extern const char *const integer_dtypes[];

#define PARAM_DTYPE(names, first)                                                                  \
    {.name = "dtype",                                                                              \
     .type = PARAM_CHOICE,                                                                         \
     .initial = (first),                                                                           \
     .choices = (names),                                                                           \
     .roles = ROLE_TAG,                                                                            \
     .title = "data type",                                                                         \
     .help = "Type of each lane."}
#define PARAM_ISA(names, text)                                                                     \
    {.name = "isa",                                                                                \
     .type = PARAM_CHOICE,                                                                         \
     .initial = "best",                                                                            \
     .choices = (names),                                                                           \
     .roles = ROLE_TAG,                                                                            \
     .title = "instruction set",                                                                   \
     .resolved = "best",                                                                           \
     .resolved_once = true,                                                                        \
     .help = "Instruction set and vector width; best: the widest that this CPU supports. " text}

#define PARAM_SEED                                                                                 \
    {.name = "seed",                                                                               \
     .type = PARAM_COUNT,                                                                          \
     .min = 0,                                                                                     \
     .max = 1e15,                                                                                  \
     .roles = ROLE_HOW,                                                                            \
     .help = "Seed of the numbers in the lanes. With a seed, the fact `checksum` holds the "       \
             "checksum of the results of one pass, which is the same on every CPU. Default: "      \
             "small numbers and no checksum."}

#define OPERATION_RATE(what)                                                                       \
    {.name = "operations_per_second",                                                              \
     .unit = "operation/s",                                                                        \
     .description = what ": each thread's median clean slice, summed over the threads.",           \
     .combine = COMBINE_SUM}

/* The functions of a workload whose `own` are its kernels: rows ended by a NULL dtype, for each
 * dtype the best isa last. It has the parameters dtype and isa, and mix if its kernels have. */
#define KERNEL_FUNCTIONS                                                                           \
    .resolve = kernel_resolve, .unsupported = kernel_unsupported,                                  \
    .unconfirmed = kernel_unconfirmed, .setup = kernel_setup, .step = kernel_step,                 \
    .empty_loop = kernel_empty_loop, .clock_hertz = kernel_clock_hertz,                            \
    .teardown = kernel_teardown

void kernel_resolve(struct run *run);
const char *kernel_unsupported(const struct run *run);
const char *kernel_unconfirmed(const struct run *run);
int kernel_setup(struct thread *thread);
int kernel_step(struct thread *thread, uint64_t batch);
void kernel_empty_loop(struct thread *thread, uint64_t batch);
double kernel_clock_hertz(struct thread *thread);
void kernel_teardown(struct thread *thread);

/* For workloads that choose their row themselves: kernel_setup() with it, small numbers and no unit
 * of work; kernel_unconfirmed() of it. */
int kernel_begin(struct thread *thread, const struct kernel *kernel);
const char *kernel_row_unconfirmed(const struct kernel *kernel);
/* Operations of one iteration. */
uint64_t kernel_operations(const struct kernel *kernel);

#endif
