/* The tensor kernels: their instructions, and where each element of their operands and accumulators
 * stands. A group computes D = A B^T in tiles: rows of D are rows of A, columns of D are rows of B, and
 * a row of either has steps x k elements, which the kernel goes through once a round. */
#ifndef GPU_BENCH_TENSOR_SHAPES_H
#define GPU_BENCH_TENSOR_SHAPES_H

#include "element.h"

#include <stddef.h>
#include <stdint.h>

enum tensor_instruction { TENSOR_MMA, TENSOR_WGMMA, TENSOR_TCGEN05 };

/* Arguments of all kernels: memory operands, memory results, memory hashes (a u32 a thread, which each
 * launch adds to), u32 passes, u32 rounds of a pass, memory record, u32 slot (kernel_set.h). */
struct tensor_kernel {
    const char *name;  /* of the kernel */
    const char *dtype; /* of the parameter */
    enum element_type type;
    enum tensor_instruction instruction;
    unsigned m, n, k;          /* of one product */
    unsigned products;         /* of one instruction */
    unsigned tiles_m, tiles_n; /* of a crew; each with its accumulators */
    unsigned steps;            /* different slices of operands, each k elements deep */
    unsigned crew;             /* threads that issue an instruction together */
    unsigned threads;          /* of a group: one crew or more */
    unsigned groups_per_unit;  /* on a multiprocessor at a time */
    unsigned shared_bytes; /* dynamic ones: of the operands, aligned; 0: they are in registers */
};

/* For one data type the one to be preferred comes first; the last has name NULL. */
extern const struct tensor_kernel tensor_kernels[];

/* "mma", "wgmma", "tcgen05" */
const char *tensor_instruction_name(enum tensor_instruction instruction);

/* Bytes of an element of an operand, and of an accumulator. */
unsigned tensor_element_bytes(const struct tensor_kernel *kernel);
unsigned tensor_result_bytes(const struct tensor_kernel *kernel);

/* Rows of A and of B that one crew has, elements of such a row, crews of a group. */
unsigned tensor_a_rows(const struct tensor_kernel *kernel);
unsigned tensor_b_rows(const struct tensor_kernel *kernel);
unsigned tensor_depth(const struct tensor_kernel *kernel);
unsigned tensor_crews(const struct tensor_kernel *kernel);

/* Bytes of the operands; they are the same for all groups. */
size_t tensor_operand_bytes(const struct tensor_kernel *kernel);
/* Where an element stands in them, in bytes. */
size_t tensor_a_offset(const struct tensor_kernel *kernel, unsigned crew, unsigned row,
                       unsigned element);
size_t tensor_b_offset(const struct tensor_kernel *kernel, unsigned crew, unsigned row,
                       unsigned element);

/* Accumulators of a thread, and of a group. */
unsigned tensor_values(const struct tensor_kernel *kernel);
unsigned tensor_group_values(const struct tensor_kernel *kernel);
/* Index of a thread's accumulator among the results of all groups. */
size_t tensor_result_index(const struct tensor_kernel *kernel, unsigned group, unsigned thread,
                           unsigned value);

struct tensor_place {
    unsigned a_row, b_row; /* of the thread's crew */
};

/* What a thread's accumulator is the product of. */
struct tensor_place tensor_place(const struct tensor_kernel *kernel, unsigned thread,
                                 unsigned value);

/* Multiplications and additions of a group in one round. */
double tensor_operations(const struct tensor_kernel *kernel);

#endif
