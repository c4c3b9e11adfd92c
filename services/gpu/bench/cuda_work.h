/* What is queued: launches, copies, fills. */
#ifndef GPU_BENCH_CUDA_WORK_H
#define GPU_BENCH_CUDA_WORK_H

#include "device.h"

int cuda_launch(struct gpu_queue *queue, const struct gpu_launch *launch, struct gpu_event *begin,
                struct gpu_event *end);
int cuda_copy(struct gpu_queue *queue, const struct gpu_copy *copy, struct gpu_event *begin,
              struct gpu_event *end);
int cuda_fill(struct gpu_queue *queue, const struct gpu_memory *memory, uint64_t offset,
              uint64_t bytes, uint32_t word);
int cuda_record(struct gpu_queue *queue, struct gpu_event *event);
int cuda_peer(struct gpu *gpu, struct gpu *peer);
int cuda_peer_copy(struct gpu_queue *queue, const struct gpu_copy *copy, struct gpu_event *begin,
                   struct gpu_event *end);

#endif
