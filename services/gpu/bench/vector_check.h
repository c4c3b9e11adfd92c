/* The vector kernels from the host's side: their operands, and what they must have left. */
#ifndef GPU_VECTOR_CHECK_H
#define GPU_VECTOR_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the operands' buffer, for every vector kernel. */
enum { VECTOR_OPERAND_BYTES = 1024 };

struct vector_kernel {
    const char *name;         /* of the kernel: "fma_fp32" */
    const char *workload;     /* "fma" */
    const char *dtype;        /* "fp32"; "int8" of dp4a */
    unsigned results;         /* values a work-item leaves */
    unsigned result_bytes;    /* of one of them */
    double operations;        /* of a work-item in one iteration */
    uint32_t most_iterations; /* of one launch: beyond, a floating-point count would not be exact */
};

/* NULL: no such kernel. */
const struct vector_kernel *vector_kernel(const char *workload, const char *dtype);

/* Bytes of the results of so many work-items. */
size_t vector_result_bytes(const struct vector_kernel *kernel, size_t work_items);

/* Fills VECTOR_OPERAND_BYTES; they are the same for every launch of the kernel. */
void vector_operands(const struct vector_kernel *kernel, void *operands);

struct vector_mismatch {
    size_t work_item;
    unsigned result;
    char expected[32];
    char found[32];
};

/* Every result of every work-item against its closed form. False: `first` is the first that differs. */
bool vector_check(const struct vector_kernel *kernel, const void *results, size_t work_items,
                  uint32_t iterations, struct vector_mismatch *first);

#endif
