/* Solves A x = b by LU factorisation with partial pivoting, as HPL does it, in shared memory.
 *
 * The threads form a grid of P rows and Q columns. A column of the grid owns every Q-th block of
 * nb columns of A, kept side by side, so that its update of all that is left is a matrix
 * multiplication; the P threads of a column share its work by rows. b is the column behind A's
 * last, so the forward solution comes with the factorisation. The owners of the next panel
 * update and factor it first (look-ahead of one), while the others still update the rest.
 *
 * What a grid column owns is kept row by row: to swap two rows is to walk through two stretches of
 * memory. Where columns are kept one behind another, as HPL keeps them, every element is in a
 * cache line of its own, and the swaps take 6 % of the time at n = 4000 on a Zen 4. */
#ifndef CPU_BENCH_LU_H
#define CPU_BENCH_LU_H

#include "barrier.h"
#include "blas_library.h"

#include <stddef.h>

enum {
    LU_LEAF = 16,           /* columns of a panel that are factored one by one */
    LU_BLOCK_LARGEST = 192, /* columns of a panel, unless nb is given */
};

/* The biggest element that a thread found in its rows of a panel's column. */
struct candidate {
    _Alignas(64) double magnitude;
    size_t row;
};

struct lu_column {
    double *blocks; /* n rows of `stride` elements; `columns` of each are used */
    size_t columns, stride;
    double *leaf;           /* columns that are being factored one by one: LU_LEAF of n rows */
    struct barrier barrier; /* of its threads */
    struct candidate *candidates;
    double *x;     /* its part of the solution */
    double *taken; /* what that takes out of the rows of one block */
};

struct lu {
    size_t n, nb;
    unsigned grid_rows, grid_columns;
    size_t panels;             /* blocks of columns */
    struct lu_column *columns; /* of the grid */
    size_t leaf_stride;        /* elements from one column of a leaf to the next */
    int *pivots;               /* row of the swap, counted from the panel's first row */
    double *x;
    struct barrier barrier; /* of all threads */
    unsigned spins;
    atomic_uint factored; /* panels that are ready */
    atomic_bool singular;
    const atomic_bool *stopping;
    /* Both may be NULL. Called by the first thread with the order of what is left to factor, and
     * by each thread after every panel. */
    void (*progress)(void *context, size_t left);
    void (*checkpoint)(void *context);
};

/* The block size that was measured to be the fastest for this problem. */
size_t lu_block_size(size_t n, unsigned threads);
/* Everything but the memory of blocks and leaves. 0, or -1 without memory. */
int lu_init(struct lu *lu, size_t n, size_t nb, unsigned threads, unsigned spins);
void lu_free(struct lu *lu);
/* Where a grid column's part of row i begins. */
double *lu_row(const struct lu *lu, unsigned grid_column, size_t i);
/* The column of A that is the grid column's `local`-th; n: it is b. */
size_t lu_place(const struct lu *lu, unsigned grid_column, size_t local);
/* Before each lu_solve(), by one thread. */
void lu_reset(struct lu *lu);

/* Factors and solves; called by all threads at once, each with the functions that it is to call.
 * Comes back early when `stopping` is set. The solution is in `x`. */
void lu_solve(struct lu *lu, const struct blas *blas, unsigned thread, void *context);

#endif
