/* Kernels that run one instruction class on independent accumulators held in registers.
 *
 * The operands are small whole numbers and every pair of instructions moves an accumulator by
 * exactly one, so the value of every lane after any number of iterations is known exactly: a
 * missing, merged or wrong instruction does not go unseen. No denormals, no overflow. (int8 wraps
 * after 64 iterations: it would miss a loop that ran a multiple of 64 too few.) */
#ifndef CPU_BENCH_VECTOR_KERNEL_H
#define CPU_BENCH_VECTOR_KERNEL_H

#include "workload.h"

enum {
    PAIRS = 8, /* of instructions on each accumulator in one loop iteration */
    ACCUMULATORS_MAX = 24,
    REGISTER_BYTES_MAX = 64,
    CONSTANTS = 3,     /* registers */
    CHAIN_CYCLES = 80, /* dependent additions in one iteration of a clock chain */
};

struct kernel {
    const char *dtype;
    const char *isa;
    unsigned features;       /* set of enum feature */
    unsigned register_bytes; /* of one accumulator */
    unsigned accumulators;
    unsigned operations; /* of one instruction on one lane */
    /* Loads the accumulators from `state`, does `iterations`, stores them. `constants` are full
     * registers: the first is added, the second subtracted, both times the third for FMA. */
    void (*loop)(uint64_t iterations, void *state, const void *constants);
    /* CHAIN_CYCLES dependent one-cycle additions an iteration, with one of the kernel's
     * instructions in sixteen. */
    void (*chain)(uint64_t iterations);
};

/* The functions of a workload whose `own` are its kernels: rows ended by a NULL dtype, for each
 * dtype the best isa last. It has the parameters dtype and isa. */
void kernel_resolve(struct run *run);
const char *kernel_unsupported(const struct run *run);
int kernel_setup(struct thread *thread);
int kernel_step(struct thread *thread, uint64_t batch);
void kernel_empty_loop(struct thread *thread, uint64_t batch);
double kernel_clock_hertz(struct thread *thread);
void kernel_teardown(struct thread *thread);

#endif
