/* The BLAS that gemm and linpack stand on: which one, and what they share of calling it.
 *
 * Its own threads stay unused. The harness's threads, placed and pinned, call its kernels side by
 * side, each for its own part: so every thread is where the placement says, and what each
 * got of its CPU is known. Where more threads call than an OpenBLAS was built for, it is loaded as
 * often as it takes. */
#ifndef CPU_BENCH_BLAS_H
#define CPU_BENCH_BLAS_H

#include "blas_library.h"
#include "workload.h"

/* The choices of `library`. */
extern const char *const blas_choices[];

#define PARAM_LIBRARY                                                                              \
    {                                                                                              \
        .name = "library",                                                                         \
        .type = PARAM_CHOICE,                                                                      \
        .initial = "best",                                                                         \
        .choices = blas_choices,                                                                   \
        .resolved = "best",                                                                        \
        .resolved_once = true,                                                                     \
        .named = true,                                                                             \
        .help = "pinned: the OpenBLAS that comes with the programs; system: the host's OpenBLAS; " \
                "blis: the host's BLIS; best: the fastest of the installed ones, from a short "    \
                "comparison on one thread.",                                                       \
    }
/* `products`: what is multiplied in the comparison. */
#define METRICS_LIBRARY(products)                                                                  \
    {"operations_per_second_pinned", "operation/s", HIGHER_IS_BETTER,                              \
     "Rate of the OpenBLAS that comes with the programs, for " products " on one "                 \
     "thread: the best of a short comparison."},                                                   \
        {"operations_per_second_system", "operation/s", HIGHER_IS_BETTER,                          \
         "The same rate of the host's OpenBLAS."},                                                 \
        {"operations_per_second_blis", "operation/s", HIGHER_IS_BETTER,                            \
         "The same rate of the host's BLIS."}

/* For resolve(): tries the libraries, chooses and loads one. */
void blas_resolve(struct run *run, const struct blas_need *need);
const char *blas_unsupported(const struct run *run);
/* For check(): refuses a library that crashes or computes wrongly here. 0 or an exit_code. */
int blas_check(struct run *run);
/* Refuses more threads than the library can be called by. 0 or an exit_code. */
int blas_open(struct run *run);
void blas_close(void);
/* Operations a second of one thread in the chosen library; 0: it was not timed. */
double blas_rate(void);
/* The functions for a thread of the run, from blas_open() on. */
const struct blas *blas_of(unsigned thread);
/* For finish(): the metrics of the libraries that were tried. */
void blas_report(struct run *run);
/* Fails when more threads than those of the run have worked: OpenBLAS has a team of its own. Called
 * by one of them, all others having worked alike. 0 or an exit_code. */
int blas_check_threads(struct thread *thread);
/* The core clock under the licence of the widest fused multiply-add of the dtype that this CPU
 * has, which is what a BLAS runs on. */
double blas_clock_hertz(struct thread *thread, const char *dtype);
/* What one calling thread takes for packed blocks in multiplications of this size, in bytes. */
size_t blas_buffer_bytes(size_t n);
/* Multiplies small matrices until warmup_s is over. 0 or an exit_code. */
int blas_warm_up(struct thread *thread, double until_s);

#endif
