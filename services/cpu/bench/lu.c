#include "lu.h"

#include "matrix.h"

#include <stdlib.h>
#include <string.h>

enum {
    LINE = 8,     /* elements of a cache line */
    SWAPPED = 64, /* columns of two rows that change places together */
    /* Rows that are multiplied together: what the library packs of them stays in a cache of 2 MiB
     * (0 to 2 % faster than all rows at once on a Zen 4, with 256 rows slower). */
    MULTIPLIED = 1024,
    BLOCK_SMALLEST = 32,
    BLOCK_STEP = 8,
    BLOCKS_LEAST = 8, /* of a column of the grid: fewer leave some of them idle for long */
};

/* What one thread knows of its place; `row` and `column` are of the grid. */
struct member {
    struct lu *lu;
    const struct blas *blas;
    struct lu_column *own;
    unsigned thread, row, column;
    void *context;
};

/* A part of `total` things: from `first` up to, not including, `end`. */
struct share {
    size_t first, end;
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static struct share share_of(size_t total, unsigned part, unsigned parts)
{
    return (struct share){total * part / parts, total * (part + 1) / parts};
}

/* ---- layout --------------------------------------------------------------------------------- */

/* P x Q = threads, as square as it goes, P <= Q: what HPL advises. */
static void grid_of(unsigned threads, unsigned *rows, unsigned *columns)
{
    *rows = 1;
    for (unsigned i = 2; i * i <= threads; i++)
        if (threads % i == 0)
            *rows = i;
    *columns = threads / *rows;
}

size_t lu_block_size(size_t n, unsigned threads)
{
    unsigned rows, columns;
    grid_of(threads, &rows, &columns);
    size_t nb = n / ((size_t)columns * BLOCKS_LEAST) / BLOCK_STEP * BLOCK_STEP;
    nb = nb < LU_BLOCK_LARGEST ? nb : LU_BLOCK_LARGEST;
    return nb > BLOCK_SMALLEST ? nb : BLOCK_SMALLEST;
}

static size_t panel_width(const struct lu *lu, size_t panel)
{
    size_t left = lu->n - panel * lu->nb;
    return left < lu->nb ? left : lu->nb;
}

/* Of the blocks 0 to panels - 1, those that a grid column owns before block `end`. */
static size_t owned_blocks(const struct lu *lu, unsigned grid_column, size_t end)
{
    return (end + lu->grid_columns - 1 - grid_column) / lu->grid_columns;
}

/* Of the columns of A in the blocks before `end`. */
static size_t owned_before(const struct lu *lu, unsigned grid_column, size_t end)
{
    size_t columns = owned_blocks(lu, grid_column, end) * lu->nb;
    bool last = end == lu->panels && (end - 1) % lu->grid_columns == grid_column;
    return last ? columns - lu->nb + panel_width(lu, end - 1) : columns;
}

static unsigned owner_of(const struct lu *lu, size_t block)
{
    return (unsigned)(block % lu->grid_columns);
}

/* Columns that a grid column owns, b included where it falls to it. */
static size_t owned_columns(const struct lu *lu, unsigned grid_column)
{
    return owned_before(lu, grid_column, lu->panels) + (owner_of(lu, lu->panels) == grid_column);
}

static size_t block_of(const struct lu *lu, size_t j)
{
    return j == lu->n ? lu->panels : j / lu->nb;
}

double *lu_row(const struct lu *lu, unsigned grid_column, size_t i)
{
    const struct lu_column *column = &lu->columns[grid_column];
    return column->blocks + i * column->stride;
}

size_t lu_place(const struct lu *lu, unsigned grid_column, size_t local)
{
    size_t j = (local / lu->nb * lu->grid_columns + grid_column) * lu->nb + local % lu->nb;
    return j < lu->n ? j : lu->n;
}

/* Where column `j` of A, or b, begins. */
static double *first_of(const struct lu *lu, size_t j)
{
    size_t block = block_of(lu, j);
    unsigned owner = owner_of(lu, block);
    size_t local = owned_before(lu, owner, block) + (block == lu->panels ? 0 : j - block * lu->nb);
    return lu->columns[owner].blocks + local;
}

int lu_init(struct lu *lu, size_t n, size_t nb, unsigned threads, unsigned spins)
{
    *lu = (struct lu){.n = n,
                      .nb = nb,
                      .panels = (n + nb - 1) / nb,
                      .leaf_stride = matrix_leading_dimension(n, sizeof(double)),
                      .spins = spins};
    grid_of(threads, &lu->grid_rows, &lu->grid_columns);
    lu->columns = calloc(lu->grid_columns, sizeof *lu->columns);
    lu->pivots = calloc(n, sizeof *lu->pivots);
    lu->x = calloc(n, sizeof *lu->x);
    if (!lu->columns || !lu->pivots || !lu->x)
        return -1;
    for (unsigned q = 0; q < lu->grid_columns; q++) {
        struct lu_column *column = &lu->columns[q];
        column->columns = owned_columns(lu, q);
        column->stride = matrix_leading_dimension(column->columns, sizeof(double));
        barrier_init(&column->barrier, lu->grid_rows, spins);
        column->candidates =
            aligned_alloc(_Alignof(struct candidate), lu->grid_rows * sizeof *column->candidates);
        column->x = calloc(column->columns + 1, sizeof *column->x);
        column->taken = calloc(nb, sizeof *column->taken);
        if (!column->candidates || !column->x || !column->taken)
            return -1;
    }
    barrier_init(&lu->barrier, threads, spins);
    return 0;
}

void lu_reset(struct lu *lu)
{
    atomic_store(&lu->factored, 0);
    atomic_store(&lu->singular, false);
}

void lu_free(struct lu *lu)
{
    for (unsigned q = 0; lu->columns && q < lu->grid_columns; q++) {
        free(lu->columns[q].candidates);
        free(lu->columns[q].x);
        free(lu->columns[q].taken);
    }
    free(lu->columns);
    free(lu->pivots);
    free(lu->x);
    *lu = (struct lu){0};
}

/* ---- panel ---------------------------------------------------------------------------------- */

/* The panel that a column of the grid is factoring. Its rows are counted from the matrix's row
 * `top` on. */
struct panel {
    double *a; /* its first element */
    size_t top, width;
    struct share mine; /* rows of this thread */
};

static bool meet_column(const struct member *me)
{
    return me->lu->grid_rows == 1 || barrier_wait_unless(&me->own->barrier, me->lu->stopping);
}

/* An element of the matrix. */
static double *at(const struct member *me, const struct panel *panel, size_t row, size_t column)
{
    return panel->a + row * me->own->stride + column;
}

/* An element of the leaf that is being factored. */
static double *in_leaf(const struct member *me, size_t row, size_t column)
{
    return me->own->leaf + column * me->lu->leaf_stride + row;
}

static struct share rows_below(const struct panel *panel, size_t row)
{
    struct share rows = panel->mine;
    rows.first = rows.first > row ? rows.first : row;
    rows.end = rows.end > rows.first ? rows.end : rows.first;
    return rows;
}

/* Makes the swaps of the rows `rows`, counted from `top` on, in `count` columns; the first of them
 * is at `a` in row `top`. A few lines of each row at a time: a row that changes places again is
 * still in the cache. */
static void swap_rows(const struct member *me, double *a, size_t count, size_t top,
                      struct share rows)
{
    size_t stride = me->own->stride;
    const int *pivots = me->lu->pivots + top;
    for (size_t first = 0; first < count; first += SWAPPED) {
        size_t swapped = smaller(count - first, SWAPPED);
        for (size_t i = rows.first; i < rows.end; i++) {
            double *one = a + i * stride + first;
            double *other = a + (size_t)pivots[i] * stride + first;
            for (size_t j = 0; j < swapped; j++) {
                double kept = one[j];
                one[j] = other[j];
                other[j] = kept;
            }
        }
    }
}

static void propose_pivot(const struct member *me, const struct panel *panel, size_t row, size_t j)
{
    struct share rows = rows_below(panel, row);
    struct candidate *mine = &me->own->candidates[me->row];
    *mine = (struct candidate){.magnitude = -1, .row = row};
    if (rows.first == rows.end)
        return;
    const double *column = in_leaf(me, rows.first, j);
    size_t which = me->blas->idamax((int)(rows.end - rows.first), column, 1);
    if (which >= rows.end - rows.first) /* of nothing but NaN; the residual will tell */
        which = 0;
    mine->magnitude = column[which] < 0 ? -column[which] : column[which];
    mine->row = rows.first + which;
}

static size_t chosen_pivot(const struct member *me)
{
    const struct candidate *best = me->own->candidates;
    for (unsigned i = 1; i < me->lu->grid_rows; i++)
        if (me->own->candidates[i].magnitude > best->magnitude)
            best = &me->own->candidates[i];
    return best->row;
}

static void swap_in_leaf(const struct member *me, const struct panel *panel, size_t row,
                         size_t pivot, size_t width)
{
    me->lu->pivots[panel->top + row] = (int)pivot;
    for (size_t j = 0; j < width && pivot != row; j++) {
        double kept = *in_leaf(me, row, j);
        *in_leaf(me, row, j) = *in_leaf(me, pivot, j);
        *in_leaf(me, pivot, j) = kept;
    }
}

/* Divides the column by its pivot and takes its share out of the rest of the leaf. */
static void eliminate(const struct member *me, const struct panel *panel, size_t row, size_t j,
                      size_t width)
{
    struct share rows = rows_below(panel, row + 1);
    int count = (int)(rows.end - rows.first), rest = (int)(width - j - 1);
    int stride = (int)me->lu->leaf_stride;
    double pivot = *in_leaf(me, row, j);
    if (pivot == 0)
        atomic_store(&me->lu->singular, true);
    else if (count > 0)
        me->blas->dscal(count, 1 / pivot, in_leaf(me, rows.first, j), 1);
    if (count > 0 && rest > 0)
        me->blas->dger(COLUMN_MAJOR, count, rest, -1, in_leaf(me, rows.first, j), 1,
                       in_leaf(me, row, j + 1), stride, in_leaf(me, rows.first, j + 1), stride);
}

/* Copies this thread's rows of a leaf, whose columns are searched and scaled one by one: a cache
 * line of each at a time. */
static void copy_to_leaf(const struct member *me, const struct panel *panel, struct share leaf)
{
    struct share rows = rows_below(panel, leaf.first);
    size_t i = rows.first, stride = me->own->stride;
    for (; i + LINE <= rows.end; i += LINE)
        for (size_t j = leaf.first; j < leaf.end; j++)
            for (size_t k = 0; k < LINE; k++)
                in_leaf(me, i, j - leaf.first)[k] = at(me, panel, i, j)[k * stride];
    for (; i < rows.end; i++)
        for (size_t j = leaf.first; j < leaf.end; j++)
            *in_leaf(me, i, j - leaf.first) = *at(me, panel, i, j);
}

static void copy_from_leaf(const struct member *me, const struct panel *panel, struct share leaf)
{
    struct share rows = rows_below(panel, leaf.first);
    size_t i = rows.first, stride = me->own->stride;
    for (; i + LINE <= rows.end; i += LINE)
        for (size_t j = leaf.first; j < leaf.end; j++)
            for (size_t k = 0; k < LINE; k++)
                at(me, panel, i, j)[k * stride] = in_leaf(me, i, j - leaf.first)[k];
    for (; i < rows.end; i++)
        for (size_t j = leaf.first; j < leaf.end; j++)
            *at(me, panel, i, j) = *in_leaf(me, i, j - leaf.first);
}

/* Factors columns one by one, and makes their swaps in the others of the panel. */
static bool factor_leaf(const struct member *me, const struct panel *panel, struct share leaf)
{
    size_t width = leaf.end - leaf.first;
    copy_to_leaf(me, panel, leaf);
    for (size_t j = 0; j < width; j++) {
        size_t row = leaf.first + j;
        propose_pivot(me, panel, row, j);
        if (!meet_column(me))
            return false;
        size_t pivot = chosen_pivot(me);
        if (me->row == 0)
            swap_in_leaf(me, panel, row, pivot, width);
        if (!meet_column(me))
            return false;
        eliminate(me, panel, row, j, width);
    }
    copy_from_leaf(me, panel, leaf);
    struct share left = share_of(leaf.first, me->row, me->lu->grid_rows);
    struct share right = share_of(panel->width - leaf.end, me->row, me->lu->grid_rows);
    swap_rows(me, at(me, panel, 0, left.first), left.end - left.first, panel->top, leaf);
    swap_rows(me, at(me, panel, 0, leaf.end + right.first), right.end - right.first, panel->top,
              leaf);
    return meet_column(me);
}

/* Brings `right`, the columns behind `left`, to where `left` is: triangular solution by columns,
 * multiplication by rows. */
static bool update_in_panel(const struct member *me, const struct panel *panel, struct share left,
                            struct share right)
{
    size_t width = left.end - left.first;
    struct share mine = share_of(right.end - right.first, me->row, me->lu->grid_rows);
    size_t first = right.first + mine.first, count = mine.end - mine.first;
    int stride = (int)me->own->stride;
    if (count > 0)
        me->blas->dtrsm(ROW_MAJOR, LEFT, LOWER, NO_TRANSPOSE, UNIT, (int)width, (int)count, 1,
                        at(me, panel, left.first, left.first), stride,
                        at(me, panel, left.first, first), stride);
    if (!meet_column(me))
        return false;
    struct share rows = rows_below(panel, left.end);
    if (rows.end > rows.first)
        me->blas->dgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, (int)(rows.end - rows.first),
                        (int)(right.end - right.first), (int)width, -1,
                        at(me, panel, rows.first, left.first), stride,
                        at(me, panel, left.first, right.first), stride, 1,
                        at(me, panel, rows.first, right.first), stride);
    return true;
}

/* Factors a range of the panel's columns, halving it down to leaves, so that most of the work is
 * matrix multiplication (Toledo, SIAM J. Matrix Anal. Appl. 18(4), 1997). */
static bool factor_columns(const struct member *me, const struct panel *panel, struct share range)
{
    if (range.end - range.first <= LU_LEAF)
        return factor_leaf(me, panel, range);
    size_t half = (range.end - range.first) / 2;
    half = (half + LU_LEAF - 1) / LU_LEAF * LU_LEAF;
    struct share left = {range.first, range.first + half}, right = {left.end, range.end};
    return factor_columns(me, panel, left) && update_in_panel(me, panel, left, right) &&
           factor_columns(me, panel, right);
}

static bool factor_panel(const struct member *me, size_t index)
{
    struct lu *lu = me->lu;
    size_t top = index * lu->nb;
    struct panel panel = {.a = first_of(lu, top) + top * me->own->stride,
                          .top = top,
                          .width = panel_width(lu, index),
                          .mine = share_of(lu->n - top, me->row, lu->grid_rows)};
    if (!factor_columns(me, &panel, (struct share){0, panel.width}))
        return false;
    if (me->row == 0) {
        atomic_store(&lu->factored, (unsigned)index + 1);
        word_wake(&lu->factored);
    }
    return true;
}

/* ---- update --------------------------------------------------------------------------------- */

/* Brings the columns `range`, as the grid column counts its own, to where `panel` is. */
static bool update(const struct member *me, size_t panel, struct share range)
{
    struct lu *lu = me->lu;
    size_t top = panel * lu->nb, width = panel_width(lu, panel), below = top + width;
    size_t stride = me->own->stride, factors_stride = lu->columns[owner_of(lu, panel)].stride;
    const double *factors = first_of(lu, top);
    if (range.first == range.end)
        return true;
    struct share mine = share_of(range.end - range.first, me->row, lu->grid_rows);
    double *a = me->own->blocks + range.first + mine.first;
    swap_rows(me, a + top * stride, mine.end - mine.first, top, (struct share){0, width});
    if (mine.end > mine.first)
        me->blas->dtrsm(ROW_MAJOR, LEFT, LOWER, NO_TRANSPOSE, UNIT, (int)width,
                        (int)(mine.end - mine.first), 1, factors + top * factors_stride,
                        (int)factors_stride, a + top * stride, (int)stride);
    if (!meet_column(me))
        return false;
    struct share rows = share_of(lu->n - below, me->row, lu->grid_rows);
    a = me->own->blocks + range.first;
    for (size_t first = rows.first, end; first < rows.end; first = end) {
        end = smaller(first + MULTIPLIED, rows.end);
        me->blas->dgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, (int)(end - first),
                        (int)(range.end - range.first), (int)width, -1,
                        factors + (below + first) * factors_stride, (int)factors_stride,
                        a + top * stride, (int)stride, 1, a + (below + first) * stride,
                        (int)stride);
    }
    return meet_column(me);
}

static bool await_panel(struct lu *lu, size_t panel)
{
    unsigned seen;
    while ((seen = atomic_load(&lu->factored)) <= panel)
        if (!word_wait(&lu->factored, seen, lu->spins, lu->stopping))
            return false;
    return true;
}

static bool factor(const struct member *me)
{
    struct lu *lu = me->lu;
    if (me->column == 0 && !factor_panel(me, 0))
        return false;
    for (size_t panel = 0; panel < lu->panels; panel++) {
        if (!await_panel(lu, panel))
            return false;
        struct share rest = {owned_before(lu, me->column, panel + 1), me->own->columns};
        if (panel + 1 < lu->panels && owner_of(lu, panel + 1) == me->column) {
            struct share ahead = rest;
            /* With one column in the grid no thread would gain by an earlier panel. */
            if (lu->grid_columns > 1)
                ahead.end = ahead.first + panel_width(lu, panel + 1);
            rest.first = ahead.end;
            if (!update(me, panel, ahead) || !factor_panel(me, panel + 1))
                return false;
        }
        if (!update(me, panel, rest))
            return false;
        if (me->thread == 0 && lu->progress)
            lu->progress(me->context, lu->n - panel * lu->nb - panel_width(lu, panel));
        if (lu->checkpoint)
            lu->checkpoint(me->context);
    }
    return true;
}

/* ---- back substitution ---------------------------------------------------------------------- */

static void solve_triangle(const struct member *me, size_t panel)
{
    struct lu *lu = me->lu;
    size_t top = panel * lu->nb, width = panel_width(lu, panel);
    double *x = lu->x + top;
    for (unsigned q = 0; q < lu->grid_columns; q++)
        for (size_t i = 0; i < width; i++)
            x[i] -= lu->columns[q].taken[i];
    me->blas->dtrsv(ROW_MAJOR, UPPER, NO_TRANSPOSE, NON_UNIT, (int)width,
                    first_of(lu, top) + top * me->own->stride, (int)me->own->stride, x, 1);
    memcpy(me->own->x + owned_before(lu, me->column, panel), x, width * sizeof *x);
}

/* U x = y, block by block from the last one up: each grid column multiplies its part of the
 * block's rows by what is known of x, the owner of the block solves its triangle. */
static void substitute_back(const struct member *me)
{
    struct lu *lu = me->lu;
    struct lu_column *own = me->own;
    if (me->row == 0 && me->column == owner_of(lu, lu->panels)) {
        const double *y = first_of(lu, lu->n);
        for (size_t i = 0; i < lu->n; i++)
            lu->x[i] = y[i * own->stride];
    }
    for (size_t panel = lu->panels; panel-- > 0;) {
        size_t top = panel * lu->nb, width = panel_width(lu, panel);
        size_t behind = owned_before(lu, me->column, panel + 1);
        size_t known = owned_before(lu, me->column, lu->panels) - behind;
        struct share mine = share_of(width, me->row, lu->grid_rows);
        memset(own->taken + mine.first, 0, (mine.end - mine.first) * sizeof *own->taken);
        if (mine.end > mine.first && known > 0)
            me->blas->dgemv(ROW_MAJOR, NO_TRANSPOSE, (int)(mine.end - mine.first), (int)known, 1,
                            lu_row(lu, me->column, top + mine.first) + behind, (int)own->stride,
                            own->x + behind, 1, 0, own->taken + mine.first, 1);
        if (!barrier_wait_unless(&lu->barrier, lu->stopping))
            return;
        if (me->row == 0 && me->column == owner_of(lu, panel))
            solve_triangle(me, panel);
        if (!barrier_wait_unless(&lu->barrier, lu->stopping))
            return;
    }
}

void lu_solve(struct lu *lu, const struct blas *blas, unsigned thread, void *context)
{
    struct member me = {.lu = lu, .blas = blas, .thread = thread, .context = context};
    me.column = thread % lu->grid_columns;
    me.row = thread / lu->grid_columns;
    me.own = &lu->columns[me.column];
    if (factor(&me))
        substitute_back(&me);
}
