/* linpack: solves A x = b of order n by LU factorisation, counted and checked as HPL does. */
#include "blas.h"
#include "lu.h"
#include "matrix.h"
#include "workload.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t SEED = 0x6c696e7061636b; /* "linpack" */
static const double RESIDUAL_MOST = 16;        /* HPL's threshold */
static const size_t CHECK_MEMORY_BYTES = 64u << 20;

enum { ORDER_STEP = 100 };
static const double RATE_OF_GEMM = 0.9; /* seen: 0.82 at n = 4000, 0.92 at 10,000 */
static const double UNBOUND_S = 20;

/* What one thread adds to the check of the solution. */
struct partial {
    double *ax;                                /* its columns' part of A x */
    double *a_sum;                             /* … and of the sum of each row's magnitudes */
    _Alignas(64) double error, a_norm, b_norm; /* of its rows */
};

struct linpack {
    struct lu lu;
    size_t *bytes;                /* of each grid column's blocks */
    size_t leaf_bytes;            /* … and of its leaf */
    atomic_size_t unfilled_bytes; /* of all; one thread may be far behind another */
    struct partial *partials;
    bool factored;   /* the matrix is to be made anew */
    double residual; /* the largest so far */
};

/* ---- memory --------------------------------------------------------------------------------- */

/* The matrix and b, whose rows each grid column rounds up; leaves; what is kept of x; the sums of
 * the check; what OpenBLAS packs into. */
static double bytes_of(size_t n, unsigned threads)
{
    double matrix = (double)(n + 1) + threads * (double)matrix_leading_dimension(1, sizeof(double));
    double of_thread = LU_LEAF + 2;
    return (matrix + threads * of_thread + 3) * (double)n * sizeof(double) +
           threads * (double)blas_buffer_bytes(n);
}

static int lacks_memory(struct run *run)
{
    run_reason(run, "not enough memory for a system of order %llu on %u threads: use a smaller --n",
               (unsigned long long)run_count(run, "n"), run_threads(run));
    return EXIT_RESOURCE;
}

static int map_columns(struct run *run, struct linpack *linpack)
{
    struct lu *lu = &linpack->lu;
    linpack->bytes = calloc(lu->grid_columns, sizeof *linpack->bytes);
    if (!linpack->bytes)
        return lacks_memory(run);
    linpack->leaf_bytes = LU_LEAF * lu->leaf_stride * sizeof(double);
    for (unsigned q = 0; q < lu->grid_columns; q++) {
        linpack->bytes[q] = lu->n * lu->columns[q].stride * sizeof(double);
        lu->columns[q].blocks = matrix_map(run, linpack->bytes[q]);
        lu->columns[q].leaf = matrix_map(run, linpack->leaf_bytes);
        if (!lu->columns[q].blocks || !lu->columns[q].leaf)
            return EXIT_RESOURCE;
    }
    return EXIT_OK;
}

static int allocate_partials(struct run *run, struct linpack *linpack)
{
    unsigned threads = run_threads(run);
    linpack->partials = aligned_alloc(64, threads * sizeof *linpack->partials);
    if (!linpack->partials)
        return lacks_memory(run);
    memset(linpack->partials, 0, threads * sizeof *linpack->partials);
    for (unsigned i = 0; i < threads; i++) {
        linpack->partials[i].ax = calloc(linpack->lu.n, sizeof(double));
        linpack->partials[i].a_sum = calloc(linpack->lu.n, sizeof(double));
        if (!linpack->partials[i].ax || !linpack->partials[i].a_sum)
            return lacks_memory(run);
    }
    return EXIT_OK;
}

static double operations_left(double n)
{
    return 2.0 / 3.0 * n * n * n + 3.0 / 2.0 * n * n;
}

static void show_progress(void *context, size_t left)
{
    struct thread *thread = context;
    const struct linpack *linpack = run_shared(thread->run);
    run_progress(thread, operations_left((double)linpack->lu.n) - operations_left((double)left));
}

static void checkpoint(void *context)
{
    run_checkpoint(context);
}

static int open_linpack(struct run *run)
{
    size_t n = run_count(run, "n");
    int failure = blas_open(run);
    if (!failure)
        failure = matrix_check_fits(run, n, bytes_of);
    if (failure)
        return failure;
    struct linpack *linpack = calloc(1, sizeof *linpack);
    if (!linpack)
        return lacks_memory(run);
    run_set_shared(run, linpack);
    run_set_unit(run, (uint64_t)operations_left((double)n), 1);
    if (lu_init(&linpack->lu, n, run_count(run, "nb"), run_threads(run), run_spins(run)))
        return lacks_memory(run);
    linpack->lu.stopping = run_stop_flag(run);
    linpack->lu.progress = show_progress;
    linpack->lu.checkpoint = checkpoint;
    failure = map_columns(run, linpack);
    size_t unfilled = 0;
    for (unsigned q = 0; !failure && q < linpack->lu.grid_columns; q++)
        unfilled += linpack->bytes[q];
    atomic_init(&linpack->unfilled_bytes, unfilled);
    return failure ? failure : allocate_partials(run, linpack);
}

static void close_linpack(struct run *run)
{
    struct linpack *linpack = run_shared(run);
    blas_close();
    if (!linpack)
        return;
    for (unsigned i = 0; linpack->partials && i < run_threads(run); i++) {
        free(linpack->partials[i].ax);
        free(linpack->partials[i].a_sum);
    }
    free(linpack->partials);
    for (unsigned q = 0; linpack->bytes && q < linpack->lu.grid_columns; q++) {
        matrix_unmap(linpack->lu.columns[q].blocks, linpack->bytes[q]);
        matrix_unmap(linpack->lu.columns[q].leaf, linpack->leaf_bytes);
    }
    free(linpack->bytes);
    lu_free(&linpack->lu);
    free(linpack);
}

/* ---- the system ----------------------------------------------------------------------------- */

static double element(const struct lu *lu, size_t row, size_t column)
{
    return random_element(SEED, (uint64_t)column * lu->n + row);
}

/* Whether a thread makes row `i` of its grid column, whose threads take turns. */
static bool is_mine(const struct lu *lu, const struct thread *thread, size_t i)
{
    return i % lu->grid_rows == thread->index / lu->grid_columns;
}

static void generate_row(const struct lu *lu, const struct thread *thread, size_t i)
{
    unsigned q = thread->index % lu->grid_columns;
    double *row = lu_row(lu, q, i);
    for (size_t local = 0; local < lu->columns[q].columns; local++)
        row[local] = element(lu, i, lu_place(lu, q, local));
}

/* First touch: the threads of a grid column take its rows in turn. */
static int setup(struct thread *thread)
{
    struct linpack *linpack = run_shared(thread->run);
    const struct lu *lu = &linpack->lu;
    size_t stride = lu->columns[thread->index % lu->grid_columns].stride;
    size_t row_bytes = stride * sizeof(double), unchecked = CHECK_MEMORY_BYTES;
    for (size_t i = 0; i < lu->n && !run_stopping(thread->run); i++) {
        if (!is_mine(lu, thread, i))
            continue;
        unchecked += row_bytes;
        if (unchecked >= CHECK_MEMORY_BYTES) {
            int failure = matrix_check_still_fits(thread->run, &linpack->unfilled_bytes);
            if (failure)
                return failure;
            unchecked = 0;
        }
        generate_row(lu, thread, i);
        atomic_fetch_sub(&linpack->unfilled_bytes, row_bytes);
    }
    return EXIT_OK;
}

static int prepare(struct thread *thread)
{
    struct linpack *linpack = run_shared(thread->run);
    struct lu *lu = &linpack->lu;
    bool anew = linpack->factored;
    if (!run_meet(thread)) /* after it the flag may change */
        return EXIT_OK;
    for (size_t i = 0; i < lu->n && anew && !run_stopping(thread->run); i++)
        if (is_mine(lu, thread, i))
            generate_row(lu, thread, i);
    if (thread->index == 0) {
        linpack->factored = true;
        lu_reset(lu);
    }
    return EXIT_OK;
}

static int step(struct thread *thread, uint64_t batch)
{
    struct linpack *linpack = run_shared(thread->run);
    (void)batch; /* always 1: a system is solved once */
    lu_solve(&linpack->lu, blas_of(thread->index), thread->index, thread);
    return EXIT_OK;
}

static double clock_hertz(struct thread *thread)
{
    return blas_clock_hertz(thread, "fp64");
}

/* ---- check ---------------------------------------------------------------------------------- */

static void add_columns(const struct linpack *linpack, struct thread *thread)
{
    const struct lu *lu = &linpack->lu;
    struct partial *mine = &linpack->partials[thread->index];
    memset(mine->ax, 0, lu->n * sizeof *mine->ax);
    memset(mine->a_sum, 0, lu->n * sizeof *mine->a_sum);
    for (size_t j = thread->index; j < lu->n && !run_stopping(thread->run);
         j += run_threads(thread->run)) {
        for (size_t i = 0; i < lu->n; i++) {
            double a = element(lu, i, j);
            mine->ax[i] += a * lu->x[j];
            mine->a_sum[i] += fabs(a);
        }
    }
}

/* fmax() would let a NaN pass. */
static double larger(double a, double b)
{
    return isnan(a) || a > b ? a : b;
}

static void compare_rows(const struct linpack *linpack, const struct thread *thread)
{
    const struct lu *lu = &linpack->lu;
    unsigned threads = run_threads(thread->run);
    struct partial *mine = &linpack->partials[thread->index];
    mine->error = mine->a_norm = mine->b_norm = 0;
    size_t end = lu->n * (thread->index + 1) / threads;
    for (size_t i = lu->n * thread->index / threads; i < end; i++) {
        double b = element(lu, i, lu->n), ax = 0, a_sum = 0;
        for (unsigned t = 0; t < threads; t++) {
            ax += linpack->partials[t].ax[i];
            a_sum += linpack->partials[t].a_sum[i];
        }
        mine->error = larger(fabs(ax - b), mine->error);
        mine->a_norm = fmax(mine->a_norm, a_sum);
        mine->b_norm = fmax(mine->b_norm, fabs(b));
    }
}

/* ||A x - b|| / (eps (||A|| ||x|| + ||b||) n), all norms the largest magnitude or row sum, eps the
 * unit round-off 2^-53: HPL 2.3, testing/ptest/HPL_pdtest.c. */
static double residual_of(const struct linpack *linpack, unsigned threads)
{
    const struct lu *lu = &linpack->lu;
    double error = 0, a_norm = 0, b_norm = 0, x_norm = 0;
    for (unsigned t = 0; t < threads; t++) {
        error = larger(linpack->partials[t].error, error);
        a_norm = fmax(a_norm, linpack->partials[t].a_norm);
        b_norm = fmax(b_norm, linpack->partials[t].b_norm);
    }
    for (size_t i = 0; i < lu->n; i++)
        x_norm = larger(fabs(lu->x[i]), x_norm);
    return error / (DBL_EPSILON / 2 * (a_norm * x_norm + b_norm) * (double)lu->n);
}

static int verify(struct thread *thread, uint64_t batch)
{
    struct linpack *linpack = run_shared(thread->run);
    (void)batch;
    add_columns(linpack, thread);
    if (!run_meet(thread))
        return EXIT_OK;
    compare_rows(linpack, thread);
    if (!run_meet(thread) || thread->index > 0)
        return EXIT_OK;
    double residual = residual_of(linpack, run_threads(thread->run));
    bool singular = atomic_load(&linpack->lu.singular);
    if (singular || !(residual < RESIDUAL_MOST)) { /* NaN is wrong too */
        run_reason(
            thread->run,
            "n %zu: the solution is wrong: the scaled residual is %.3g%s, below %g is right: this "
            "CPU, this BLAS or this build computes incorrectly; do not trust its figures",
            linpack->lu.n, residual, singular ? " and a pivot is zero" : "", RESIDUAL_MOST);
        return EXIT_WRONG;
    }
    linpack->residual = fmax(linpack->residual, residual);
    return blas_check_threads(thread);
}

static void finish(struct thread *thread)
{
    const struct linpack *linpack = run_shared(thread->run);
    double huge_bytes = 0, bytes = 0;
    for (unsigned q = 0; q < linpack->lu.grid_columns; q++) {
        huge_bytes += matrix_huge_page_ratio(linpack->lu.columns[q].blocks, linpack->bytes[q]) *
                      (double)linpack->bytes[q];
        bytes += (double)linpack->bytes[q];
    }
    run_metric(thread->run, "residual", linpack->residual);
    run_metric(thread->run, "huge_page_ratio", huge_bytes / bytes);
    blas_report(thread->run);
}

/* ---- table ---------------------------------------------------------------------------------- */

static void resolve(struct run *run)
{
    blas_resolve(
        run, &(struct blas_need){.depth = LU_BLOCK_LARGEST, .rate = run_choice(run, "n") != NULL});
}

/* The largest order that is solved in duration_s, as far as the rate of a multiplication tells, and
 * fits into memory. */
static size_t order_for_duration(const struct run *run)
{
    double time_s = run_param_set(run, "duration_s") ? run_number(run, "duration_s") : UNBOUND_S;
    double operations = RATE_OF_GEMM * blas_rate() * run_cpus(run) * time_s;
    size_t n = (size_t)cbrt(1.5 * operations) / ORDER_STEP * ORDER_STEP;
    n = n > ORDER_STEP ? n : ORDER_STEP;
    size_t fits = matrix_largest_order(run, n, bytes_of);
    return fits < n ? fits / ORDER_STEP * ORDER_STEP : n;
}

static int check(struct run *run)
{
    int failure = blas_check(run);
    if (failure)
        return failure;
    if (run_choice(run, "n"))
        run_set_count(run, "n", order_for_duration(run));
    if (run_choice(run, "nb"))
        run_set_count(run, "nb", lu_block_size(run_count(run, "n"), run_threads(run)));
    return EXIT_OK;
}

static const char *const automatic[] = {"auto", NULL};
static const char *const best[] = {"best", NULL};

static const struct param params[] = {
    {.name = "n",
     .type = PARAM_COUNT,
     .initial = "8000",
     .min = 1,
     .max = 1000000,
     .choices = automatic,
     .resolved_once = true,
     .help = "Order of the system, which needs 8 n^2 bytes of memory. Larger systems come closer "
             "to the peak rate. auto: the largest that fits into memory and can be solved in about "
             "duration_s (20 s if duration_s is not set)."},
    {.name = "nb",
     .type = PARAM_COUNT,
     .initial = "best",
     .min = 1,
     .max = 4096,
     .choices = best,
     .resolved_once = true,
     .help = "Columns per block (HPL's NB); best: 192, or fewer if that leaves too few blocks per "
             "thread."},
    PARAM_LIBRARY,
    {.name = NULL},
};

static const struct metric metrics[] = {
    {"residual", "1", LOWER_IS_BETTER,
     "HPL's scaled residual, ||Ax-b|| / (eps (||A|| ||x|| + ||b||) n). Largest of the trial; 16 or "
     "more means that the solution is wrong."},
    {"huge_page_ratio", "1", HIGHER_IS_BETTER, "Share of the matrix that lies in huge pages."},
    METRICS_LIBRARY("products of 4096 x 192 by 192 x 512 elements"),
    {.name = NULL},
};

WORKLOAD(linpack) = {
    .name = "linpack",
    .description = "Solves a dense system of linear equations in fp64 by LU factorisation with "
                   "partial pivoting, as HPL does, with the fastest BLAS library.",
    .rate = {.name = "operations_per_second",
             .unit = "operation/s",
             .description = "(2/3 n^3 + 3/2 n^2) divided by the time of one solution, as HPL "
                            "counts: median over the clean solutions.",
             .combine = COMBINE_SUM},
    .params = params,
    .metrics = metrics,
    .team = true,
    .resolve = resolve,
    .unsupported = blas_unsupported,
    .check = check,
    .open = open_linpack,
    .close = close_linpack,
    .setup = setup,
    .prepare = prepare,
    .step = step,
    .verify = verify,
    .warm_up = blas_warm_up,
    .clock_hertz = clock_hertz,
    .finish = finish,
};
