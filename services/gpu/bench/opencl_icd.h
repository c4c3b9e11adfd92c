/* The files by which OpenCL's loader finds drivers, to say why it found none. */
#ifndef GPU_BENCH_OPENCL_ICD_H
#define GPU_BENCH_OPENCL_ICD_H

#include <stdbool.h>
#include <stddef.h>

/* "/etc/OpenCL/vendors has no .icd file", "nvidia.icd names a driver that cannot be loaded (…)"; ""
 * when all is well. `none`: the loader found no platform at all, so drivers that can be loaded are
 * named too. `size` is at least 2. */
void opencl_icd_describe(bool none, char *text, size_t size);

#endif
