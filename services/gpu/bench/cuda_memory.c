#define _GNU_SOURCE
#include "cuda_memory.h"

#include "cuda_context.h"

#include <stdlib.h>
#include <string.h>

enum {
    HOST_ALIGNMENT = 2 << 20
}; /* pageable memory begins at a huge page, as malloc's of its size */

int cuda_free_memory(struct gpu *gpu, uint64_t *bytes)
{
    size_t left = 0, total;
    CUDA_CALL(gpu, cuMemGetInfo_v2, &left, &total);
    *bytes = left;
    return EXIT_OK;
}

int cuda_memory(struct gpu *gpu, uint64_t bytes, struct gpu_memory **made)
{
    cuda_pointer at = 0;
    *made = NULL;
    CUDA_CALL(gpu, cuMemAlloc_v2, &at, bytes);
    *made = calloc(1, sizeof **made);
    if (!*made)
        return cuda_no_memory(gpu, "a record", sizeof **made);
    **made = (struct gpu_memory){.gpu = gpu, .bytes = bytes, .handle = at};
    return EXIT_OK;
}

void cuda_release_memory(struct gpu_memory *memory)
{
    if (memory && cuda_may_release(memory->gpu))
        cuda_of(memory->gpu)->api->cuMemFree_v2(memory->handle);
    free(memory);
}

static int pinned_memory(struct gpu *gpu, struct gpu_host_memory *memory)
{
    CUDA_CALL(gpu, cuMemHostAlloc, &memory->at, memory->bytes, CUDA_HOST_PORTABLE);
    return EXIT_OK;
}

/* Touched now: a first touch would be measured otherwise. */
static int pageable_memory(struct gpu *gpu, struct gpu_host_memory *memory)
{
    uint64_t bytes = (memory->bytes + HOST_ALIGNMENT - 1) / HOST_ALIGNMENT * HOST_ALIGNMENT;
    memory->at = aligned_alloc(HOST_ALIGNMENT, bytes);
    if (!memory->at)
        return cuda_no_memory(gpu, "the host's end of the transfers", bytes);
    memset(memory->at, 0, memory->bytes);
    return EXIT_OK;
}

int cuda_host_memory(struct gpu *gpu, uint64_t bytes, bool pinned, struct gpu_host_memory **made)
{
    *made = NULL;
    struct gpu_host_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return cuda_no_memory(gpu, "a record", sizeof *memory);
    *memory = (struct gpu_host_memory){.gpu = gpu, .bytes = bytes, .pinned = pinned};
    int failure = pinned ? pinned_memory(gpu, memory) : pageable_memory(gpu, memory);
    if (failure) {
        free(memory);
        return failure;
    }
    *made = memory;
    return EXIT_OK;
}

/* Of a trial that has failed, copies may still be under way, and the driver's threads touch this memory
 * then: it is kept until the process ends. */
static void keep(struct gpu_host_memory *memory)
{
    static struct gpu_host_memory *kept;
    memory->own = kept;
    kept = memory;
}

void cuda_release_host_memory(struct gpu_host_memory *memory)
{
    if (!memory)
        return;
    if (!cuda_may_release(memory->gpu)) {
        keep(memory);
        return;
    }
    if (memory->pinned)
        cuda_of(memory->gpu)->api->cuMemFreeHost(memory->at);
    else
        free(memory->at);
    free(memory);
}
