/* The bulk loop of kernels that only compute: fma, int_add, int_mul_add, dp4a. */
#ifndef GPU_BENCH_COMPUTE_H
#define GPU_BENCH_COMPUTE_H

#include "gpu.h"

/* Agreed with the kernels (vector.k, vector_check.h): a kernel of this family is named
 * WORKLOAD_DTYPE (fma_fp32, int_add_int64, dp4a_int8) and has the arguments
 *   0  state: chains x work-items values, chain c of work-item i at [c * items + i]; the kernel loads
 *      its chains from it, does `iterations`, and stores them: iterations of all launches add up
 *   1  clocks: 4 unsigned 64-bit words a slot: core cycles and nanoseconds of the device at begin
 *      and end, by one work-item of one group; left alone where the device has no such clocks
 *   2  uint32 iterations
 *   3  uint32 slot of clocks
 * The host uploads the state that vector_start() makes, and vector_check() holds what it downloads
 * against `iterations` in total, every chain of every work-item. */
enum { CLOCK_SLOTS = 4096, CLOCK_WORDS = 4 };

extern const struct gpu_kind fma_kind, int_add_kind, int_mul_add_kind, dp4a_kind;

#endif
