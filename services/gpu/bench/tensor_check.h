/* Operands of the tensor kernels, and what the kernels must have left. */
#ifndef GPU_BENCH_TENSOR_CHECK_H
#define GPU_BENCH_TENSOR_CHECK_H

#include "tensor_shapes.h"

#include <stdbool.h>

enum tensor_operands {
    /* What is timed: normally distributed numbers with all their bits (of int8 all values alike),
     * since the power that a pipe takes, and with it the clock, depends on the bits that change. */
    TENSOR_RANDOM,
    /* Small whole numbers, whose sums are all exact: they show that the product is right. */
    TENSOR_EXACT,
};

/* Rounds of a pass. A pass begins with accumulators of zero, so sums stay bounded however long a
 * launch is; it is long beside the time in which its accumulators are hashed. */
unsigned tensor_rounds(const struct tensor_kernel *kernel, enum tensor_operands which);

/* What the accumulators of one group, and so of each, hold at the end of a pass. */
struct tensor_expected {
    const struct tensor_kernel *kernel;
    double *values;   /* [thread * tensor_values() + value] */
    double tolerance; /* of each; 0: exact; NaN: an exact pass of sums too large to be exact */
};

/* Fills tensor_operand_bytes(). The same every time. */
void tensor_fill(const struct tensor_kernel *kernel, enum tensor_operands which, void *operands);

/* false: no memory. To be released in either case. */
bool tensor_expect(struct tensor_expected *expected, const struct tensor_kernel *kernel,
                   enum tensor_operands which, const void *operands);
void tensor_expected_release(struct tensor_expected *expected);

struct tensor_mismatch {
    unsigned group, thread, value;
    char what[160]; /* one line: expected and found */
};

/* Every accumulator of every group after the last pass, and by the hashes of all `passes` since those
 * were zero. False: `first` is the first wrong one. */
bool tensor_check(const struct tensor_expected *expected, const void *results,
                  const uint32_t *hashes, unsigned groups, uint64_t passes,
                  struct tensor_mismatch *first);

#endif
