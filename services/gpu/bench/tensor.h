/* tensor: the rate of the tensor cores' pipe, operands in registers or shared memory. No matrix product
 * of a program reaches it: gemm is the one that counts there. */
#ifndef GPU_BENCH_TENSOR_H
#define GPU_BENCH_TENSOR_H

#include "gpu.h"

extern const struct gpu_kind tensor_kind;

#endif
