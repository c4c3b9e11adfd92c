/* Queues, events, and what is queued: launches, copies, fills. */
#ifndef GPU_BENCH_OPENCL_QUEUE_H
#define GPU_BENCH_OPENCL_QUEUE_H

#include "device.h"

/* Whether nothing is under way in any queue, after some patience; false: from now on nothing is
 * released. */
bool opencl_comes_to_rest(struct gpu *gpu);
int opencl_queue(struct gpu *gpu, struct gpu_queue **queue);
void opencl_release_queue(struct gpu_queue *queue);
int opencl_event(struct gpu *gpu, struct gpu_event **event);
void opencl_release_event(struct gpu_event *event);
int opencl_launch(struct gpu_queue *queue, const struct gpu_launch *launch, struct gpu_event *begin,
                  struct gpu_event *end);
int opencl_copy(struct gpu_queue *queue, const struct gpu_copy *copy, struct gpu_event *begin,
                struct gpu_event *end);
int opencl_fill(struct gpu_queue *queue, const struct gpu_memory *memory, uint64_t offset,
                uint64_t bytes, uint32_t word);
int opencl_record(struct gpu_queue *queue, struct gpu_event *event);
int opencl_done(const struct gpu_event *event, bool *done);
int opencl_elapsed(const struct gpu_event *from, const struct gpu_event *to, double *seconds);
int opencl_finish(struct gpu_queue *queue);

#endif
