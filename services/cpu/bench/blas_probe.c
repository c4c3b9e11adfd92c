#define _GNU_SOURCE
#include "blas_probe.h"

#include "matrix.h"
#include "monotonic.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CHECK_ORDER = 96,
    /* 20 to 40 ms a multiplication, on blocks as large as they get. As many rows as a large matrix
     * has: BLIS 0.9 keeps up with OpenBLAS on a Zen 4 for 1024, and falls to 0.86 for these. */
    TIMED_ROWS = 4096,
    TIMED_COLUMNS = 512,
    TIMED_DEPTH = 512,
    PROBE_S_MOST = 60,
    HUGE_PAGE_BYTES = 2 << 20,
};

static const double TIMED_S = 0.1;
/* Each element of the product of order 96 is about 1; rounding makes it off by some 1e-15, in fp32
 * by 1e-6. */
static const double ERROR_MOST = 1e-12, ERROR_MOST_FP32 = 1e-4;

/* ---- in the child --------------------------------------------------------------------------- */

struct product {
    const struct blas *blas;
    bool fp32;
    int rows, columns, depth; /* A is rows x depth, B depth x columns */
    void *a, *b, *c;
};

static double get(const struct product *product, const void *matrix, size_t i)
{
    return product->fp32 ? (double)((const float *)matrix)[i] : ((const double *)matrix)[i];
}

/* In huge pages, as the matrices of a run. */
static void *random_matrix(const struct product *product, int rows, int columns, uint64_t seed)
{
    size_t elements = (size_t)rows * (size_t)columns, bytes = elements * sizeof(double);
    bytes = (bytes + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    void *matrix = aligned_alloc(HUGE_PAGE_BYTES, bytes);
    if (matrix)
        madvise(matrix, bytes, MADV_HUGEPAGE);
    for (size_t i = 0; matrix && i < elements; i++)
        if (product->fp32)
            ((float *)matrix)[i] = (float)random_element(seed, i);
        else
            ((double *)matrix)[i] = random_element(seed, i);
    return matrix;
}

static bool make(struct product *product)
{
    product->a = random_matrix(product, product->rows, product->depth, 1);
    product->b = random_matrix(product, product->depth, product->columns, 2);
    product->c = random_matrix(product, product->rows, product->columns, 3);
    return product->a && product->b && product->c;
}

static void multiply(const struct product *product)
{
    int m = product->rows, n = product->columns, k = product->depth;
    if (product->fp32)
        product->blas->sgemm(COLUMN_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, m, n, k, 1, product->a, m,
                             product->b, k, 0, product->c, m);
    else
        product->blas->dgemm(COLUMN_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, m, n, k, 1, product->a, m,
                             product->b, k, 0, product->c, m);
}

/* The largest difference from the product by its definition. */
static double error_of(const struct product *product)
{
    size_t rows = (size_t)product->rows, columns = (size_t)product->columns;
    size_t depth = (size_t)product->depth;
    double error = 0;
    for (size_t j = 0; j < columns; j++)
        for (size_t i = 0; i < rows; i++) {
            double sum = 0;
            for (size_t k = 0; k < depth; k++)
                sum += get(product, product->a, k * rows + i) *
                       get(product, product->b, j * depth + k);
            double off = fabs(get(product, product->c, j * rows + i) - sum);
            error = isnan(off) || off > error ? off : error;
        }
    return error;
}

/* By the shortest of several multiplications: a disturbance only makes them longer. */
static double rate_of(const struct product *product)
{
    double shortest_s = INFINITY, begun_s = 0;
    multiply(product); /* first touch of its buffers; the vector licence */
    begun_s = now_s();
    do {
        double start_s = now_s();
        multiply(product);
        shortest_s = fmin(shortest_s, now_s() - start_s);
    } while (now_s() - begun_s < TIMED_S);
    return 2.0 * product->rows * product->columns * product->depth / shortest_s;
}

static void examine(unsigned which, const struct blas_need *need, bool timed, struct probe *probe)
{
    struct blas_library library;
    if (!blas_library_load(which, &library, probe->reason, sizeof probe->reason)) {
        probe->state = PROBE_MISSING;
        return;
    }
    snprintf(probe->core, sizeof probe->core, "%s", library.core);
    /* Should this process die from here on. */
    snprintf(probe->reason, sizeof probe->reason, "%s %s (%s), %s kernels",
             blas_library_name(which), library.version, library.path, library.core);
    int depth = need->depth > 0 ? need->depth : TIMED_DEPTH;
    struct product small = {.blas = &library.functions,
                            .fp32 = need->fp32,
                            .rows = CHECK_ORDER,
                            .columns = CHECK_ORDER,
                            .depth = CHECK_ORDER};
    struct product large = {.blas = &library.functions,
                            .fp32 = need->fp32,
                            .rows = TIMED_ROWS,
                            .columns = TIMED_COLUMNS,
                            .depth = depth};
    if (!make(&small) || (timed && !make(&large)))
        _exit(EXIT_FAILURE);
    multiply(&small);
    /* Of a library that is not compared the trial's own check says more. */
    double error = timed ? error_of(&small) : 0;
    if (!(error < (need->fp32 ? ERROR_MOST_FP32 : ERROR_MOST))) { /* NaN is wrong too */
        size_t length = strlen(probe->reason);
        snprintf(probe->reason + length, sizeof probe->reason - length,
                 ", computes incorrectly on this CPU: an element of a product is off by %.3g",
                 error);
        return;
    }
    probe->rate = timed ? rate_of(&large) : 0;
    probe->state = PROBE_FINE;
}

static void run_child(unsigned which, const struct blas_need *need, bool timed, int cpu,
                      struct probe *probe)
{
    sigset_t none;
    cpu_set_t *cpus = CPU_ALLOC((size_t)cpu + 1);
    size_t size = CPU_ALLOC_SIZE((size_t)cpu + 1);
    /* Ctrl-C and SIGTERM are for the program, which ends this process with itself. */
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_DUMPABLE, 0); /* no core file */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    alarm(PROBE_S_MOST);
    if (cpus && timed) {
        CPU_ZERO_S(size, cpus);
        CPU_SET_S((size_t)cpu, size, cpus);
        sched_setaffinity(0, size, cpus);
    }
    examine(which, need, timed, probe);
    _exit(EXIT_SUCCESS);
}

/* ---- in the program ------------------------------------------------------------------------- */

static void describe_death(int status, struct probe *probe)
{
    size_t length = strlen(probe->reason);
    char *end = probe->reason + length;
    size_t left = sizeof probe->reason - length;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(end, left, ", did not come back from a multiplication within %d s", PROBE_S_MOST);
    else if (WIFSIGNALED(status))
        snprintf(end, left, ", crashes on this CPU (%s)", strsignal(WTERMSIG(status)));
    else
        snprintf(end, left, ", ended the process that tried it (exit code %d)",
                 WEXITSTATUS(status));
}

void blas_probe(unsigned which, const struct blas_need *need, bool timed, int cpu,
                struct probe *probe)
{
    int status = 0;
    *probe = (struct probe){.state = PROBE_BROKEN};
    snprintf(probe->reason, sizeof probe->reason, "%s (library %s)", blas_library_name(which),
             blas_library_word(which));
    struct probe *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return;
    *shared = *probe;
    fflush(NULL); /* what the thread sanitizer's _exit() would write a second time */
    pid_t child = fork();
    if (child == 0)
        run_child(which, need, timed, cpu, shared);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    *probe = *shared;
    munmap(shared, sizeof *shared);
    if (child < 0)
        snprintf(probe->reason, sizeof probe->reason,
                 "no process to try %s in (%s): raise the limit of processes",
                 blas_library_name(which), strerror(errno));
    else if (probe->state == PROBE_BROKEN && status != 0)
        describe_death(status, probe);
}
