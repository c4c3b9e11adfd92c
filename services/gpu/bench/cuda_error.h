/* What a code of the CUDA driver means: its name, which exit code it leads to, and the remedy. */
#ifndef GPU_BENCH_CUDA_ERROR_H
#define GPU_BENCH_CUDA_ERROR_H

#include "cuda_api.h"
#include "device.h"

/* CUDA_ERROR_OUT_OF_MEMORY; of a code that the driver has no name for, or without one: NULL. */
const char *cuda_error_name(const struct cuda_api *api, int code);
/* In one line, without the name. */
const char *cuda_error_text(int code);
/* By gpu_fail(); the exit_code. */
int cuda_error(struct gpu *gpu, const struct cuda_api *api, const char *call, int code);
/* "cuInit: CUDA_ERROR_NO_DEVICE (100): …", where there is no trial yet. */
void cuda_error_line(const struct cuda_api *api, const char *call, int code, char *line,
                     size_t size);

#endif
