#include "tensor.h"

#include "clocks.h"
#include "figures.h"
#include "kernel_set.h"
#include "tensor_check.h"
#include "windows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    PASSES_MAX = 1 << 20, /* of a launch; a pass takes a tenth of a millisecond */
    EXACT_PASSES = 3,
    NOTHING = 0x7fedcba9, /* a NaN as fp32 and fp64 */
};

struct tensor {
    const struct tensor_kernel *shape;
    struct gpu_kernel *kernel;
    unsigned groups, shared_bytes;
    struct gpu_memory *operands, *results, *hashes;
    struct tensor_expected expected; /* of what is timed */
    void *results_read;              /* copies of what the kernel has left */
    uint32_t *hashes_read;
};

/* ---- which kernel --------------------------------------------------------------------------- */

static bool is_requested(const struct run *run, const struct tensor_kernel *shape)
{
    const char *instruction = run_choice(run, "instruction");
    return !strcmp(shape->dtype, run_choice(run, "dtype")) &&
           (!strcmp(instruction, "auto") ||
            !strcmp(instruction, tensor_instruction_name(shape->instruction)));
}

static bool is_there(const struct tensor_kernel *shape, const struct gpu_device *device)
{
    return kernel_image(shape->name, device->cc_major, device->cc_minor);
}

/* NULL: none. */
static const struct tensor_kernel *shape_for(const struct run *run, const struct gpu_device *device)
{
    for (const struct tensor_kernel *shape = tensor_kernels; shape->name; shape++)
        if (is_requested(run, shape) && is_there(shape, device))
            return shape;
    return NULL;
}

/* "fp16 (wgmma), fp16 (mma), …" of those that the device has; two shapes of one stand side by side. */
static void list_shapes(const struct gpu_device *device, char *text, size_t size)
{
    const struct tensor_kernel *last = NULL;
    size_t used = 0;
    text[0] = '\0';
    for (const struct tensor_kernel *shape = tensor_kernels; shape->name; shape++) {
        bool named =
            last && !strcmp(last->dtype, shape->dtype) && last->instruction == shape->instruction;
        if (named || !is_there(shape, device) || used >= size)
            continue;
        used += (size_t)snprintf(text + used, size - used, "%s%s (%s)", used ? ", " : "",
                                 shape->dtype, tensor_instruction_name(shape->instruction));
        last = shape;
    }
}

static const char *unsupported(const struct run *run, const struct gpu_device *device)
{
    static _Thread_local char why[512];
    if (!device->cc_major) {
        snprintf(why, sizeof why,
                 "tensor cores are reached through CUDA alone, and %s is a device of OpenCL's: "
                 "choose another one with --device (hostbench run: --param device=)",
                 device->name);
        return why;
    }
    if (shape_for(run, device))
        return NULL;
    char there[320];
    list_shapes(device, there, sizeof there);
    snprintf(why, sizeof why,
             "no tensor kernel for %s by --instruction %s on compute capability "
             "%d.%d: it has %s",
             run_choice(run, "dtype"), run_choice(run, "instruction"), device->cc_major,
             device->cc_minor, there[0] ? there : "none");
    return why;
}

static const char *unconfirmed(const struct run *run, const struct gpu_device *device)
{
    const struct tensor_kernel *shape = shape_for(run, device);
    if (!shape || shape->instruction != TENSOR_TCGEN05)
        return NULL;
    return "tcgen05.mma never ran on a card before this. That it is right is checked in each "
           "trial; that it is fast, in the disassembly alone";
}

/* ---- launches ------------------------------------------------------------------------------- */

static int launch(struct gpu_job *job, enum tensor_operands which, uint32_t passes,
                  struct gpu_event *begin, struct gpu_event *end)
{
    struct tensor *tensor = job->own;
    uint32_t slot;
    int failure = clocks_next(job, &slot);
    if (failure)
        return failure;
    const struct gpu_argument arguments[] = {
        GPU_ARG_MEMORY(tensor->operands),
        GPU_ARG_MEMORY(tensor->results),
        GPU_ARG_MEMORY(tensor->hashes),
        GPU_ARG_U32(passes),
        GPU_ARG_U32(tensor_rounds(tensor->shape, which)),
        GPU_ARG_MEMORY(clocks_memory(job)),
        GPU_ARG_U32(slot),
    };
    const struct gpu_launch what = {
        .kernel = tensor->kernel,
        .groups = tensor->groups,
        .group_size = tensor->shape->threads,
        .shared_bytes = tensor->shared_bytes,
        .arguments = arguments,
        .count = sizeof arguments / sizeof *arguments,
    };
    return job->backend->launch(job->queue, &what, begin, end);
}

static int enqueue(struct gpu_job *job, unsigned lane, uint64_t size, struct gpu_event *begin,
                   struct gpu_event *end)
{
    (void)lane;
    return launch(job, TENSOR_RANDOM, (uint32_t)size, begin, end);
}

/* ---- operands and results ------------------------------------------------------------------- */

static int lacks_memory(struct gpu_job *job)
{
    run_reason(job->run,
               "not enough memory on the host for operands and results of the tensor kernel");
    return EXIT_RESOURCE;
}

static size_t results_bytes(const struct tensor *tensor)
{
    return (size_t)tensor->groups * tensor_group_values(tensor->shape) *
           tensor_result_bytes(tensor->shape);
}

static size_t hashes_bytes(const struct tensor *tensor)
{
    return (size_t)tensor->groups * tensor->shape->threads * sizeof(uint32_t);
}

static int too_large(struct gpu_job *job)
{
    const struct tensor *tensor = job->own;
    run_reason(job->run,
               "%s: the sums of the exact pass are larger than its accumulators hold exactly: this "
               "build does not work correctly, use another --instruction or --dtype",
               tensor->shape->name);
    return EXIT_WRONG;
}

/* Puts operands on the device, the hashes to zero, and nothing that could be right into the results. */
static int give_operands(struct gpu_job *job, enum tensor_operands which,
                         struct tensor_expected *expected)
{
    struct tensor *tensor = job->own;
    size_t bytes = tensor_operand_bytes(tensor->shape);
    void *operands = malloc(bytes);
    if (!operands)
        return lacks_memory(job);
    tensor_fill(tensor->shape, which, operands);
    int failure = tensor_expect(expected, tensor->shape, which, operands)
                      ? gpu_upload(job->queue, tensor->operands, 0, operands, bytes)
                      : lacks_memory(job);
    free(operands);
    if (!failure && isnan(expected->tolerance))
        failure = too_large(job);
    if (!failure)
        failure = job->backend->fill(job->queue, tensor->hashes, 0, hashes_bytes(tensor), 0);
    if (!failure)
        failure =
            job->backend->fill(job->queue, tensor->results, 0, results_bytes(tensor), NOTHING);
    return failure;
}

/* What all launches since give_operands() have left: `passes` of them together. */
static int check(struct gpu_job *job, const struct tensor_expected *expected, uint64_t passes)
{
    struct tensor *tensor = job->own;
    int failure =
        gpu_download(job->queue, tensor->results, 0, tensor->results_read, results_bytes(tensor));
    if (!failure)
        failure =
            gpu_download(job->queue, tensor->hashes, 0, tensor->hashes_read, hashes_bytes(tensor));
    struct tensor_mismatch first;
    if (failure || tensor_check(expected, tensor->results_read, tensor->hashes_read, tensor->groups,
                                passes, &first))
        return failure;
    run_reason(job->run,
               "%s: accumulator %u of thread %u of group %u %s: this device or its driver does not "
               "work correctly; do not trust its figures",
               tensor->shape->name, first.value, first.thread, first.group, first.what);
    return EXIT_WRONG;
}

/* Whole numbers first: rounding cannot excuse a wrong product of them. */
static int check_exactly(struct gpu_job *job)
{
    struct tensor_expected expected = {0};
    int failure = give_operands(job, TENSOR_EXACT, &expected);
    if (!failure)
        failure = launch(job, TENSOR_EXACT, EXACT_PASSES, NULL, NULL);
    if (!failure)
        failure = gpu_drain(job->queue);
    if (!failure)
        failure = check(job, &expected, EXACT_PASSES);
    tensor_expected_release(&expected);
    return failure;
}

static int verify(struct gpu_job *job)
{
    struct tensor *tensor = job->own;
    uint64_t passes = windows_total(job, 0);
    return passes ? check(job, &tensor->expected, passes) : EXIT_OK;
}

/* ---- a trial -------------------------------------------------------------------------------- */

static int take_memory(struct gpu_job *job)
{
    struct tensor *tensor = job->own;
    const struct gpu_backend *backend = job->backend;
    int failure =
        backend->memory(&job->gpu, tensor_operand_bytes(tensor->shape), &tensor->operands);
    if (!failure)
        failure = backend->memory(&job->gpu, results_bytes(tensor), &tensor->results);
    if (!failure)
        failure = backend->memory(&job->gpu, hashes_bytes(tensor), &tensor->hashes);
    if (failure)
        return failure;
    tensor->results_read = malloc(results_bytes(tensor));
    tensor->hashes_read = malloc(hashes_bytes(tensor));
    return tensor->results_read && tensor->hashes_read ? EXIT_OK : lacks_memory(job);
}

static void report_instruction(struct gpu_job *job, const struct tensor_kernel *shape)
{
    char text[96];
    snprintf(text, sizeof text, "%s m%un%uk%u %s, sums in %s",
             tensor_instruction_name(shape->instruction), shape->m, shape->n, shape->k,
             shape->dtype,
             shape->type == ELEMENT_INT8   ? "int32"
             : shape->type == ELEMENT_FP64 ? "fp64"
                                           : "fp32");
    run_fact(job->run, "instruction", text);
}

static int open_tensor(struct gpu_job *job)
{
    struct tensor *tensor = job->own;
    const struct tensor_kernel *shape = shape_for(job->run, &job->gpu.device);
    tensor->shape = shape;
    tensor->groups = job->gpu.device.compute_units * shape->groups_per_unit;
    tensor->shared_bytes = shape->shared_bytes
                               ? shape->shared_bytes /* no more groups than these fit */
                               : gpu_ballast_bytes(&job->gpu.device, shape->groups_per_unit);
    report_instruction(job, shape);
    int failure = gpu_job_kernel(job, shape->name, &tensor->kernel);
    if (!failure)
        failure = clocks_open(job, true);
    if (!failure)
        failure = take_memory(job);
    if (!failure)
        failure = check_exactly(job);
    if (!failure)
        failure = give_operands(job, TENSOR_RANDOM, &tensor->expected);
    job->work = (struct windows_work){
        .lanes = 1,
        .enqueue = enqueue,
        .work_per_size =
            tensor_operations(shape) * tensor_rounds(shape, TENSOR_RANDOM) * tensor->groups,
        .size_min = 1,
        .size_max = PASSES_MAX,
    };
    return failure;
}

static void close_tensor(struct gpu_job *job)
{
    struct tensor *tensor = job->own;
    job->backend->release_kernel(tensor->kernel);
    job->backend->release_memory(tensor->operands);
    job->backend->release_memory(tensor->results);
    job->backend->release_memory(tensor->hashes);
    tensor_expected_release(&tensor->expected);
    free(tensor->results_read);
    free(tensor->hashes_read);
}

const struct gpu_kind tensor_kind = {
    .name = "tensor",
    .own_bytes = sizeof(struct tensor),
    .unsupported = unsupported,
    .unconfirmed = unconfirmed,
    .open = open_tensor,
    .close = close_tensor,
    .verify = verify,
    .finish = figures_report_cycles,
};
