/* The kernels that only compute: fma, int_add, int_mul_add, dp4a (kernels/vector.k). */
#ifndef GPU_BENCH_COMPUTE_H
#define GPU_BENCH_COMPUTE_H

#include "gpu.h"

extern const struct gpu_kind fma_kind, int_add_kind, int_mul_add_kind, dp4a_kind;

#endif
