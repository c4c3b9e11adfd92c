/* read, write, copy and triad: kernels, or the driver's own copy, that go over arrays in the device's
 * memory from one end to the other. */
#ifndef GPU_BENCH_STREAM_H
#define GPU_BENCH_STREAM_H

#include "gpu.h"

struct stream_kind {
    struct gpu_kind kind; /* what the table has; first, so that it leads back here. Its name is the
                             kernel's */
    unsigned arrays;      /* that a pass reads or writes, each once */
    unsigned groups;      /* of its kernel, for each tile of KERNEL_TILE_BYTES */
};

extern const struct stream_kind stream_read, stream_write, stream_copy, stream_triad;

#endif
