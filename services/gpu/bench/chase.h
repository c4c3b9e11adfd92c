/* pointer_chase: one work-item follows pointers, each load telling where the next one goes. */
#ifndef GPU_BENCH_CHASE_H
#define GPU_BENCH_CHASE_H

#include "gpu.h"

enum {
    /* A cache line of NVIDIA's and AMD's GPUs: no two loads share one. */
    CHASE_NODE_BYTES = 128,
};

extern const struct gpu_kind chase_kind;

#endif
