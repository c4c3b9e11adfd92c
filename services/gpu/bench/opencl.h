/* The parts of the OpenCL backend share this; the rest of the program knows opencl_backend only. */
#ifndef GPU_BENCH_OPENCL_H
#define GPU_BENCH_OPENCL_H

#include "device.h"
#include "opencl_api.h"

/* gpu->own. */
struct opencl_gpu {
    const struct opencl *cl;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;        /* for what the backend does itself, never measured */
    struct opencl_stream *streams; /* the queues of this trial, linked */
    uint64_t taken_bytes;          /* of the device's memory, by this trial */
    /* Nothing is released any more: work does not end, and a release would wait for it, or the device
     * failed at work, and its driver may crash or hang. The process ends soon. */
    bool abandoned;
};

static inline struct opencl_gpu *opencl_of(const struct gpu *gpu)
{
    return gpu->own;
}

/* A device that was listed, by its ordinal. */
cl_device_id opencl_device(int ordinal);

/* What was under way when a call failed: it decides what the error means. */
enum opencl_stage { STAGE_OPEN, STAGE_MEMORY, STAGE_BUILD, STAGE_WORK };

/* gpu_fail() with the name, the meaning, the remedy and the exit_code of an error. */
int opencl_fail(struct gpu *gpu, enum opencl_stage stage, const char *call, cl_int error);
/* The calloc() of an object. NULL: gpu_fail() was told. */
void *opencl_object(struct gpu *gpu, size_t size);

/* ---- opencl_list.c -------------------------------------------------------------------------- */

void opencl_list(struct gpu_list *list, char looked[GPU_LOOKED_MAX]);

/* ---- opencl_memory.c ------------------------------------------------------------------------ */

int opencl_memory(struct gpu *gpu, uint64_t bytes, struct gpu_memory **memory);
void opencl_release_memory(struct gpu_memory *memory);
int opencl_free_memory(struct gpu *gpu, uint64_t *bytes);
int opencl_host_memory(struct gpu *gpu, uint64_t bytes, bool pinned,
                       struct gpu_host_memory **memory);
void opencl_release_host_memory(struct gpu_host_memory *memory);

static inline cl_mem opencl_buffer(const struct gpu_memory *memory)
{
    return (cl_mem)(uintptr_t)memory->handle;
}

/* ---- opencl_kernel.c ------------------------------------------------------------------------ */

/* kernel->own. */
struct opencl_built {
    cl_program program;
    cl_kernel kernel;
};

int opencl_kernel(struct gpu *gpu, const char *name, struct gpu_kernel **kernel);
void opencl_release_kernel(struct gpu_kernel *kernel);

/* ---- opencl_queue.c ------------------------------------------------------------------------- */

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
