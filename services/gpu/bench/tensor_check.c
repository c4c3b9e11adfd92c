#include "tensor_check.h"

#include "random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bits of a sum that an accumulator keeps at the least. FP8 on 9.0 adds with 14 (DeepSeek-V3 Technical
 * Report, section 3.3.2), here one less; what other architectures do with it is not published, so all
 * are held to that. */
static int kept_bits(enum element_type type)
{
    return type == ELEMENT_FP64 ? 52 : type == ELEMENT_FP8 ? 13 : type == ELEMENT_INT8 ? 31 : 24;
}

enum { EXACT_MOST = 3 }; /* the largest operand of an exact pass */

unsigned tensor_rounds(const struct tensor_kernel *kernel, enum tensor_operands which)
{
    return which == TENSOR_EXACT || kernel->type == ELEMENT_FP8 ? 64 : 128;
}

/* ---- operands ------------------------------------------------------------------------------- */

static double number(const struct tensor_kernel *kernel, enum tensor_operands which,
                     uint64_t *state)
{
    if (which == TENSOR_EXACT)
        return random_whole(state, kernel->type == ELEMENT_FP8 ? 1 : EXACT_MOST);
    return kernel->type == ELEMENT_INT8 ? random_whole(state, 127) : random_normal(state);
}

void tensor_fill(const struct tensor_kernel *kernel, enum tensor_operands which, void *operands)
{
    uint64_t state = 0x74656e736f72 + which; /* "tensor" */
    unsigned char *to = operands;
    for (unsigned crew = 0; crew < tensor_crews(kernel); crew++) {
        for (unsigned row = 0; row < tensor_a_rows(kernel); row++)
            for (unsigned i = 0; i < tensor_depth(kernel); i++)
                element_encode(kernel->type, to + tensor_a_offset(kernel, crew, row, i),
                               number(kernel, which, &state));
        for (unsigned row = 0; row < tensor_b_rows(kernel); row++)
            for (unsigned i = 0; i < tensor_depth(kernel); i++)
                element_encode(kernel->type, to + tensor_b_offset(kernel, crew, row, i),
                               number(kernel, which, &state));
    }
}

/* ---- the host's product --------------------------------------------------------------------- */

typedef size_t (*offset_function)(const struct tensor_kernel *, unsigned crew, unsigned row,
                                  unsigned element);

/* [crew][row][element] */
static double *decode_all(const struct tensor_kernel *kernel, offset_function offset, unsigned rows,
                          const void *operands)
{
    unsigned depth = tensor_depth(kernel);
    double *numbers = calloc((size_t)tensor_crews(kernel) * rows * depth, sizeof *numbers);
    if (!numbers)
        return NULL;
    double *to = numbers;
    for (unsigned crew = 0; crew < tensor_crews(kernel); crew++)
        for (unsigned row = 0; row < rows; row++)
            for (unsigned i = 0; i < depth; i++)
                *to++ = element_decode(kernel->type, (const unsigned char *)operands +
                                                         offset(kernel, crew, row, i));
    return numbers;
}

static double dot(const double *a, const double *b, unsigned count)
{
    double sum = 0;
    for (unsigned i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* An instruction lines its products up with the largest of them and of the sum, and cuts off what lies
 * below the bits that it keeps: of a sum of some ten to thirty numbers, not of each addition (Fasi,
 * Higham, Mikaitis, Pranesh 2021). So five bits more may be wrong each time. The few bits of FP8 are
 * soon used up; what it computes is checked by the exact pass. */
static double tolerance_of(const struct tensor_kernel *kernel, enum tensor_operands which,
                           double largest, unsigned rounds)
{
    int bits = kept_bits(kernel->type);
    if (which == TENSOR_EXACT &&
        largest + tensor_depth(kernel) * EXACT_MOST * EXACT_MOST >= ldexp(1, bits))
        return NAN;
    if (which == TENSOR_EXACT || kernel->type == ELEMENT_INT8)
        return 0;
    if (kernel->type == ELEMENT_FP8)
        return largest / 2;
    return ldexp(largest, 5 - bits) * rounds * kernel->steps;
}

bool tensor_expect(struct tensor_expected *expected, const struct tensor_kernel *kernel,
                   enum tensor_operands which, const void *operands)
{
    unsigned rounds = tensor_rounds(kernel, which);
    unsigned values = tensor_values(kernel), depth = tensor_depth(kernel);
    unsigned a_rows = tensor_a_rows(kernel), b_rows = tensor_b_rows(kernel);
    double *a = decode_all(kernel, tensor_a_offset, a_rows, operands);
    double *b = decode_all(kernel, tensor_b_offset, b_rows, operands);
    expected->kernel = kernel;
    expected->values = calloc(tensor_group_values(kernel), sizeof *expected->values);
    double largest = 0;
    bool made = a && b && expected->values;
    for (unsigned thread = 0; made && thread < kernel->threads; thread++)
        for (unsigned value = 0; value < values; value++) {
            struct tensor_place place = tensor_place(kernel, thread, value);
            size_t crew = thread / kernel->crew;
            double sum = rounds * dot(a + (crew * a_rows + place.a_row) * depth,
                                      b + (crew * b_rows + place.b_row) * depth, depth);
            expected->values[thread * values + value] = sum;
            largest = fmax(largest, fabs(sum));
        }
    if (made)
        expected->tolerance = tolerance_of(kernel, which, largest, rounds);
    free(a);
    free(b);
    return made;
}

void tensor_expected_release(struct tensor_expected *expected)
{
    free(expected->values);
    expected->values = NULL;
}

/* ---- what was left -------------------------------------------------------------------------- */

static double result_at(const struct tensor_kernel *kernel, const void *results, size_t index)
{
    if (kernel->type == ELEMENT_FP64)
        return ((const double *)results)[index];
    if (kernel->type == ELEMENT_INT8)
        return ((const int32_t *)results)[index];
    return (double)((const float *)results)[index];
}

/* As tensor_hash() of the kernels. */
static uint32_t hash_at(const struct tensor_kernel *kernel, const void *results, size_t index,
                        unsigned value)
{
    uint32_t weight = 2 * value + 1;
    if (tensor_result_bytes(kernel) == 4)
        return ((const uint32_t *)results)[index] * weight;
    uint64_t bits = ((const uint64_t *)results)[index];
    return ((uint32_t)bits ^ (uint32_t)(bits >> 32)) * weight;
}

static bool check_values(const struct tensor_expected *expected, const void *results,
                         unsigned group, unsigned thread, struct tensor_mismatch *first)
{
    const struct tensor_kernel *kernel = expected->kernel;
    unsigned values = tensor_values(kernel), bytes = tensor_result_bytes(kernel);
    for (unsigned value = 0; value < values; value++) {
        size_t index = tensor_result_index(kernel, group, thread, value);
        size_t in_first = tensor_result_index(kernel, 0, thread, value);
        double found = result_at(kernel, results, index);
        double wanted = expected->values[thread * values + value];
        bool near = fabs(found - wanted) <= expected->tolerance; /* of NaN: false */
        bool same = !memcmp((const char *)results + index * bytes,
                            (const char *)results + in_first * bytes, bytes);
        if (near && same)
            continue;
        first->value = value;
        if (near)
            snprintf(first->what, sizeof first->what,
                     "is %.9g, but %.9g in group 0 from the same operands", found,
                     result_at(kernel, results, in_first));
        else
            snprintf(first->what, sizeof first->what, "is %.9g instead of %.9g (to %.3g)", found,
                     wanted, expected->tolerance);
        return false;
    }
    return true;
}

static bool check_hash(const struct tensor_kernel *kernel, const void *results,
                       const uint32_t *hashes, unsigned group, unsigned thread, uint64_t passes,
                       struct tensor_mismatch *first)
{
    uint32_t of_a_pass = 0;
    for (unsigned value = 0; value < tensor_values(kernel); value++)
        of_a_pass +=
            hash_at(kernel, results, tensor_result_index(kernel, group, thread, value), value);
    uint32_t wanted = of_a_pass * (uint32_t)passes;
    uint32_t found = hashes[(size_t)group * kernel->threads + thread];
    if (found == wanted)
        return true;
    first->value = 0;
    snprintf(first->what, sizeof first->what,
             "was not the same at the end of each of %llu passes: their hashes add up to %#x"
             " instead of %#x",
             (unsigned long long)passes, found, wanted);
    return false;
}

bool tensor_check(const struct tensor_expected *expected, const void *results,
                  const uint32_t *hashes, unsigned groups, uint64_t passes,
                  struct tensor_mismatch *first)
{
    const struct tensor_kernel *kernel = expected->kernel;
    for (unsigned group = 0; group < groups; group++)
        for (unsigned thread = 0; thread < kernel->threads; thread++) {
            first->group = group;
            first->thread = thread;
            if (!check_values(expected, results, group, thread, first) ||
                !check_hash(kernel, results, hashes, group, thread, passes, first))
                return false;
        }
    return true;
}
