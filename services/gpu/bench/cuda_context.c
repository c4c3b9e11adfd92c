#define _GNU_SOURCE
#include "cuda_context.h"

#include "cuda_error.h"

static _Thread_local const struct cuda *current; /* whose context this thread has */

int cuda_fail(struct gpu *gpu, const char *call, int code)
{
    cuda_of(gpu)->broken |= code != CUDA_ERROR_OUT_OF_MEMORY;
    return cuda_error(gpu, cuda_of(gpu)->api, call, code);
}

int cuda_no_memory(struct gpu *gpu, const char *what, uint64_t bytes)
{
    run_reason(
        gpu->run,
        "no memory of this host for %s (%llu bytes): end other programs, or use a smaller size",
        what, (unsigned long long)bytes);
    return EXIT_RESOURCE;
}

/* A context belongs to the threads that have made it theirs: the trial is opened by one thread and
 * measured by another. */
int cuda_enter(struct gpu *gpu)
{
    struct cuda *cuda = cuda_of(gpu);
    if (current == cuda)
        return EXIT_OK;
    int code = cuda->api->cuCtxSetCurrent(cuda->context);
    if (code != CUDA_SUCCESS)
        return cuda_fail(gpu, "cuCtxSetCurrent", code);
    current = cuda;
    return EXIT_OK;
}

bool cuda_may_release(struct gpu *gpu)
{
    struct cuda *cuda = cuda_of(gpu);
    return cuda && !cuda->broken && !run_stopping(gpu->run) && cuda_enter(gpu) == EXIT_OK;
}

void cuda_leave(const struct cuda *cuda)
{
    if (current == cuda)
        current = NULL;
}
