#include "gemm.h"

#include "cublaslt_api.h"
#include "element.h"
#include "failure.h"
#include "random.h"
#include "windows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALGORITHMS_MAX = 8,  /* of the library's proposals are tried */
    TRIED_PRODUCTS = 3,  /* each of them is timed */
    PRODUCTS_MAX = 4096, /* of a piece of work */
    SAMPLED = 16,        /* rows and columns of D that are checked */
    /* Operands repeat themselves after so many elements: a prime, so that no two rows are alike. */
    PATTERN = 1048573,
    B_SHIFT = 524287,     /* where B begins in it */
    NOTHING = 0x7fedcba9, /* what D holds before: a NaN in every type but FP16 and BF16; in these
                             every other element is one */
};

static const uint64_t WORKSPACE_BYTES = 64 << 20;

struct gemm_type {
    const char *dtype; /* NULL: the end */
    enum element_type operand, result;
    int operand_code, result_code, compute;
    int cc; /* least compute capability that has it: 10 x major + minor */
    /* Bits that a result has, and that sums keep at the least, of the sum of all magnitudes: tensor
     * cores cut off what lies below the bits of their accumulators, and FP8 has few. */
    int result_bits, sum_bits;
};

/* clang-format off */
static const struct gemm_type types[] = {
    {"fp16", ELEMENT_FP16, ELEMENT_FP16, CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, 70, 11, 16},
    {"bf16", ELEMENT_BF16, ELEMENT_BF16, CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 80, 8, 16},
    {"tf32", ELEMENT_TF32, ELEMENT_FP32, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32,
     80, 24, 16},
    {"fp32", ELEMENT_FP32, ELEMENT_FP32, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 70, 24, 20},
    {"fp64", ELEMENT_FP64, ELEMENT_FP64, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, 70, 53, 48},
    {"fp8", ELEMENT_FP8, ELEMENT_BF16, CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 89, 8, 9},
    {.dtype = NULL},
};
/* clang-format on */

struct gemm {
    const struct cublaslt_api *api;
    const struct gemm_type *type;
    uint64_t n;
    unsigned char *pattern; /* of elements */
    struct gpu_memory *a, *b, *d, *workspace;
    cublaslt_handle handle;
    cublaslt_operation operation;
    cublaslt_layout operand_layout, result_layout;
    cublaslt_preference preference;
    struct cublaslt_algorithm algorithm;
    double residual; /* the largest so far, in tolerances */
};

static const struct gemm_type *type_of(const struct run *run)
{
    const struct gemm_type *type = types;
    while (type->dtype && strcmp(type->dtype, run_choice(run, "dtype")))
        type++;
    return type;
}

static const char *unsupported(const struct run *run, const struct gpu_device *device)
{
    static char why[192];
    const struct gemm_type *type = type_of(run);
    const char *lacks;
    if (!device->cc_major)
        return "cuBLASLt is reached through CUDA alone, and this is a device of OpenCL's: choose "
               "another one with --device (hostbench run: --param device=)";
    if (device->cc_major * 10 + device->cc_minor < type->cc) {
        snprintf(why, sizeof why,
                 "cuBLASLt has %s from compute capability %d.%d on, and this device has %d.%d",
                 type->dtype, type->cc / 10, type->cc % 10, device->cc_major, device->cc_minor);
        return why;
    }
    return cublaslt_load(&lacks) ? NULL : lacks;
}

void gemm_resolve(struct run *run)
{
    const char *why;
    if (cublaslt_load(&why))
        run_library(run, &(struct library){"cuBLASLt", cublaslt_version(), cublaslt_path(), NULL});
}

/* ---- calls ---------------------------------------------------------------------------------- */

static int fail(struct gpu_job *job, const char *call, int status)
{
    const struct gemm *gemm = job->own;
    return gpu_fail(&job->gpu, status == CUBLAS_STATUS_ALLOC_FAILED ? EXIT_RESOURCE : EXIT_FAILED,
                    call, status, cublaslt_status_name(status),
                    "cuBLASLt %s cannot do %s products of order %llu on this device",
                    cublaslt_version(), gemm->type->dtype, (unsigned long long)gemm->n);
}

/* Calls the library; the enclosing function returns when it fails. */
#define CALL(job, gemm, call, ...)                                                                 \
    do {                                                                                           \
        int status_ = (gemm)->api->call(__VA_ARGS__);                                              \
        if (status_ != CUBLAS_STATUS_SUCCESS)                                                      \
            return fail(job, #call, status_);                                                      \
    } while (0)

static void *at(const struct gpu_memory *memory)
{
    return (void *)(uintptr_t)memory->handle;
}

/* D = A' B, each with columns one behind the other: the form that FP8 has alone. The library's
 * status. */
static int product(struct gpu_job *job, const struct cublaslt_algorithm *algorithm)
{
    static const struct {
        float one32, zero32;
        double one64, zero64;
    } scale = {1, 0, 1, 0};
    const struct gemm *gemm = job->own;
    bool fp64 = gemm->type->compute == CUBLAS_COMPUTE_64F;
    return gemm->api->cublasLtMatmul(
        gemm->handle, gemm->operation, fp64 ? (const void *)&scale.one64 : &scale.one32,
        at(gemm->a), gemm->operand_layout, at(gemm->b), gemm->operand_layout,
        fp64 ? (const void *)&scale.zero64 : &scale.zero32, at(gemm->d), gemm->result_layout,
        at(gemm->d), gemm->result_layout, algorithm, at(gemm->workspace), gemm->workspace->bytes,
        job->queue->own);
}

static int multiply(struct gpu_job *job)
{
    const struct gemm *gemm = job->own;
    int status = product(job, &gemm->algorithm);
    return status == CUBLAS_STATUS_SUCCESS ? EXIT_OK : fail(job, "cublasLtMatmul", status);
}

static int enqueue(struct gpu_job *job, unsigned lane, uint64_t size, struct gpu_event *begin,
                   struct gpu_event *end)
{
    (void)lane;
    int failure = begin ? job->backend->record(job->queue, begin) : EXIT_OK;
    for (uint64_t i = 0; !failure && i < size; i++)
        failure = multiply(job);
    return failure || !end ? failure : job->backend->record(job->queue, end);
}

/* ---- which algorithm ------------------------------------------------------------------------ */

static int time_products(struct gpu_job *job, struct gpu_event *begin, struct gpu_event *end,
                         double *seconds)
{
    int failure = enqueue(job, 0, TRIED_PRODUCTS, begin, end);
    if (!failure)
        failure = gpu_drain(job->queue);
    *seconds = INFINITY;
    return failure || run_stopping(job->run) ? failure : job->backend->elapsed(begin, end, seconds);
}

/* The library proposes in the order of its expectation, which is not always that of the time; and
 * what it proposes it may refuse to do. */
static int try_algorithms(struct gpu_job *job, const struct cublaslt_algorithm *proposed, int count,
                          struct gpu_event *begin, struct gpu_event *end)
{
    struct gemm *gemm = job->own;
    double best_s = INFINITY;
    int best = -1, refusal = CUBLAS_STATUS_NOT_SUPPORTED;
    for (int i = 0; i < count && !run_stopping(job->run); i++) {
        double seconds;
        if (proposed[i].state != CUBLAS_STATUS_SUCCESS)
            continue;
        gemm->algorithm = proposed[i];
        int status = product(job, &proposed[i]); /* its code is loaded with the first one */
        if (status != CUBLAS_STATUS_SUCCESS) {
            refusal = status;
            continue;
        }
        int failure = time_products(job, begin, end, &seconds);
        if (failure)
            return failure;
        if (seconds < best_s) {
            best = i;
            best_s = seconds;
        }
    }
    if (best < 0)
        return run_stopping(job->run) ? EXIT_OK : fail(job, "cublasLtMatmul", refusal);
    gemm->algorithm = proposed[best];
    return EXIT_OK;
}

static int choose_algorithm(struct gpu_job *job)
{
    struct gemm *gemm = job->own;
    struct cublaslt_algorithm proposed[ALGORITHMS_MAX];
    struct gpu_event *begin = NULL, *end = NULL;
    int count = 0;
    CALL(job, gemm, cublasLtMatmulAlgoGetHeuristic, gemm->handle, gemm->operation,
         gemm->operand_layout, gemm->operand_layout, gemm->result_layout, gemm->result_layout,
         gemm->preference, ALGORITHMS_MAX, proposed, &count);
    if (!count)
        return fail(job, "cublasLtMatmulAlgoGetHeuristic", CUBLAS_STATUS_NOT_SUPPORTED);
    int failure = job->backend->event(&job->gpu, &begin);
    if (!failure)
        failure = job->backend->event(&job->gpu, &end);
    if (!failure)
        failure = try_algorithms(job, proposed, count, begin, end);
    job->backend->release_event(begin);
    job->backend->release_event(end);
    return failure;
}

/* ---- operands ------------------------------------------------------------------------------- */

static int lacks_memory(struct gpu_job *job)
{
    run_reason(job->run, "not enough memory on the host for operands of the product");
    return EXIT_RESOURCE;
}

static int make_pattern(struct gpu_job *job)
{
    struct gemm *gemm = job->own;
    unsigned bytes = element_bytes(gemm->type->operand);
    uint64_t state = 0x67656d6d; /* "gemm" */
    gemm->pattern = malloc((size_t)PATTERN * bytes);
    if (!gemm->pattern)
        return lacks_memory(job);
    for (size_t i = 0; i < PATTERN; i++)
        element_encode(gemm->type->operand, gemm->pattern + i * bytes, random_normal(&state));
    return EXIT_OK;
}

static double operand(const struct gemm *gemm, uint64_t row, uint64_t column, uint64_t shift)
{
    uint64_t i = (column * gemm->n + row + shift) % PATTERN;
    return element_decode(gemm->type->operand,
                          gemm->pattern + i * element_bytes(gemm->type->operand));
}

static int fill(struct gpu_job *job, const struct gpu_memory *memory, uint64_t shift)
{
    const struct gemm *gemm = job->own;
    unsigned bytes = element_bytes(gemm->type->operand);
    uint64_t elements = gemm->n * gemm->n;
    for (uint64_t done = 0; done < elements && !run_stopping(job->run);) {
        uint64_t from = (done + shift) % PATTERN, count = PATTERN - from;
        if (count > elements - done)
            count = elements - done;
        int failure = gpu_upload(job->queue, memory, done * bytes, gemm->pattern + from * bytes,
                                 count * bytes);
        if (failure)
            return failure;
        done += count;
    }
    return EXIT_OK;
}

static uint64_t bytes_of(const struct gemm *gemm, enum element_type type)
{
    return gemm->n * gemm->n * element_bytes(type);
}

static int make_matrices(struct gpu_job *job)
{
    struct gemm *gemm = job->own;
    const struct gpu_backend *backend = job->backend;
    int failure = make_pattern(job);
    if (!failure)
        failure = backend->memory(&job->gpu, bytes_of(gemm, gemm->type->operand), &gemm->a);
    if (!failure)
        failure = backend->memory(&job->gpu, bytes_of(gemm, gemm->type->operand), &gemm->b);
    if (!failure)
        failure = backend->memory(&job->gpu, bytes_of(gemm, gemm->type->result), &gemm->d);
    if (!failure)
        failure = backend->memory(&job->gpu, WORKSPACE_BYTES, &gemm->workspace);
    if (!failure)
        failure = fill(job, gemm->a, 0);
    return failure ? failure : fill(job, gemm->b, B_SHIFT);
}

/* ---- the check ------------------------------------------------------------------------------ */

/* The i-th of the sampled rows or columns; the first and the last are among them. */
static uint64_t sampled(const struct gemm *gemm, unsigned i)
{
    return (gemm->n - 1) * i / (SAMPLED - 1);
}

static int check_element(struct gpu_job *job, uint64_t row, uint64_t column, double found)
{
    struct gemm *gemm = job->own;
    double sum = 0, magnitude = 0;
    for (uint64_t k = 0; k < gemm->n; k++) {
        double product = operand(gemm, k, row, 0) * operand(gemm, k, column, B_SHIFT);
        sum += product;
        magnitude += fabs(product);
    }
    /* Rounding of the result, and of sums that are never larger than that of the magnitudes. */
    double tolerance =
        ldexp(fabs(sum), -gemm->type->result_bits) + ldexp(magnitude, -gemm->type->sum_bits);
    double residual = fabs(found - sum) / tolerance;
    if (residual <= 1) {
        gemm->residual = fmax(gemm->residual, residual);
        return EXIT_OK;
    }
    run_reason(
        job->run,
        "cuBLASLt %s: row %llu, column %llu of the product is %.9g instead of %.9g (to %.3g): this "
        "device, its driver or the library does not work correctly; do not trust its figures",
        cublaslt_version(), (unsigned long long)row, (unsigned long long)column, found, sum,
        tolerance);
    return EXIT_WRONG;
}

static int check_column(struct gpu_job *job, uint64_t column, unsigned char *results)
{
    const struct gemm *gemm = job->own;
    unsigned bytes = element_bytes(gemm->type->result);
    int failure =
        gpu_download(job->queue, gemm->d, column * gemm->n * bytes, results, gemm->n * bytes);
    for (unsigned i = 0; !failure && i < SAMPLED; i++) {
        uint64_t row = sampled(gemm, i);
        failure = check_element(job, row, column,
                                element_decode(gemm->type->result, results + row * bytes));
    }
    return failure;
}

/* Rows times columns of the last product; after that D is no product any more. */
static int verify(struct gpu_job *job)
{
    const struct gemm *gemm = job->own;
    unsigned char *results = malloc(gemm->n * element_bytes(gemm->type->result));
    if (!results)
        return lacks_memory(job);
    int failure = EXIT_OK;
    for (unsigned i = 0; !failure && i < SAMPLED; i++)
        failure = check_column(job, sampled(gemm, i), results);
    free(results);
    return failure ? failure : job->backend->fill(job->queue, gemm->d, 0, gemm->d->bytes, NOTHING);
}

/* ---- a trial -------------------------------------------------------------------------------- */

static int describe(struct gpu_job *job)
{
    struct gemm *gemm = job->own;
    const struct gemm_type *type = gemm->type;
    const int32_t transposed = CUBLAS_OP_T;
    const size_t workspace_bytes = WORKSPACE_BYTES;
    int64_t ld = (int64_t)gemm->n;
    CALL(job, gemm, cublasLtCreate, &gemm->handle);
    CALL(job, gemm, cublasLtMatmulDescCreate, &gemm->operation, type->compute,
         type->compute == CUBLAS_COMPUTE_64F ? CUDA_R_64F : CUDA_R_32F);
    CALL(job, gemm, cublasLtMatmulDescSetAttribute, gemm->operation, CUBLASLT_MATMUL_DESC_TRANSA,
         &transposed, sizeof transposed);
    CALL(job, gemm, cublasLtMatrixLayoutCreate, &gemm->operand_layout, type->operand_code, gemm->n,
         gemm->n, ld);
    CALL(job, gemm, cublasLtMatrixLayoutCreate, &gemm->result_layout, type->result_code, gemm->n,
         gemm->n, ld);
    CALL(job, gemm, cublasLtMatmulPreferenceCreate, &gemm->preference);
    CALL(job, gemm, cublasLtMatmulPreferenceSetAttribute, gemm->preference,
         CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes, sizeof workspace_bytes);
    return EXIT_OK;
}

static int open_gemm(struct gpu_job *job)
{
    struct gemm *gemm = job->own;
    const char *why;
    gemm->api = cublaslt_load(&why);
    gemm->type = type_of(job->run);
    gemm->n = run_count(job->run, "n");
    int failure = describe(job);
    if (!failure)
        failure = make_matrices(job);
    if (!failure)
        failure = choose_algorithm(job);
    double n = (double)gemm->n;
    job->work = (struct windows_work){
        .lanes = 1,
        .enqueue = enqueue,
        .work_per_size = 2 * n * n * n,
        .size_min = 1,
        .size_max = PRODUCTS_MAX,
    };
    return failure;
}

static void close_gemm(struct gpu_job *job)
{
    struct gemm *gemm = job->own;
    job->backend->release_memory(gemm->a);
    job->backend->release_memory(gemm->b);
    job->backend->release_memory(gemm->d);
    job->backend->release_memory(gemm->workspace);
    free(gemm->pattern);
    if (gemm->preference)
        gemm->api->cublasLtMatmulPreferenceDestroy(gemm->preference);
    if (gemm->result_layout)
        gemm->api->cublasLtMatrixLayoutDestroy(gemm->result_layout);
    if (gemm->operand_layout)
        gemm->api->cublasLtMatrixLayoutDestroy(gemm->operand_layout);
    if (gemm->operation)
        gemm->api->cublasLtMatmulDescDestroy(gemm->operation);
    /* Waits for the device: not where that may never end. */
    if (gemm->handle && !run_stopping(job->run))
        gemm->api->cublasLtDestroy(gemm->handle);
}

/* Of what rounding allows, the most that an element was away from the host's product. */
static void finish(struct gpu_job *job)
{
    const struct gemm *gemm = job->own;
    run_metric(job->run, "residual", gemm->residual);
}

const struct gpu_kind gemm_kind = {
    .name = "gemm",
    .own_bytes = sizeof(struct gemm),
    .unsupported = unsupported,
    .open = open_gemm,
    .close = close_gemm,
    .verify = verify,
    .finish = finish,
};
