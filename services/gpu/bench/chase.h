/* pointer_chase: one work-item follows pointers, each load telling where the next one goes. */
#ifndef GPU_BENCH_CHASE_H
#define GPU_BENCH_CHASE_H

#include "gpu.h"

extern const struct gpu_kind chase_kind;

#endif
