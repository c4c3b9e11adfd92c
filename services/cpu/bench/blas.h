/* OpenBLAS, loaded when it is first needed: cpu-bench starts without it.
 *
 * Its own threads stay unused. The harness's threads, placed and pinned, call its kernels side by
 * side, each for its own part: so every thread is where the placement says, and what each
 * got of its CPU is known. How many may call at once is bounded by how it was built. */
#ifndef CPU_BENCH_BLAS_H
#define CPU_BENCH_BLAS_H

#include "workload.h"

/* The enumerations and integers of the CBLAS and LAPACK interfaces (32-bit build). */
enum { COLUMN_MAJOR = 102, NO_TRANSPOSE = 111, UPPER = 121, LOWER = 122 };
enum { NON_UNIT = 131, UNIT = 132, LEFT = 141 };

struct blas {
    void (*dgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha,
                  const double *a, int lda, const double *b, int ldb, double beta, double *c,
                  int ldc);
    void (*sgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                  const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
    void (*dtrsm)(int order, int side, int triangle, int transpose, int diagonal, int m, int n,
                  double alpha, const double *a, int lda, double *b, int ldb);
    void (*dtrsv)(int order, int triangle, int transpose, int diagonal, int n, const double *a,
                  int lda, double *x, int step);
    void (*dgemv)(int order, int transpose, int m, int n, double alpha, const double *a, int lda,
                  const double *x, int step_x, double beta, double *y, int step_y);
    void (*dger)(int order, int m, int n, double alpha, const double *x, int step_x,
                 const double *y, int step_y, double *a, int lda);
    void (*dscal)(int n, double alpha, double *x, int step);
    size_t (*idamax)(int n, const double *x, int step);
    /* LAPACK: rows `first` to `last` of `n` columns change places with those in `pivots`, all
     * counted from 1. */
    void (*dlaswp)(const int *n, double *a, const int *lda, const int *first, const int *last,
                   const int *pivots, const int *step);
    void (*dgetrf)(const int *m, const int *n, double *a, const int *lda, int *pivots, int *info);
};

/* The functions of a workload that stands on OpenBLAS. */
void blas_resolve(struct run *run);
const char *blas_unsupported(const struct run *run);
/* Refuses more threads than this OpenBLAS can be called by. 0 or an exit_code. */
int blas_open(struct run *run);
/* Fails when more threads than those of the run have worked: OpenBLAS has a team of its own. Called
 * by one of them, all others having worked alike. 0 or an exit_code. */
int blas_check_threads(struct thread *thread);
/* The core clock under the licence of the widest fused multiply-add of the dtype that this CPU
 * has, which is what OpenBLAS runs on. */
double blas_clock_hertz(struct thread *thread, const char *dtype);
/* What one calling thread takes for packed blocks in multiplications of this size, in bytes. */
size_t blas_buffer_bytes(size_t n);
/* Multiplies small matrices until warmup_s is over. 0 or an exit_code. */
int blas_warm_up(struct thread *thread, double until_s);

/* Loads it if need be, in the main thread; NULL where there is none. */
const struct blas *blas_loaded(void);

#endif
