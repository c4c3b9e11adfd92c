/* The libraries with a BLAS that gemm and linpack can stand on, and how each is loaded. */
#ifndef CPU_BENCH_BLAS_LIBRARY_H
#define CPU_BENCH_BLAS_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* The enumerations and integers of the CBLAS interface (32-bit build). */
enum { ROW_MAJOR = 101, COLUMN_MAJOR = 102, NO_TRANSPOSE = 111, UPPER = 121, LOWER = 122 };
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
};

/* In the order of preference where two are equally fast. */
enum { LIBRARY_PINNED, LIBRARY_SYSTEM, LIBRARY_BLIS, LIBRARIES };

struct blas_library {
    struct blas functions;
    char version[32], path[512]; /* symbolic links resolved */
    char config[256];            /* how it was built, in its own words */
    char core[32];               /* the CPU whose kernels it runs */
    unsigned callers_max;        /* that may be in it at once; 0: any number */
    bool thread_safe;            /* more than one may be */
};

/* What a workload takes of a BLAS. */
struct blas_need {
    bool fp32;
    int depth; /* columns of A in the products that are compared; 0: 512 */
    bool rate; /* blas_rate() is to be known, even where `library` names one */
};

/* The value of the parameter `library` that names it: pinned, system, blis. */
const char *blas_library_word(unsigned which);
/* OpenBLAS or BLIS. */
const char *blas_library_name(unsigned which);
/* Loads it into this process, set to start no threads. false with the reason, which has the
 * remedy. */
bool blas_library_load(unsigned which, struct blas_library *library, char *reason, size_t size);
/* Loads the same file once more, as a library with buffers of its own, so that as many callers
 * again may be in it. */
bool blas_library_load_copy(unsigned which, const struct blas_library *library, struct blas *copy);
/* The value of OPENBLAS_CORETYPE with which it would use the registers of this CPU that the kernels
 * of `core` leave unused; NULL: they use them, or cannot be changed. */
const char *blas_library_wider_core(unsigned which, const char *core);

#endif
