/* The reason of a trial that ends because a driver's call failed. */
#ifndef GPU_BENCH_FAILURE_H
#define GPU_BENCH_FAILURE_H

#include "device.h"

/* One line: the call, its code by number and name, what that means and the remedy. Gives exit_code
 * back. `code_name` may be NULL. */
int gpu_fail(struct gpu *gpu, int exit_code, const char *call, long code, const char *code_name,
             const char *format, ...) __attribute__((format(printf, 6, 7)));

#endif
