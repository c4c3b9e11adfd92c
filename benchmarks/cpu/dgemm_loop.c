/* What a user of OpenBLAS would write: cblas_dgemm or cblas_sgemm in a loop, with the library's own
 * threads. Prints the operations per second of its mean over `seconds`.
 *
 * usage: dgemm_loop d|s N SECONDS */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { COLUMN_MAJOR = 102, NO_TRANSPOSE = 111 };

void cblas_dgemm(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a,
                 int lda, const double *b, int ldb, double beta, double *c, int ldc);
void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                 int lda, const float *b, int ldb, float beta, float *c, int ldc);

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *matrix(int n, int fp32)
{
    size_t count = (size_t)n * (size_t)n;
    void *elements = malloc(count * (fp32 ? sizeof(float) : sizeof(double)));
    for (size_t i = 0; elements && i < count; i++)
        if (fp32)
            ((float *)elements)[i] = (float)rand() / (float)RAND_MAX - 0.5f;
        else
            ((double *)elements)[i] = (double)rand() / RAND_MAX - 0.5;
    return elements;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    int fp32 = argv[1][0] == 's', n = atoi(argv[2]), calls = 0;
    void *a = matrix(n, fp32), *b = matrix(n, fp32), *c = matrix(n, fp32);
    if (!a || !b || !c)
        return 3;
    double start_s = 0, taken_s = 0;
    for (; taken_s < atof(argv[3]); calls++) {
        if (calls == 1) /* the first is the warm-up */
            start_s = now_s();
        if (fp32)
            cblas_sgemm(COLUMN_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, n, n, n, 1, a, n, b, n, 1, c, n);
        else
            cblas_dgemm(COLUMN_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, n, n, n, 1, a, n, b, n, 1, c, n);
        taken_s = calls > 0 ? now_s() - start_s : 0;
    }
    printf("%.6e\n", 2.0 * n * n * n * (calls - 1) / taken_s);
    return 0;
}
