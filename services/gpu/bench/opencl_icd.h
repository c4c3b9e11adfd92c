/* The files by which OpenCL's loader finds drivers, to say why it found none. */
#ifndef GPU_BENCH_OPENCL_ICD_H
#define GPU_BENCH_OPENCL_ICD_H

#include <stddef.h>

/* "/etc/OpenCL/vendors has no .icd file", "nvidia.icd names libnvidia-opencl.so.1, which cannot be
 * loaded (…)"; "" when each file names a library that can be. */
void opencl_icd_describe(char *text, size_t size);

#endif
