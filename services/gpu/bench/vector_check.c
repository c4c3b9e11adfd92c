#include "vector_check.h"

#include <stdio.h>
#include <string.h>

/* As vector.k has them. */
enum { ROWS = 4, ROW_OPERANDS = 32, FOLD_ITERATIONS = 128 };

/* A whole number of 2^24 is exact in fp32; chains begin at up to 15 and swing by less than 40. */
#define MOST_FP32 ((1u << 24) - 64)
/* What packed chains counted is an int. */
#define MOST_PACKED (1u << 30)

/* In the order of the documentation; the last has name NULL. */
static const struct vector_kernel vector_kernels[] = {
    {"fma_fp64", "fma", "fp64", 16, 8, 1024, UINT32_MAX},
    {"fma_fp32", "fma", "fp32", 16, 4, 1024, MOST_FP32},
    {"fma_fp16", "fma", "fp16", 32, 4, 2048, MOST_PACKED},
    {"fma_bf16", "fma", "bf16", 32, 4, 2048, MOST_PACKED},
    {"fma_fp32x2", "fma", "fp32x2", 16, 4, 1024, MOST_FP32},
    {"int_add_int32", "int_add", "int32", 16, 4, 1024, UINT32_MAX},
    {"int_add_int64", "int_add", "int64", 8, 8, 512, UINT32_MAX},
    {"int_mul_add_int32", "int_mul_add", "int32", 16, 4, 1024, UINT32_MAX},
    {"int_mul_add_int64", "int_mul_add", "int64", 8, 8, 256, UINT32_MAX},
    {"dp4a_int8", "dp4a", "int8", 16, 4, 4096, UINT32_MAX},
    {0},
};

const struct vector_kernel *vector_kernel(const char *workload, const char *dtype)
{
    for (const struct vector_kernel *kernel = vector_kernels; kernel->name; ++kernel)
        if (strcmp(kernel->workload, workload) == 0 && strcmp(kernel->dtype, dtype) == 0)
            return kernel;
    return NULL;
}

size_t vector_result_bytes(const struct vector_kernel *kernel, size_t work_items)
{
    return work_items * kernel->results * kernel->result_bytes;
}

/* ---- operands ---- */

static bool is(const struct vector_kernel *kernel, const char *workload)
{
    return strcmp(kernel->workload, workload) == 0;
}

/* Of a packed type: its operands and results are integers. */
static bool packed(const struct vector_kernel *kernel)
{
    return strcmp(kernel->dtype, "fp16") == 0 || strcmp(kernel->dtype, "bf16") == 0;
}

/* a, b, d of fma: a·b is 2, a·d is -1; and of packed types a fold: a·fold is -128. Again for the
   upper halves of pairs. */
static int fma_operand(unsigned row, unsigned k)
{
    const int sign = row % 2 ? -1 : 1;
    const int values[] = {sign, sign * 2, -sign, -sign * FOLD_ITERATIONS};
    return values[k % 4];
}

/* Of fp64, where vector.k has b and d, 4 and -2, in its code: a. */
static const double FMA_FP64_OPERAND = 0.5;

/* Of a packed type: eight numbers, then pairs of 1, 2, 1 and 128 as fp16 (8 to 11) and bfloat16. */
static uint32_t packed_operand(unsigned row, unsigned k)
{
    static const uint16_t bits[] = {0x3c00, 0x4000, 0x3c00, 0x5800, 0x3f80, 0x4000, 0x3f80, 0x4300};
    const int value = fma_operand(row, k);
    if (k < 8 || k >= 16)
        return (uint32_t)value;
    const uint32_t half = bits[k - 8] | (value < 0 ? 0x8000u : 0u);
    return half << 16 | half;
}

/* Bits of all positions, and different for each row. */
static uint64_t scattered(unsigned row, unsigned k)
{
    uint64_t bits = (row * ROW_OPERANDS + k + 1) * UINT64_C(0x9e3779b97f4a7c15);
    bits ^= bits >> 29;
    return bits * UINT64_C(0xbf58476d1ce4e5b9);
}

/* int_add: c, d, which vector.k has in its code. int_mul_add: m, c; with m = 5 modulo 8 and an odd c no state comes back before all
   others. dp4a: 8 a, 16 b, and a zero that no compiler knows. */
static uint64_t integer_operand(const struct vector_kernel *kernel, unsigned row, unsigned k)
{
    const uint64_t bits = scattered(row, k);
    if (is(kernel, "int_add") && kernel->result_bytes == 4)
        return k == 0 ? 0x9e3779b9u : 0x85ebca6bu;
    if (is(kernel, "int_add"))
        return k == 0 ? UINT64_C(0x9e3779b97f4a7c15) : UINT64_C(0xbf58476d1ce4e5b9);
    if (is(kernel, "int_mul_add"))
        return k == 0 ? (bits & ~UINT64_C(7)) | 5 : bits | 1;
    if (is(kernel, "dp4a") && k >= 24)
        return 0;
    return bits;
}

void vector_operands(const struct vector_kernel *kernel, void *operands)
{
    memset(operands, 0, VECTOR_OPERAND_BYTES);
    for (unsigned row = 0; row < ROWS; ++row) {
        for (unsigned k = 0; k < ROW_OPERANDS; ++k) {
            const unsigned at = row * ROW_OPERANDS + k;
            const int small = fma_operand(row, k);
            const uint64_t bits = integer_operand(kernel, row, k);
            if (!is(kernel, "fma") && kernel->result_bytes == 8)
                ((uint64_t *)operands)[at] = bits;
            else if (!is(kernel, "fma"))
                ((uint32_t *)operands)[at] = (uint32_t)bits;
            else if (packed(kernel))
                ((uint32_t *)operands)[at] = packed_operand(row, k);
            else if (kernel->result_bytes == 8)
                ((double *)operands)[at] = FMA_FP64_OPERAND;
            else
                ((float *)operands)[at] = (float)small;
        }
    }
}

/* ---- closed forms ----

   Modulo 2^64; of a 32-bit kernel the lower half is right, for nothing is ever shifted down. */

/* (x, y) → (xx·x + xy·y + x1, yx·x + yy·y + y1) */
struct affine {
    uint64_t xx, xy, x1, yx, yy, y1;
};

/* First f, then g. */
static struct affine after(struct affine g, struct affine f)
{
    return (struct affine){
        .xx = g.xx * f.xx + g.xy * f.yx,
        .xy = g.xx * f.xy + g.xy * f.yy,
        .x1 = g.xx * f.x1 + g.xy * f.y1 + g.x1,
        .yx = g.yx * f.xx + g.yy * f.yx,
        .yy = g.yx * f.xy + g.yy * f.yy,
        .y1 = g.yx * f.x1 + g.yy * f.y1 + g.y1,
    };
}

static struct affine times(struct affine step, uint64_t count)
{
    struct affine whole = {.xx = 1, .yy = 1};
    for (; count != 0; count /= 2) {
        if (count % 2)
            whole = after(step, whole);
        step = after(step, step);
    }
    return whole;
}

static uint64_t dot(uint32_t a, uint32_t b)
{
    int64_t sum = 0;
    for (int byte = 0; byte < 4; ++byte)
        sum += (int8_t)(a >> 8 * byte) * (int8_t)(b >> 8 * byte);
    return (uint64_t)sum;
}

/* What all work-items of a row have in common, once a check. */
struct row {
    struct affine whole; /* int_add, int_mul_add */
    uint64_t gain[16];   /* dp4a: of each chain */
};

static struct row integer_row(const struct vector_kernel *kernel, unsigned row, uint32_t iterations)
{
    struct row made = {0};
    const uint64_t first = integer_operand(kernel, row, 0);
    const uint64_t second = integer_operand(kernel, row, 1);
    if (is(kernel, "int_add")) {
        const struct affine x = {.xx = 1, .xy = 1, .x1 = first, .yy = 1};
        const struct affine y = {.xx = 1, .yx = 1, .yy = 1, .y1 = second};
        made.whole = times(after(y, x), UINT64_C(32) * iterations);
    } else if (is(kernel, "int_mul_add")) {
        const uint64_t rounds = kernel->result_bytes == 8 ? 16 : 32;
        made.whole = times((struct affine){.xx = first, .x1 = second}, rounds * iterations);
    } else {
        for (unsigned chain = 0; chain < 16; ++chain)
            for (unsigned r = 0; r < 8; ++r)
                made.gain[chain] += 4 * (uint64_t)iterations *
                                    dot((uint32_t)integer_operand(kernel, row, r),
                                        (uint32_t)integer_operand(kernel, row, 8 + chain));
    }
    return made;
}

/* Chains begin as 32-bit or 64-bit numbers: what wraps in one does not in the other. */
static uint64_t integer_first(size_t work_item, unsigned chain)
{
    return (uint64_t)(uint32_t)work_item * UINT64_C(2654435761) + chain * 40503 + 1;
}

static uint64_t integer_result(const struct vector_kernel *kernel, const struct row *row,
                               size_t work_item, unsigned result)
{
    const struct affine *whole = &row->whole;
    if (!is(kernel, "int_add")) {
        const uint64_t first = integer_first(work_item, result);
        return is(kernel, "dp4a") ? first + row->gain[result] : whole->xx * first + whole->x1;
    }
    const uint64_t x = integer_first(work_item, result & ~1u);
    const uint64_t y = integer_first(work_item, result | 1u);
    return result % 2 ? whole->yx * x + whole->yy * y + whole->y1
                      : whole->xx * x + whole->xy * y + whole->x1;
}

static int64_t fma_result(const struct vector_kernel *kernel, size_t work_item, unsigned result,
                          uint32_t iterations)
{
    return (int64_t)(((uint32_t)work_item + result) % kernel->results) + iterations;
}

/* ---- the check ---- */

static void note(struct vector_mismatch *first, size_t work_item, unsigned result, double expected,
                 double found)
{
    first->work_item = work_item;
    first->result = result;
    snprintf(first->expected, sizeof first->expected, "%.17g", expected);
    snprintf(first->found, sizeof first->found, "%.17g", found);
}

static void note_bits(struct vector_mismatch *first, size_t work_item, unsigned result,
                      uint64_t expected, uint64_t found)
{
    first->work_item = work_item;
    first->result = result;
    snprintf(first->expected, sizeof first->expected, "0x%llx", (unsigned long long)expected);
    snprintf(first->found, sizeof first->found, "0x%llx", (unsigned long long)found);
}

static bool check_fma(const struct vector_kernel *kernel, const void *results, size_t work_items,
                      uint32_t iterations, struct vector_mismatch *first)
{
    for (unsigned r = 0; r < kernel->results; ++r) {
        for (size_t i = 0; i < work_items; ++i) {
            const size_t at = r * work_items + i;
            const double expected = (double)fma_result(kernel, i, r, iterations);
            const double found = packed(kernel)              ? ((const int32_t *)results)[at]
                                 : kernel->result_bytes == 8 ? ((const double *)results)[at]
                                                             : ((const float *)results)[at];
            if (found == expected)
                continue;
            note(first, i, r, expected, found);
            return false;
        }
    }
    return true;
}

static bool check_integers(const struct vector_kernel *kernel, const void *results,
                           size_t work_items, uint32_t iterations, struct vector_mismatch *first)
{
    struct row rows[ROWS];
    for (unsigned row = 0; row < ROWS; ++row)
        rows[row] = integer_row(kernel, row, iterations);
    const uint64_t mask = kernel->result_bytes == 8 ? UINT64_MAX : UINT32_MAX;
    for (unsigned r = 0; r < kernel->results; ++r) {
        for (size_t i = 0; i < work_items; ++i) {
            const size_t at = r * work_items + i;
            const uint64_t expected = integer_result(kernel, &rows[i % ROWS], i, r) & mask;
            const uint64_t found = kernel->result_bytes == 8 ? ((const uint64_t *)results)[at]
                                                             : ((const uint32_t *)results)[at];
            if (found == expected)
                continue;
            note_bits(first, i, r, expected, found);
            return false;
        }
    }
    return true;
}

bool vector_check(const struct vector_kernel *kernel, const void *results, size_t work_items,
                  uint32_t iterations, struct vector_mismatch *first)
{
    return is(kernel, "fma") ? check_fma(kernel, results, work_items, iterations, first)
                             : check_integers(kernel, results, work_items, iterations, first);
}
