/* peer_to_peer: copies from one device's memory to another's, without the host. */
#ifndef GPU_BENCH_PEERS_H
#define GPU_BENCH_PEERS_H

#include "gpu.h"

extern const struct gpu_kind peer_kind;

#endif
