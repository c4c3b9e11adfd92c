/* Stands in for OpenBLAS in tests: hands everything on to the real one, whose path is in
 * REAL_OPENBLAS, and misbehaves as the environment says. x86-64 only. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

/* Jumps to the real function, whatever its arguments. */
#define HAND_ON(name)                                                                              \
    __attribute__((visibility("hidden"))) void *real_##name;                                       \
    __asm__(".globl " #name "\n\t.type " #name ", @function\n" #name ": jmp *real_" #name          \
            "(%rip)\n");

/* clang-format off */
#define EACH_HANDED_ON(M)                                                                          \
    M(cblas_dtrsm) M(cblas_dtrsv) M(cblas_dgemv) M(cblas_dger) M(cblas_dscal) M(cblas_idamax)      \
    M(openblas_set_num_threads) M(openblas_get_num_threads)
/* clang-format on */
EACH_HANDED_ON(HAND_ON)

typedef void dgemm(int, int, int, int, int, int, double, const double *, int, const double *, int,
                   double, double *, int);
typedef void sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int,
                   float, float *, int);

static void *library;

__attribute__((constructor)) static void load(void)
{
    library = dlopen(getenv("REAL_OPENBLAS"), RTLD_NOW | RTLD_LOCAL);
    if (!library)
        abort();
#define FIND(name) real_##name = dlsym(library, #name);
    EACH_HANDED_ON(FIND)
}

/* What is added to the last element of every product: SHIM_ERROR. */
static double error(void)
{
    const char *text = getenv("SHIM_ERROR");
    return text ? strtod(text, NULL) : 0;
}

static void *spin(void *unused)
{
    for (volatile unsigned long i = 0;; i++)
        ;
    return unused;
}

/* SHIM_THREADS: a library that has not given up its own team. SHIM_CRASH: kernels that this CPU
 * cannot run. */
static void misbehave(void)
{
    pthread_t thread;
    if (getenv("SHIM_CRASH"))
        __asm__ volatile("ud2");
    if (!getenv("SHIM_THREADS"))
        return;
    pthread_create(&thread, NULL, spin, NULL);
}

void cblas_dgemm(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a,
                 int lda, const double *b, int ldb, double beta, double *c, int ldc)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, misbehave);
    ((dgemm *)dlsym(library, "cblas_dgemm"))(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c,
                                             ldc);
    c[(size_t)(n - 1) * (size_t)ldc + (size_t)(m - 1)] += error();
}

void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                 int lda, const float *b, int ldb, float beta, float *c, int ldc)
{
    ((sgemm *)dlsym(library, "cblas_sgemm"))(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c,
                                             ldc);
    c[(size_t)(n - 1) * (size_t)ldc + (size_t)(m - 1)] += (float)error();
}

/* SHIM_CONFIG: another build. */
char *openblas_get_config(void)
{
    char *text = getenv("SHIM_CONFIG");
    return text ? text : ((char *(*)(void))dlsym(library, "openblas_get_config"))();
}

/* SHIM_CORE: what it takes this CPU for unless OPENBLAS_CORETYPE is set. */
char *openblas_get_corename(void)
{
    char *text = getenv("OPENBLAS_CORETYPE") ? NULL : getenv("SHIM_CORE");
    return text ? text : ((char *(*)(void))dlsym(library, "openblas_get_corename"))();
}
