/* Stands in for libcublasLt.so.12: products of small matrices, computed on the host. STUB_FAIL of stub.h
 * makes its calls fail, with a cublasStatus_t; STUB_PRODUCT makes that element of each product wrong.
 */
#define _GNU_SOURCE
#include "cublaslt_api.h"
#include "element.h"
#include "stub.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))
#define DECLARE(result, name, parameters) EXPORT result name parameters;
CUBLASLT_ENTRY_POINTS(DECLARE)
#undef DECLARE

struct cublasLtContext {
    int unused;
};

struct cublasLtMatmulDescOpaque {
    int compute, scale_type, transposed;
};

struct cublasLtMatrixLayoutOpaque {
    int type;
    uint64_t rows, columns;
    int64_t ld;
};

struct cublasLtMatmulPreferenceOpaque {
    size_t workspace_bytes;
};

#define ENTER                                                                                      \
    do {                                                                                           \
        int failure_ = stub_call(__func__);                                                        \
        if (failure_)                                                                              \
            return failure_;                                                                       \
    } while (0)

#define MAKE(pointer, kind)                                                                        \
    do {                                                                                           \
        ENTER;                                                                                     \
        *(pointer) = calloc(1, sizeof **(pointer));                                                \
        stub_keep(kind, 1);                                                                        \
    } while (0)

#define DROP(pointer, kind)                                                                        \
    do {                                                                                           \
        ENTER;                                                                                     \
        free(pointer);                                                                             \
        stub_keep(kind, -1);                                                                       \
        return CUBLAS_STATUS_SUCCESS;                                                              \
    } while (0)

size_t cublasLtGetVersion(void)
{
    return 120901;
}

int cublasLtCreate(cublaslt_handle *handle)
{
    MAKE(handle, "cuBLASLt handle");
    return CUBLAS_STATUS_SUCCESS;
}

int cublasLtDestroy(cublaslt_handle handle)
{
    DROP(handle, "cuBLASLt handle");
}

int cublasLtMatmulDescCreate(cublaslt_operation *operation, int compute, int scale_type)
{
    MAKE(operation, "operation");
    (*operation)->compute = compute;
    (*operation)->scale_type = scale_type;
    return CUBLAS_STATUS_SUCCESS;
}

int cublasLtMatmulDescDestroy(cublaslt_operation operation)
{
    DROP(operation, "operation");
}

int cublasLtMatmulDescSetAttribute(cublaslt_operation operation, int attribute, const void *value,
                                   size_t bytes)
{
    ENTER;
    if (attribute != CUBLASLT_MATMUL_DESC_TRANSA || bytes != 4)
        return CUBLAS_STATUS_INVALID_VALUE;
    operation->transposed = *(const int32_t *)value == CUBLAS_OP_T;
    return CUBLAS_STATUS_SUCCESS;
}

int cublasLtMatrixLayoutCreate(cublaslt_layout *layout, int type, uint64_t rows, uint64_t columns,
                               int64_t ld)
{
    MAKE(layout, "layout");
    **layout = (struct cublasLtMatrixLayoutOpaque){type, rows, columns, ld};
    return CUBLAS_STATUS_SUCCESS;
}

int cublasLtMatrixLayoutDestroy(cublaslt_layout layout)
{
    DROP(layout, "layout");
}

int cublasLtMatmulPreferenceCreate(cublaslt_preference *preference)
{
    MAKE(preference, "preference");
    return CUBLAS_STATUS_SUCCESS;
}

int cublasLtMatmulPreferenceDestroy(cublaslt_preference preference)
{
    DROP(preference, "preference");
}

int cublasLtMatmulPreferenceSetAttribute(cublaslt_preference preference, int attribute,
                                         const void *value, size_t bytes)
{
    ENTER;
    if (attribute != CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES || bytes != sizeof(size_t))
        return CUBLAS_STATUS_INVALID_VALUE;
    preference->workspace_bytes = *(const size_t *)value;
    return CUBLAS_STATUS_SUCCESS;
}

/* FP8 has A transposed, B not, and sides that are multiples of 16, as the library's own. */
int cublasLtMatmulAlgoGetHeuristic(cublaslt_handle handle, cublaslt_operation operation,
                                   cublaslt_layout a, cublaslt_layout b, cublaslt_layout c,
                                   cublaslt_layout d, cublaslt_preference preference, int most,
                                   struct cublaslt_algorithm *algorithms, int *count)
{
    static const int states[] = {CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_NOT_SUPPORTED,
                                 CUBLAS_STATUS_SUCCESS};
    ENTER;
    (void)handle, (void)c, (void)d;
    if (a->type != b->type || a->columns != b->rows)
        return CUBLAS_STATUS_INVALID_VALUE;
    *count = a->type == CUDA_R_8F_E4M3 && (a->rows % 16 || !operation->transposed) ? 0 : 3;
    for (int i = 0; i < *count && i < most; i++)
        algorithms[i] = (struct cublaslt_algorithm){.data = {(uint64_t)i + 1},
                                                    .workspace_bytes = preference->workspace_bytes,
                                                    .state = states[i]};
    return CUBLAS_STATUS_SUCCESS;
}

static enum element_type element_of(const struct cublasLtMatrixLayoutOpaque *layout, int compute)
{
    switch (layout->type) {
    case CUDA_R_64F:
        return ELEMENT_FP64;
    case CUDA_R_16F:
        return ELEMENT_FP16;
    case CUDA_R_16BF:
        return ELEMENT_BF16;
    case CUDA_R_8F_E4M3:
        return ELEMENT_FP8;
    default:
        return compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? ELEMENT_TF32 : ELEMENT_FP32;
    }
}

static double *decoded(const void *matrix, cublaslt_layout layout, int compute)
{
    uint64_t count = layout->rows * layout->columns;
    enum element_type type = element_of(layout, compute);
    double *numbers = calloc(count, sizeof *numbers);
    for (uint64_t i = 0; i < count; i++)
        numbers[i] = element_decode(type, (const char *)matrix + i * element_bytes(type));
    return numbers;
}

/* As the library's own: through the driver that is already loaded, behind what was queued. */
static int after_the_queue(void *stream)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    int (*synchronize)(void *) =
        driver ? (int (*)(void *))dlsym(driver, "cuStreamSynchronize") : NULL;
    int failure = !synchronize || synchronize(stream);
    if (driver)
        dlclose(driver);
    return failure ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

int cublasLtMatmul(cublaslt_handle handle, cublaslt_operation operation, const void *alpha,
                   const void *a, cublaslt_layout a_layout, const void *b, cublaslt_layout b_layout,
                   const void *beta, const void *c, cublaslt_layout c_layout, void *d,
                   cublaslt_layout d_layout, const struct cublaslt_algorithm *algorithm,
                   void *workspace, size_t workspace_bytes, void *stream)
{
    ENTER;
    (void)handle, (void)c, (void)c_layout, (void)workspace;
    bool fp64 = operation->scale_type == CUDA_R_64F;
    double one = fp64 ? *(const double *)alpha : (double)*(const float *)alpha;
    double zero = fp64 ? *(const double *)beta : (double)*(const float *)beta;
    if (one != 1 || zero != 0 || !operation->transposed || algorithm->state ||
        workspace_bytes < algorithm->workspace_bytes || after_the_queue(stream))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    uint64_t n = d_layout->rows;
    double *left = decoded(a, a_layout, operation->compute);
    double *right = decoded(b, b_layout, operation->compute);
    enum element_type type = element_of(d_layout, CUBLAS_COMPUTE_32F);
    long wrong = stub_number("STUB_PRODUCT", -1);
    for (uint64_t column = 0; column < n; column++)
        for (uint64_t row = 0; row < n; row++) {
            double sum = 0;
            for (uint64_t k = 0; k < n; k++)
                sum += left[row * n + k] * right[column * n + k];
            if ((long)(column * n + row) == wrong)
                sum += 1;
            element_encode(type, (char *)d + (column * n + row) * element_bytes(type), sum);
        }
    free(left);
    free(right);
    return CUBLAS_STATUS_SUCCESS;
}
