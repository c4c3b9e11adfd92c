#include "compute.h"

#include "clocks.h"
#include "figures.h"
#include "kernel_set.h"
#include "vector_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GROUPS_A_UNIT = 4,    /* of 256 work-items: eight warps for each of four schedulers */
    LAUNCHES_MAX = 256,   /* of a piece */
    NOTHING = 0xa5a5a5a5, /* what the results hold before a kernel has written them */
};

struct compute {
    const struct vector_kernel *vector;
    struct gpu_kernel *kernel;
    struct gpu_memory *operands, *results;
    unsigned groups, ballast_bytes;
    size_t work_items;
    uint32_t iterations; /* of the last launch */
};

/* ---- whether it can run ---------------------------------------------------------------------- */

static const char *dtype_of(const struct run *run, const struct gpu_kind *kind)
{
    return kind == &dp4a_kind ? "int8" : run_choice(run, "dtype");
}

/* Packed pairs of fp32 exist from compute capability 10.0 on. */
static const char *kernel_name(const struct vector_kernel *vector, const struct gpu_device *device)
{
    static const char packed[] = "fma_fp32x2";
    bool fits = !strcmp(vector->name, "fma_fp32") && device->cc_major >= 10 &&
                kernel_image(packed, device->cc_major, device->cc_minor);
    return fits ? packed : vector->name;
}

static const char *lacking_in_opencl(const char *dtype, const struct gpu_device *device)
{
    if (!strcmp(dtype, "bf16"))
        return "bf16: OpenCL has no such type; a CUDA device of compute capability 8.0 has";
    if (!strcmp(dtype, "fp64") && !device->fp64)
        return "fp64: the device has no cl_khr_fp64";
    if (!strcmp(dtype, "fp16") && !device->fp16)
        return "fp16: the device has no cl_khr_fp16";
    return NULL;
}

static const char *lacking_in_cuda(const char *kernel, const struct gpu_device *device)
{
    static char why[160];
    if (kernel_image(kernel, device->cc_major, device->cc_minor))
        return NULL;
    if (!kernel_exists(kernel))
        return "this program was built without CUDA kernels (NVRTC=none): build it with NVRTC, or "
               "give --backend opencl";
    snprintf(why, sizeof why,
             "%s: this program has no such kernel for compute capability %d.%d, which lacks the "
             "instruction or is older than 7.0",
             kernel, device->cc_major, device->cc_minor);
    return why;
}

static const char *unsupported(const struct run *run, const struct gpu_device *device)
{
    const struct gpu_kind *kind = run_own(run);
    const char *dtype = dtype_of(run, kind);
    const struct vector_kernel *vector = vector_kernel(kind->name, dtype);
    if (!vector)
        return "there is no kernel of this type";
    return device->cc_major ? lacking_in_cuda(vector->name, device)
                            : lacking_in_opencl(dtype, device);
}

/* ---- a piece of work ------------------------------------------------------------------------- */

static int launch(struct gpu_job *job, uint32_t iterations, struct gpu_event *begin,
                  struct gpu_event *end)
{
    struct compute *own = job->own;
    uint32_t slot;
    int failure = clocks_next(job, &slot);
    if (failure)
        return failure;
    const struct gpu_argument arguments[] = {
        GPU_ARG_MEMORY(own->operands),
        GPU_ARG_MEMORY(own->results),
        GPU_ARG_U32(iterations),
        GPU_ARG_MEMORY(clocks_memory(job)),
        GPU_ARG_U32(slot),
    };
    const struct gpu_launch launch = {.kernel = own->kernel,
                                      .groups = own->groups,
                                      .group_size = KERNEL_GROUP_SIZE,
                                      .shared_bytes = own->ballast_bytes,
                                      .arguments = arguments,
                                      .count = sizeof arguments / sizeof *arguments};
    own->iterations = iterations;
    return job->backend->launch(job->queue, &launch, begin, end);
}

/* `size` iterations, in as many launches as keep every count exact. */
static int enqueue(struct gpu_job *job, unsigned lane, uint64_t size, struct gpu_event *begin,
                   struct gpu_event *end)
{
    const struct compute *own = job->own;
    (void)lane;
    for (uint64_t left = size; left > 0; begin = NULL) {
        uint32_t most = own->vector->most_iterations;
        uint32_t iterations = left < most ? (uint32_t)left : most;
        left -= iterations;
        int failure = launch(job, iterations, begin, left == 0 ? end : NULL);
        if (failure)
            return failure;
    }
    return EXIT_OK;
}

/* ---- open and close -------------------------------------------------------------------------- */

static size_t result_bytes(const struct compute *own)
{
    return vector_result_bytes(own->vector, own->work_items);
}

static int forget_results(struct gpu_job *job)
{
    const struct compute *own = job->own;
    return job->backend->fill(job->queue, own->results, 0, result_bytes(own), NOTHING);
}

static int make_buffers(struct gpu_job *job)
{
    struct compute *own = job->own;
    unsigned char operands[VECTOR_OPERAND_BYTES];
    vector_operands(own->vector, operands);
    int failure = job->backend->memory(&job->gpu, sizeof operands, &own->operands);
    if (!failure)
        failure = job->backend->memory(&job->gpu, result_bytes(own), &own->results);
    if (!failure)
        failure = gpu_upload(job->queue, own->operands, 0, operands, sizeof operands);
    return failure ? failure : forget_results(job);
}

static int open_compute(struct gpu_job *job)
{
    struct compute *own = job->own;
    const struct gpu_device *device = &job->gpu.device;
    unsigned units = device->compute_units ? device->compute_units : 1;
    own->vector = vector_kernel(job->kind->name, dtype_of(job->run, job->kind));
    own->groups = GROUPS_A_UNIT * units;
    own->ballast_bytes = gpu_ballast_bytes(device, GROUPS_A_UNIT);
    own->work_items = (size_t)own->groups * KERNEL_GROUP_SIZE;
    job->work = (struct windows_work){
        .lanes = 1,
        .enqueue = enqueue,
        .work_per_size = own->vector->operations * (double)own->work_items,
        .size_min = 1,
        .size_max = (uint64_t)own->vector->most_iterations * LAUNCHES_MAX,
    };
    int failure = gpu_job_kernel(job, kernel_name(own->vector, device), &own->kernel);
    if (!failure)
        failure = clocks_open(job, true);
    return failure ? failure : make_buffers(job);
}

static void close_compute(struct gpu_job *job)
{
    struct compute *own = job->own;
    job->backend->release_kernel(own->kernel);
    job->backend->release_memory(own->operands);
    job->backend->release_memory(own->results);
}

/* ---- what is left ---------------------------------------------------------------------------- */

static int check(struct gpu_job *job, const void *results)
{
    const struct compute *own = job->own;
    struct vector_mismatch first;
    if (vector_check(own->vector, results, own->work_items, own->iterations, &first))
        return EXIT_OK;
    run_reason(job->run,
               "%s: work-item %zu has left %s as its result %u, %s would be right after %" PRIu32
               " iterations: this device, its memory or its driver does not work correctly; do not "
               "trust its figures",
               own->kernel->name, first.work_item, first.found, first.result, first.expected,
               own->iterations);
    return EXIT_WRONG;
}

static int verify(struct gpu_job *job)
{
    const struct compute *own = job->own;
    void *results = malloc(result_bytes(own));
    if (!results) {
        run_reason(job->run, "not enough memory for %zu bytes of results", result_bytes(own));
        return EXIT_RESOURCE;
    }
    int failure = gpu_download(job->queue, own->results, 0, results, result_bytes(own));
    if (!failure)
        failure = check(job, results);
    free(results);
    return failure ? failure : forget_results(job);
}

#define COMPUTE_KIND(workload)                                                                     \
    {                                                                                              \
        .name = workload,                                                                          \
        .own_bytes = sizeof(struct compute),                                                       \
        .unsupported = unsupported,                                                                \
        .open = open_compute,                                                                      \
        .close = close_compute,                                                                    \
        .verify = verify,                                                                          \
        .finish = figures_report_cycles,                                                           \
    }

const struct gpu_kind fma_kind = COMPUTE_KIND("fma");
const struct gpu_kind int_add_kind = COMPUTE_KIND("int_add");
const struct gpu_kind int_mul_add_kind = COMPUTE_KIND("int_mul_add");
const struct gpu_kind dp4a_kind = COMPUTE_KIND("dp4a");
