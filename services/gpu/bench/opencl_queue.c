#include "opencl_queue.h"

#include "monotonic.h"
#include "opencl_error.h"
#include "opencl_gpu.h"
#include "opencl_kernel.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

/* queue->own. */
struct opencl_stream {
    cl_command_queue queue;
    cl_event last; /* of the last command; NULL: there was none */
    struct opencl_stream *next;
};

/* How long the end of a trial waits for work that is still under way. */
static const double RELEASE_S = 0.5, LOOK_S = 1e-3;

static struct opencl_stream *stream_of(const struct gpu_queue *queue)
{
    return queue->own;
}

/* ---- queues ------------------------------------------------------------------------------------ */

int opencl_queue(struct gpu *gpu, struct gpu_queue **queue)
{
    struct opencl_gpu *own = opencl_of(gpu);
    cl_int error = CL_SUCCESS;
    *queue = NULL;
    struct gpu_queue *made = opencl_object(gpu, sizeof *made);
    struct opencl_stream *stream = opencl_object(gpu, sizeof *stream);
    if (made && stream)
        stream->queue = own->cl->clCreateCommandQueue(own->context, own->device,
                                                      CL_QUEUE_PROFILING_ENABLE, &error);
    if (!made || !stream || !stream->queue) {
        int code = made && stream ? opencl_fail(gpu, STAGE_OPEN, "clCreateCommandQueue", error)
                                  : EXIT_RESOURCE;
        free(made);
        free(stream);
        return code;
    }
    made->gpu = gpu;
    made->own = stream;
    stream->next = own->streams;
    own->streams = stream;
    *queue = made;
    return EXIT_OK;
}

/* `status`, where it is negative: the error it ended with. */
static cl_int status_of(const struct opencl *cl, cl_event event, cl_int *status)
{
    return cl->clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof *status, status,
                              NULL);
}

static bool under_way(const struct opencl_gpu *own)
{
    for (const struct opencl_stream *stream = own->streams; stream; stream = stream->next) {
        cl_int status = CL_COMPLETE;
        if (stream->last && !status_of(own->cl, stream->last, &status) && status > CL_COMPLETE)
            return true;
    }
    return false;
}

bool opencl_comes_to_rest(struct gpu *gpu)
{
    struct opencl_gpu *own = opencl_of(gpu);
    const struct timespec pause = {.tv_nsec = (long)(LOOK_S * 1e9)};
    for (double until_s = now_s() + RELEASE_S; !own->abandoned && under_way(own);) {
        own->abandoned = now_s() > until_s;
        nanosleep(&pause, NULL);
    }
    return !own->abandoned;
}

void opencl_release_queue(struct gpu_queue *queue)
{
    if (!queue)
        return;
    struct opencl_gpu *own = opencl_of(queue->gpu);
    struct opencl_stream *stream = stream_of(queue), **at = &own->streams;
    if (opencl_comes_to_rest(queue->gpu)) {
        if (stream->last)
            own->cl->clReleaseEvent(stream->last);
        own->cl->clReleaseCommandQueue(stream->queue);
    }
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    free(stream);
    free(queue);
}

/* ---- events ------------------------------------------------------------------------------------ */

int opencl_event(struct gpu *gpu, struct gpu_event **event)
{
    *event = opencl_object(gpu, sizeof **event);
    if (!*event)
        return EXIT_RESOURCE;
    (*event)->gpu = gpu;
    return EXIT_OK;
}

static void forget(struct gpu_event *event)
{
    const struct opencl_gpu *own = opencl_of(event->gpu);
    if (event->own && !own->abandoned)
        own->cl->clReleaseEvent(event->own);
    event->own = NULL;
}

void opencl_release_event(struct gpu_event *event)
{
    if (!event)
        return;
    forget(event);
    free(event);
}

static void point(struct gpu_event *event, cl_event at, bool at_start)
{
    if (!event)
        return;
    opencl_of(event->gpu)->cl->clRetainEvent(at);
    forget(event);
    event->own = at;
    event->at_start = at_start;
}

/* A command was queued: its own event tells when it begins and ends. Takes it over. */
static int queued(struct gpu_queue *queue, const char *call, cl_int error, cl_event at,
                  struct gpu_event *begin, struct gpu_event *end)
{
    const struct opencl *cl = opencl_of(queue->gpu)->cl;
    struct opencl_stream *stream = stream_of(queue);
    if (error)
        return opencl_fail(queue->gpu, STAGE_WORK, call, error);
    point(begin, at, true);
    point(end, at, false);
    if (stream->last)
        cl->clReleaseEvent(stream->last);
    stream->last = at;
    error = cl->clFlush(stream->queue);
    return error ? opencl_fail(queue->gpu, STAGE_WORK, "clFlush", error) : EXIT_OK;
}

int opencl_done(const struct gpu_event *event, bool *done)
{
    cl_int status = CL_COMPLETE;
    *done = true;
    if (!event->own)
        return EXIT_OK;
    cl_int error = status_of(opencl_of(event->gpu)->cl, event->own, &status);
    if (error)
        return opencl_fail(event->gpu, STAGE_WORK, "clGetEventInfo", error);
    if (status < CL_COMPLETE)
        return opencl_fail(event->gpu, STAGE_WORK, "a command's execution status", status);
    *done = status == CL_COMPLETE;
    return EXIT_OK;
}

static cl_int time_of(const struct gpu_event *event, cl_ulong *ns)
{
    cl_uint info = event->at_start ? CL_PROFILING_COMMAND_START : CL_PROFILING_COMMAND_END;
    if (!event->own)
        return CL_PROFILING_INFO_NOT_AVAILABLE;
    return opencl_of(event->gpu)
        ->cl->clGetEventProfilingInfo(event->own, info, sizeof *ns, ns, NULL);
}

int opencl_elapsed(const struct gpu_event *from, const struct gpu_event *to, double *seconds)
{
    cl_ulong begin_ns = 0, end_ns = 0;
    *seconds = NAN;
    cl_int error = time_of(from, &begin_ns);
    if (!error)
        error = time_of(to, &end_ns);
    if (error)
        return opencl_fail(from->gpu, STAGE_WORK, "clGetEventProfilingInfo", error);
    *seconds = (double)(int64_t)(end_ns - begin_ns) * 1e-9;
    return EXIT_OK;
}

/* ---- work -------------------------------------------------------------------------------------- */

static cl_int set_argument(const struct opencl *cl, cl_kernel kernel, cl_uint index,
                           const struct gpu_argument *argument)
{
    if (argument->kind == GPU_ARGUMENT_VALUE)
        return cl->clSetKernelArg(kernel, index, argument->bytes, &argument->value);
    cl_mem buffer = opencl_buffer(argument->memory);
    return cl->clSetKernelArg(kernel, index, sizeof buffer, &buffer);
}

/* Dynamic memory of a group is the argument behind the others. */
static cl_int set_arguments(const struct opencl *cl, cl_kernel kernel,
                            const struct gpu_launch *launch)
{
    cl_int error = CL_SUCCESS;
    for (unsigned i = 0; i < launch->count && !error; i++)
        error = set_argument(cl, kernel, i, &launch->arguments[i]);
    if (!error && launch->shared_bytes)
        error = cl->clSetKernelArg(kernel, launch->count, launch->shared_bytes, NULL);
    return error;
}

int opencl_launch(struct gpu_queue *queue, const struct gpu_launch *launch, struct gpu_event *begin,
                  struct gpu_event *end)
{
    const struct opencl *cl = opencl_of(queue->gpu)->cl;
    const struct opencl_built *built = launch->kernel->own;
    const size_t local = launch->group_size, global = local * launch->groups;
    cl_event at = NULL;
    cl_int error = set_arguments(cl, built->kernel, launch);
    if (error)
        return opencl_fail(queue->gpu, STAGE_WORK, "clSetKernelArg", error);
    error = cl->clEnqueueNDRangeKernel(stream_of(queue)->queue, built->kernel, 1, NULL, &global,
                                       &local, 0, NULL, &at);
    return queued(queue, "clEnqueueNDRangeKernel", error, at, begin, end);
}

int opencl_copy(struct gpu_queue *queue, const struct gpu_copy *copy, struct gpu_event *begin,
                struct gpu_event *end)
{
    const struct opencl *cl = opencl_of(queue->gpu)->cl;
    cl_command_queue into = stream_of(queue)->queue;
    cl_event at = NULL;
    cl_int error;
    switch (copy->kind) {
    case GPU_HOST_TO_DEVICE:
        error = cl->clEnqueueWriteBuffer(into, opencl_buffer(copy->to), 0, copy->to_offset,
                                         copy->bytes, copy->host, 0, NULL, &at);
        return queued(queue, "clEnqueueWriteBuffer", error, at, begin, end);
    case GPU_DEVICE_TO_HOST:
        error = cl->clEnqueueReadBuffer(into, opencl_buffer(copy->from), 0, copy->from_offset,
                                        copy->bytes, copy->host, 0, NULL, &at);
        return queued(queue, "clEnqueueReadBuffer", error, at, begin, end);
    default:
        error =
            cl->clEnqueueCopyBuffer(into, opencl_buffer(copy->from), opencl_buffer(copy->to),
                                    copy->from_offset, copy->to_offset, copy->bytes, 0, NULL, &at);
        return queued(queue, "clEnqueueCopyBuffer", error, at, begin, end);
    }
}

int opencl_fill(struct gpu_queue *queue, const struct gpu_memory *memory, uint64_t offset,
                uint64_t bytes, uint32_t word)
{
    const struct opencl *cl = opencl_of(queue->gpu)->cl;
    cl_event at = NULL;
    cl_int error = cl->clEnqueueFillBuffer(stream_of(queue)->queue, opencl_buffer(memory), &word,
                                           sizeof word, offset, bytes, 0, NULL, &at);
    return queued(queue, "clEnqueueFillBuffer", error, at, NULL, NULL);
}

int opencl_record(struct gpu_queue *queue, struct gpu_event *event)
{
    const struct opencl *cl = opencl_of(queue->gpu)->cl;
    cl_event at = NULL;
    cl_int error = cl->clEnqueueMarkerWithWaitList(stream_of(queue)->queue, 0, NULL, &at);
    return queued(queue, "clEnqueueMarkerWithWaitList", error, at, NULL, event);
}

int opencl_finish(struct gpu_queue *queue)
{
    cl_int error = opencl_of(queue->gpu)->cl->clFinish(stream_of(queue)->queue);
    return error ? opencl_fail(queue->gpu, STAGE_WORK, "clFinish", error) : EXIT_OK;
}
