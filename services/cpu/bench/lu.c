#include "lu.h"

#include "matrix.h"

#include <stdlib.h>
#include <string.h>

enum {
    LEAF = 8, /* columns of a panel that are factored one by one */
    BLOCK_LARGEST = 192,
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
    nb = nb < BLOCK_LARGEST ? nb : BLOCK_LARGEST;
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

unsigned lu_owner(const struct lu *lu, size_t j)
{
    return owner_of(lu, block_of(lu, j));
}

double *lu_column(const struct lu *lu, size_t j)
{
    size_t block = block_of(lu, j);
    unsigned owner = owner_of(lu, block);
    size_t local = owned_before(lu, owner, block) + (block == lu->panels ? 0 : j - block * lu->nb);
    return lu->columns[owner].blocks + local * lu->lda;
}

int lu_init(struct lu *lu, size_t n, size_t nb, unsigned threads, unsigned spins)
{
    *lu = (struct lu){.n = n,
                      .nb = nb,
                      .lda = matrix_leading_dimension(n, sizeof(double)),
                      .panels = (n + nb - 1) / nb,
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
        barrier_init(&column->barrier, lu->grid_rows, spins);
        column->candidates =
            aligned_alloc(_Alignof(struct candidate), lu->grid_rows * sizeof *column->candidates);
        if (!column->candidates)
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
    for (unsigned q = 0; lu->columns && q < lu->grid_columns; q++)
        free(lu->columns[q].candidates);
    free(lu->columns);
    free(lu->pivots);
    free(lu->x);
    *lu = (struct lu){0};
}

/* ---- panel ---------------------------------------------------------------------------------- */

/* The panel a column of the grid is factoring: `a` is its first column, from the matrix's first
 * row on; `top` its first row. */
struct panel {
    double *a;
    size_t top;
    struct share rows; /* of this thread */
};

static bool meet_column(const struct member *me)
{
    return me->lu->grid_rows == 1 || barrier_wait_unless(&me->own->barrier, me->lu->stopping);
}

static double *at(const struct lu *lu, double *a, size_t row, size_t column)
{
    return a + column * lu->lda + row;
}

/* Makes the swaps of the rows `first` to `end` - 1 in `count` columns. */
static void swap_rows(const struct member *me, double *a, size_t count, size_t first, size_t end)
{
    int columns = (int)count, lda = (int)me->lu->lda, from = (int)first + 1, to = (int)end,
        step = 1;
    if (count > 0)
        me->blas->dlaswp(&columns, a, &lda, &from, &to, me->lu->pivots, &step);
}

static struct share rows_below(const struct panel *panel, size_t row)
{
    struct share rows = panel->rows;
    rows.first = rows.first > row ? rows.first : row;
    rows.end = rows.end > rows.first ? rows.end : rows.first;
    return rows;
}

static void propose_pivot(const struct member *me, const struct panel *panel, size_t j)
{
    const struct lu *lu = me->lu;
    struct share rows = rows_below(panel, panel->top + j);
    struct candidate *mine = &me->own->candidates[me->row];
    *mine = (struct candidate){.magnitude = -1, .row = panel->top + j};
    if (rows.first == rows.end)
        return;
    const double *column = at(lu, panel->a, rows.first, j);
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

static void swap_in_leaf(struct lu *lu, const struct panel *panel, size_t row, size_t pivot,
                         struct share leaf)
{
    lu->pivots[row] = (int)pivot + 1;
    for (size_t j = leaf.first; j < leaf.end && pivot != row; j++) {
        double kept = *at(lu, panel->a, row, j);
        *at(lu, panel->a, row, j) = *at(lu, panel->a, pivot, j);
        *at(lu, panel->a, pivot, j) = kept;
    }
}

/* Divides the column by its pivot and takes its share out of the rest of the leaf. */
static void eliminate(const struct member *me, const struct panel *panel, size_t j,
                      struct share leaf)
{
    struct lu *lu = me->lu;
    struct share rows = rows_below(panel, panel->top + j + 1);
    int count = (int)(rows.end - rows.first), rest = (int)(leaf.end - j - 1);
    double pivot = *at(lu, panel->a, panel->top + j, j);
    if (pivot == 0)
        atomic_store(&lu->singular, true);
    else if (count > 0)
        me->blas->dscal(count, 1 / pivot, at(lu, panel->a, rows.first, j), 1);
    if (count > 0 && rest > 0)
        me->blas->dger(COLUMN_MAJOR, count, rest, -1, at(lu, panel->a, rows.first, j), 1,
                       at(lu, panel->a, panel->top + j, j + 1), (int)lu->lda,
                       at(lu, panel->a, rows.first, j + 1), (int)lu->lda);
}

static bool factor_leaf(const struct member *me, const struct panel *panel, struct share leaf)
{
    for (size_t j = leaf.first; j < leaf.end; j++) {
        propose_pivot(me, panel, j);
        if (!meet_column(me))
            return false;
        size_t pivot = chosen_pivot(me);
        if (me->row == 0)
            swap_in_leaf(me->lu, panel, panel->top + j, pivot, leaf);
        if (!meet_column(me))
            return false;
        eliminate(me, panel, j, leaf);
    }
    return meet_column(me);
}

/* Brings `right`, the columns behind `left`, to where `left` is: swaps and triangular solution by
 * columns, multiplication by rows. */
static bool update_in_panel(const struct member *me, const struct panel *panel, struct share left,
                            struct share right)
{
    struct lu *lu = me->lu;
    size_t width = left.end - left.first, top = panel->top + left.first;
    struct share mine = share_of(right.end - right.first, me->row, lu->grid_rows);
    size_t first = right.first + mine.first, count = mine.end - mine.first;
    swap_rows(me, at(lu, panel->a, 0, first), count, top, top + width);
    if (count > 0)
        me->blas->dtrsm(COLUMN_MAJOR, LEFT, LOWER, NO_TRANSPOSE, UNIT, (int)width, (int)count, 1,
                        at(lu, panel->a, top, left.first), (int)lu->lda,
                        at(lu, panel->a, top, first), (int)lu->lda);
    if (!meet_column(me))
        return false;
    struct share rows = rows_below(panel, top + width);
    if (rows.end > rows.first)
        me->blas->dgemm(COLUMN_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, (int)(rows.end - rows.first),
                        (int)(right.end - right.first), (int)width, -1,
                        at(lu, panel->a, rows.first, left.first), (int)lu->lda,
                        at(lu, panel->a, top, right.first), (int)lu->lda, 1,
                        at(lu, panel->a, rows.first, right.first), (int)lu->lda);
    return true;
}

/* Factors a range of the panel's columns, halving it down to leaves, so that most of the work is
 * matrix multiplication (Toledo, SIAM J. Matrix Anal. Appl. 18(4), 1997). */
static bool factor_columns(const struct member *me, const struct panel *panel, struct share range)
{
    struct lu *lu = me->lu;
    if (range.end - range.first <= LEAF)
        return factor_leaf(me, panel, range);
    size_t half = (range.end - range.first) / 2;
    half = (half + LEAF - 1) / LEAF * LEAF;
    struct share left = {range.first, range.first + half}, right = {left.end, range.end};
    if (!factor_columns(me, panel, left) || !update_in_panel(me, panel, left, right) ||
        !factor_columns(me, panel, right))
        return false;
    struct share mine = share_of(half, me->row, lu->grid_rows);
    swap_rows(me, at(lu, panel->a, 0, left.first + mine.first), mine.end - mine.first,
              panel->top + right.first, panel->top + right.end);
    return meet_column(me);
}

static void factor_alone(const struct member *me, const struct panel *panel, size_t width)
{
    struct lu *lu = me->lu;
    int m = (int)(lu->n - panel->top), columns = (int)width, lda = (int)lu->lda, info;
    int *pivots = lu->pivots + panel->top;
    me->blas->dgetrf(&m, &columns, panel->a + panel->top, &lda, pivots, &info);
    for (size_t i = 0; i < width; i++)
        pivots[i] += (int)panel->top;
    if (info)
        atomic_store(&lu->singular, true);
}

static bool factor_panel(const struct member *me, size_t panel_index)
{
    struct lu *lu = me->lu;
    size_t top = panel_index * lu->nb;
    struct panel panel = {.a = lu_column(lu, top), .top = top};
    struct share part = share_of(lu->n - top, me->row, lu->grid_rows);
    panel.rows = (struct share){top + part.first, top + part.end};
    if (lu->grid_rows == 1)
        factor_alone(me, &panel, panel_width(lu, panel_index));
    else if (!factor_columns(me, &panel, (struct share){0, panel_width(lu, panel_index)}))
        return false;
    if (me->row == 0) {
        atomic_store(&lu->factored, (unsigned)panel_index + 1);
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
    const double *factors = lu_column(lu, top);
    if (range.first == range.end)
        return true;
    struct share mine = share_of(range.end - range.first, me->row, lu->grid_rows);
    double *a = me->own->blocks + (range.first + mine.first) * lu->lda;
    swap_rows(me, a, mine.end - mine.first, top, below);
    if (mine.end > mine.first)
        me->blas->dtrsm(COLUMN_MAJOR, LEFT, LOWER, NO_TRANSPOSE, UNIT, (int)width,
                        (int)(mine.end - mine.first), 1, factors + top, (int)lu->lda, a + top,
                        (int)lu->lda);
    if (!meet_column(me))
        return false;
    struct share rows = share_of(lu->n - below, me->row, lu->grid_rows);
    a = me->own->blocks + range.first * lu->lda;
    if (rows.end > rows.first)
        me->blas->dgemm(COLUMN_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, (int)(rows.end - rows.first),
                        (int)(range.end - range.first), (int)width, -1,
                        factors + below + rows.first, (int)lu->lda, a + top, (int)lu->lda, 1,
                        a + below + rows.first, (int)lu->lda);
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

/* U x = y, block by block from the last one up: the first thread solves a block's triangle, all
 * take its share out of the rows above. */
static void substitute_back(const struct member *me)
{
    struct lu *lu = me->lu;
    if (!barrier_wait_unless(&lu->barrier, lu->stopping))
        return;
    if (me->thread == 0)
        memcpy(lu->x, lu_column(lu, lu->n), lu->n * sizeof *lu->x);
    for (size_t panel = lu->panels; panel-- > 0;) {
        size_t top = panel * lu->nb;
        int width = (int)panel_width(lu, panel);
        const double *block = lu_column(lu, top);
        if (me->thread == 0)
            me->blas->dtrsv(COLUMN_MAJOR, UPPER, NO_TRANSPOSE, NON_UNIT, width, block + top,
                            (int)lu->lda, lu->x + top, 1);
        if (!barrier_wait_unless(&lu->barrier, lu->stopping))
            return;
        struct share rows = share_of(top, me->thread, lu->grid_rows * lu->grid_columns);
        if (rows.end > rows.first)
            me->blas->dgemv(COLUMN_MAJOR, NO_TRANSPOSE, (int)(rows.end - rows.first), width, -1,
                            block + rows.first, (int)lu->lda, lu->x + top, 1, 1, lu->x + rows.first,
                            1);
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
