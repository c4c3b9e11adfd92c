/* gemm: C = A B + C for square matrices of order n, each thread on its own block of C. */
#include "blas.h"
#include "checked.h"
#include "matrix.h"
#include "workload.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    A,
    B,
    C,
    MATRICES,
    BATCH_MAX = 256,           /* C grows with it, and with C the tolerance of the check */
    LONG_OPERATIONS = 1 << 28, /* one multiplication of more is a step by itself: some ms */
    STRIP_COLUMNS = 4096,      /* of C in one call: the clock is measured in between */
};

static const uint64_t SEED = 0x67656d6d; /* "gemm" */
static const double C_BEFORE = 1;
static const double RESIDUAL_MOST = 16; /* as HPL's threshold on its scaled residual */
static const size_t CHECK_MEMORY_BYTES = 64u << 20;

struct share {
    size_t first, end;
};

struct gemm {
    size_t n, ld, element_bytes;
    bool fp32;
    unsigned grid_rows, grid_columns; /* of blocks of C, one a thread */
    size_t bytes;                     /* of one matrix */
    atomic_size_t unfilled_bytes;     /* of all; one thread may be far behind another */
    void *matrices[MATRICES];
    double *x, *bx; /* of the check */
    double *errors; /* … one a thread */
    uint64_t checks;
    double residual; /* the largest so far */
};

/* ---- memory --------------------------------------------------------------------------------- */

static double bytes_with(size_t n, unsigned threads, size_t element_bytes)
{
    double ld = (double)matrix_leading_dimension(n, element_bytes);
    return MATRICES * ld * (double)n * (double)element_bytes + 2.0 * (double)n * sizeof(double) +
           (double)threads * (double)blas_buffer_bytes(n);
}

static double bytes_fp64(size_t n, unsigned threads)
{
    return bytes_with(n, threads, sizeof(double));
}

static double bytes_fp32(size_t n, unsigned threads)
{
    return bytes_with(n, threads, sizeof(float));
}

static int lacks_memory(struct run *run)
{
    run_reason(run, "not enough memory for matrices of order %llu on %u threads: use a smaller --n",
               (unsigned long long)run_count(run, "n"), run_threads(run));
    return EXIT_RESOURCE;
}

/* Blocks as square as it goes: each thread packs its rows of A and its columns of B. */
static void choose_grid(struct gemm *gemm, unsigned threads)
{
    gemm->grid_rows = 1;
    for (unsigned i = 2; i * i <= threads; i++)
        if (threads % i == 0)
            gemm->grid_rows = i;
    gemm->grid_columns = threads / gemm->grid_rows;
}

static int map_matrices(struct run *run, struct gemm *gemm)
{
    for (int i = 0; i < MATRICES; i++) {
        gemm->matrices[i] = matrix_map(run, gemm->bytes);
        if (!gemm->matrices[i])
            return EXIT_RESOURCE;
    }
    gemm->x = calloc(gemm->n, sizeof *gemm->x);
    gemm->bx = calloc(gemm->n, sizeof *gemm->bx);
    gemm->errors = calloc(run_threads(run), sizeof *gemm->errors);
    return gemm->x && gemm->bx && gemm->errors ? EXIT_OK : lacks_memory(run);
}

static bool in_fp32(const struct run *run)
{
    return !strcmp(run_choice(run, "dtype"), "fp32");
}

static void resolve(struct run *run)
{
    blas_resolve(run, &(struct blas_need){.fp32 = in_fp32(run)});
}

static int open_gemm(struct run *run)
{
    size_t n = run_count(run, "n");
    bool fp32 = in_fp32(run);
    int failure = blas_open(run);
    if (!failure)
        failure = matrix_check_fits(run, n, fp32 ? bytes_fp32 : bytes_fp64);
    if (failure)
        return failure;
    struct gemm *gemm = calloc(1, sizeof *gemm);
    if (!gemm)
        return lacks_memory(run);
    run_set_shared(run, gemm);
    gemm->n = n;
    gemm->fp32 = fp32;
    gemm->element_bytes = fp32 ? sizeof(float) : sizeof(double);
    gemm->ld = matrix_leading_dimension(n, gemm->element_bytes);
    gemm->bytes = gemm->ld * n * gemm->element_bytes;
    atomic_init(&gemm->unfilled_bytes, MATRICES * n * n * gemm->element_bytes);
    choose_grid(gemm, run_threads(run));
    uint64_t operations = 2 * (uint64_t)n * n * n;
    run_set_unit(run, operations, operations > LONG_OPERATIONS ? 1 : BATCH_MAX);
    return map_matrices(run, gemm);
}

static void close_gemm(struct run *run)
{
    struct gemm *gemm = run_shared(run);
    blas_close();
    if (!gemm)
        return;
    for (int i = 0; i < MATRICES; i++)
        matrix_unmap(gemm->matrices[i], gemm->bytes);
    free(gemm->x);
    free(gemm->bx);
    free(gemm->errors);
    free(gemm);
}

/* ---- operands ------------------------------------------------------------------------------- */

static struct share share_of(size_t total, unsigned part, unsigned parts)
{
    return (struct share){total * part / parts, total * (part + 1) / parts};
}

static struct share rows_of(const struct gemm *gemm, const struct thread *thread)
{
    return share_of(gemm->n, thread->index % gemm->grid_rows, gemm->grid_rows);
}

static struct share columns_of(const struct gemm *gemm, const struct thread *thread)
{
    return share_of(gemm->n, thread->index / gemm->grid_rows, gemm->grid_columns);
}

static void put(const struct gemm *gemm, int matrix, size_t i, size_t j, double value)
{
    if (gemm->fp32)
        ((float *)gemm->matrices[matrix])[j * gemm->ld + i] = (float)value;
    else
        ((double *)gemm->matrices[matrix])[j * gemm->ld + i] = value;
}

static double get(const struct gemm *gemm, int matrix, size_t i, size_t j)
{
    return gemm->fp32 ? (double)((const float *)gemm->matrices[matrix])[j * gemm->ld + i]
                      : ((const double *)gemm->matrices[matrix])[j * gemm->ld + i];
}

/* The thread's own block of C as it is before each step, and of A and B with it: first touch. */
static void fill_column(const struct gemm *gemm, struct share rows, size_t j, bool all)
{
    for (size_t i = rows.first; i < rows.end; i++) {
        put(gemm, C, i, j, C_BEFORE);
        if (!all)
            continue;
        put(gemm, A, i, j, random_element(SEED, j * gemm->n + i));
        put(gemm, B, i, j, random_element(~SEED, j * gemm->n + i));
    }
}

static int setup(struct thread *thread)
{
    struct gemm *gemm = run_shared(thread->run);
    struct share rows = rows_of(gemm, thread), columns = columns_of(gemm, thread);
    size_t column_bytes = MATRICES * (rows.end - rows.first) * gemm->element_bytes;
    size_t unchecked = CHECK_MEMORY_BYTES;
    thread->state = calloc(gemm->n / run_threads(thread->run) + 1, sizeof(double));
    if (!thread->state)
        return lacks_memory(thread->run);
    for (size_t j = columns.first; j < columns.end && !run_stopping(thread->run); j++) {
        unchecked += column_bytes;
        if (unchecked >= CHECK_MEMORY_BYTES) {
            int failure = matrix_check_still_fits(thread->run, &gemm->unfilled_bytes);
            if (failure)
                return failure;
            unchecked = 0;
        }
        fill_column(gemm, rows, j, true);
        atomic_fetch_sub(&gemm->unfilled_bytes, column_bytes);
    }
    return EXIT_OK;
}

static int prepare(struct thread *thread)
{
    const struct gemm *gemm = run_shared(thread->run);
    struct share rows = rows_of(gemm, thread), columns = columns_of(gemm, thread);
    for (size_t j = columns.first; j < columns.end && !run_stopping(thread->run); j++)
        fill_column(gemm, rows, j, false);
    return EXIT_OK;
}

/* ---- step ----------------------------------------------------------------------------------- */

static void multiply(const struct gemm *gemm, const struct blas *blas, struct share rows,
                     struct share columns)
{
    int m = (int)(rows.end - rows.first), n = (int)(columns.end - columns.first), k = (int)gemm->n;
    int ld = (int)gemm->ld;
    size_t b = columns.first * gemm->ld, c = b + rows.first;
    if (gemm->fp32)
        blas->sgemm(COLUMN_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, m, n, k, 1,
                    (float *)gemm->matrices[A] + rows.first, ld, (float *)gemm->matrices[B] + b, ld,
                    1, (float *)gemm->matrices[C] + c, ld);
    else
        blas->dgemm(COLUMN_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, m, n, k, 1,
                    (double *)gemm->matrices[A] + rows.first, ld, (double *)gemm->matrices[B] + b,
                    ld, 1, (double *)gemm->matrices[C] + c, ld);
}

/* One multiplication of this thread's block, in strips where it is very large. */
static void multiply_block(struct thread *thread)
{
    const struct gemm *gemm = run_shared(thread->run);
    struct share rows = rows_of(gemm, thread), columns = columns_of(gemm, thread), strip = columns;
    while (strip.first < columns.end && rows.end > rows.first && !run_stopping(thread->run)) {
        strip.end =
            columns.end - strip.first > STRIP_COLUMNS ? strip.first + STRIP_COLUMNS : columns.end;
        multiply(gemm, blas_of(thread->index), rows, strip);
        strip.first = strip.end;
        if (strip.end == columns.end)
            return;
        run_checkpoint(thread);
        if (thread->index == 0)
            run_progress(thread, 2.0 * (double)gemm->n * (double)gemm->n *
                                     (double)(strip.end - columns.first) * gemm->grid_columns);
    }
}

static int step(struct thread *thread, uint64_t batch)
{
    for (uint64_t i = 0; i < batch; i++)
        multiply_block(thread);
    return EXIT_OK;
}

static double clock_hertz(struct thread *thread)
{
    return blas_clock_hertz(thread, run_choice(thread->run, "dtype"));
}

/* ---- check ---------------------------------------------------------------------------------- */

/* Adds a matrix's rows times `x` to `y`. */
static void add_product(const struct gemm *gemm, int matrix, struct share rows, const double *x,
                        double factor, double *y)
{
    for (size_t j = 0; j < gemm->n; j++)
        for (size_t i = rows.first; i < rows.end; i++)
            y[i - rows.first] += factor * get(gemm, matrix, i, j) * x[j];
}

/* How far C x may be off by rounding alone. After `batch` multiplications an element of C is
 * about 1 + batch sqrt(n) / 12 (elements of A and B have the variance 1/12); each of n products
 * and `batch` sums rounds by eps of that. Rounding errors add up like a random walk (Higham and
 * Mary, SIAM J. Sci. Comput. 41(5), 2019) over the n products and over the n columns; those of
 * equal sums need not. An element that was not computed is off by sqrt(n) / 12, some hundred times
 * more, even in fp32. */
static double rounding(const struct gemm *gemm, uint64_t batch)
{
    double eps = gemm->fp32 ? FLT_EPSILON / 2 : DBL_EPSILON / 2, root = sqrt((double)gemm->n);
    return eps * root * (root + (double)batch) * (C_BEFORE + (double)batch * root / 12);
}

/* Freivalds' check (MFCS 1979): C x against C x from before + batch A (B x), x random. Its elements
 * have magnitudes from 1/2 to 1, so a single wrong element of C is always found; several in one row
 * would have to cancel out, which for random reals they hardly ever do. */
static void prepare_check(struct gemm *gemm)
{
    uint64_t seed = SEED + ++gemm->checks;
    for (size_t j = 0; j < gemm->n; j++) {
        double random = random_element(seed, j);
        gemm->x[j] = random < 0 ? random - 0.5 : random + 0.5;
    }
}

static double error_in(const struct gemm *gemm, struct share rows, uint64_t batch, double *scratch)
{
    double expected = 0, error = 0;
    memset(scratch, 0, (rows.end - rows.first) * sizeof *scratch);
    for (size_t j = 0; j < gemm->n; j++)
        expected += C_BEFORE * gemm->x[j];
    add_product(gemm, C, rows, gemm->x, 1, scratch);
    add_product(gemm, A, rows, gemm->bx, -(double)batch, scratch);
    for (size_t i = 0; i < rows.end - rows.first; i++) {
        double off = fabs(scratch[i] - expected);
        error = isnan(off) || off > error ? off : error;
    }
    return error;
}

static int conclude_check(struct thread *thread, uint64_t batch)
{
    struct gemm *gemm = run_shared(thread->run);
    double error = 0;
    for (unsigned t = 0; t < run_threads(thread->run); t++)
        error = isnan(gemm->errors[t]) || gemm->errors[t] > error ? gemm->errors[t] : error;
    double residual = error / rounding(gemm, batch);
    if (!(residual < RESIDUAL_MOST)) { /* NaN is wrong too */
        run_reason(thread->run,
                   "n %zu %s: the product is wrong: C x is off by %.3g times what rounding "
                   "explains, below %g is right: this CPU, this BLAS or this build computes "
                   "incorrectly; do not trust its figures",
                   gemm->n, gemm->fp32 ? "fp32" : "fp64", residual, RESIDUAL_MOST);
        return EXIT_WRONG;
    }
    gemm->residual = fmax(gemm->residual, residual);
    return blas_check_threads(thread);
}

static int verify(struct thread *thread, uint64_t batch)
{
    struct gemm *gemm = run_shared(thread->run);
    struct share rows = share_of(gemm->n, thread->index, run_threads(thread->run));
    if (!RESULTS_ARE_CHECKED)
        return EXIT_OK;
    if (thread->index == 0)
        prepare_check(gemm);
    if (!run_meet(thread))
        return EXIT_OK;
    memset(gemm->bx + rows.first, 0, (rows.end - rows.first) * sizeof *gemm->bx);
    add_product(gemm, B, rows, gemm->x, 1, gemm->bx + rows.first);
    if (!run_meet(thread))
        return EXIT_OK;
    gemm->errors[thread->index] = error_in(gemm, rows, batch, thread->state);
    if (!run_meet(thread) || thread->index > 0)
        return EXIT_OK;
    return conclude_check(thread, batch);
}

static void finish(struct thread *thread)
{
    const struct gemm *gemm = run_shared(thread->run);
    double ratio = 0;
    for (int i = 0; i < MATRICES; i++)
        ratio += matrix_huge_page_ratio(gemm->matrices[i], gemm->bytes) / MATRICES;
    run_metric(thread->run, "residual", gemm->residual);
    run_metric(thread->run, "huge_page_ratio", ratio);
    blas_report(thread->run);
}

static void teardown(struct thread *thread)
{
    free(thread->state);
}

/* ---- table ---------------------------------------------------------------------------------- */

static const char *const dtypes[] = {"fp64", "fp32", NULL};

static const struct param params[] = {
    {.name = "n",
     .type = PARAM_COUNT,
     .initial = "3072",
     .min = 1,
     .max = 1000000,
     .help = "Order of the three matrices. Above about 3000 the rate of one core hardly increases. "
             "fp64 needs 24 n^2 bytes of memory."},
    {.name = "dtype",
     .type = PARAM_CHOICE,
     .initial = "fp64",
     .choices = dtypes,
     .roles = ROLE_TAG,
     .title = "data type",
     .help = "Type of the elements: fp64 calls dgemm, fp32 calls sgemm."},
    PARAM_LIBRARY,
    {.name = NULL},
};

static const struct metric metrics[] = {
    {"residual", "1", LOWER_IS_BETTER,
     "Error of the product times a random vector, divided by the error that rounding explains. "
     "Largest of the trial; 16 or more means that the product is wrong."},
    {"huge_page_ratio", "1", HIGHER_IS_BETTER, "Share of the matrices that lies in huge pages."},
    METRICS_LIBRARY("products of 4096 x 512 by 512 x 512 elements"),
    {.name = NULL},
};

WORKLOAD(gemm) = {
    .name = "gemm",
    .description = "Multiplies dense matrices, C = A B + C, with the fastest BLAS library.",
    .rate = {.name = "operations_per_second",
             .unit = "operation/s",
             .description =
                 "2 n^3 divided by the time of one multiplication: median over the clean steps.",
             .combine = COMBINE_SUM},
    .params = params,
    .metrics = metrics,
    .team = true,
    .resolve = resolve,
    .unsupported = blas_unsupported,
    .check = blas_check,
    .open = open_gemm,
    .close = close_gemm,
    .setup = setup,
    .prepare = prepare,
    .step = step,
    .verify = verify,
    .warm_up = blas_warm_up,
    .clock_hertz = clock_hertz,
    .finish = finish,
    .teardown = teardown,
};
