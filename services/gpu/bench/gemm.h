/* gemm: square matrix products by cuBLASLt, where that library is installed: the rate of a library that
 * people use, beside the rate of the pipe (tensor). */
#ifndef GPU_BENCH_GEMM_H
#define GPU_BENCH_GEMM_H

#include "gpu.h"

extern const struct gpu_kind gemm_kind;

/* Names the library for the start event. */
void gemm_resolve(struct run *run);

#endif
