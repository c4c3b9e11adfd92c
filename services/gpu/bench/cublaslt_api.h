/* The part of cuBLASLt that gemm calls, found at run time. Types, values and entry points are those of
 * the cuBLAS documentation (docs.nvidia.com/cuda/cublas, "Using the cuBLASLt API"); they are the same
 * in versions 11 to 13. */
#ifndef GPU_BENCH_CUBLASLT_API_H
#define GPU_BENCH_CUBLASLT_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct cublasLtContext *cublaslt_handle;
typedef struct cublasLtMatmulDescOpaque *cublaslt_operation;
typedef struct cublasLtMatrixLayoutOpaque *cublaslt_layout;
typedef struct cublasLtMatmulPreferenceOpaque *cublaslt_preference;

enum cublaslt_status {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_INTERNAL_ERROR = 14,
    CUBLAS_STATUS_NOT_SUPPORTED = 15,
};

/* cudaDataType_t */
enum cublaslt_type {
    CUDA_R_32F = 0,
    CUDA_R_64F = 1,
    CUDA_R_16F = 2,
    CUDA_R_16BF = 14,
    CUDA_R_8F_E4M3 = 28,
};

/* cublasComputeType_t */
enum cublaslt_compute {
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_64F = 70,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
};

enum {
    CUBLAS_OP_T = 1,
    CUBLASLT_MATMUL_DESC_TRANSA = 3,              /* of an int32; B is not transposed by default */
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1, /* of a size_t */
};

/* cublasLtMatmulHeuristicResult_t */
struct cublaslt_algorithm {
    uint64_t data[8];
    size_t workspace_bytes;
    int state; /* a cublaslt_status */
    float waves;
    int reserved[4];
};

#define CUBLASLT_ENTRY_POINTS(ENTRY)                                                               \
    ENTRY(int, cublasLtCreate, (cublaslt_handle * handle))                                         \
    ENTRY(int, cublasLtDestroy, (cublaslt_handle handle))                                          \
    ENTRY(size_t, cublasLtGetVersion, (void))                                                      \
    ENTRY(int, cublasLtMatmulDescCreate,                                                           \
          (cublaslt_operation * operation, int compute, int scale_type))                           \
    ENTRY(int, cublasLtMatmulDescDestroy, (cublaslt_operation operation))                          \
    ENTRY(int, cublasLtMatmulDescSetAttribute,                                                     \
          (cublaslt_operation operation, int attribute, const void *value, size_t bytes))          \
    ENTRY(int, cublasLtMatrixLayoutCreate,                                                         \
          (cublaslt_layout * layout, int type, uint64_t rows, uint64_t columns, int64_t ld))       \
    ENTRY(int, cublasLtMatrixLayoutDestroy, (cublaslt_layout layout))                              \
    ENTRY(int, cublasLtMatmulPreferenceCreate, (cublaslt_preference * preference))                 \
    ENTRY(int, cublasLtMatmulPreferenceDestroy, (cublaslt_preference preference))                  \
    ENTRY(int, cublasLtMatmulPreferenceSetAttribute,                                               \
          (cublaslt_preference preference, int attribute, const void *value, size_t bytes))        \
    ENTRY(int, cublasLtMatmulAlgoGetHeuristic,                                                     \
          (cublaslt_handle handle, cublaslt_operation operation, cublaslt_layout a,                \
           cublaslt_layout b, cublaslt_layout c, cublaslt_layout d,                                \
           cublaslt_preference preference, int most, struct cublaslt_algorithm *algorithms,        \
           int *count))                                                                            \
    ENTRY(int, cublasLtMatmul,                                                                     \
          (cublaslt_handle handle, cublaslt_operation operation, const void *alpha, const void *a, \
           cublaslt_layout a_layout, const void *b, cublaslt_layout b_layout, const void *beta,    \
           const void *c, cublaslt_layout c_layout, void *d, cublaslt_layout d_layout,             \
           const struct cublaslt_algorithm *algorithm, void *workspace, size_t workspace_bytes,    \
           void *stream))

struct cublaslt_api {
#define CUBLASLT_MEMBER(result, name, parameters) result(*name) parameters;
    CUBLASLT_ENTRY_POINTS(CUBLASLT_MEMBER)
#undef CUBLASLT_MEMBER
};

/* NULL, and in *why what was looked for. Loaded once and kept; the texts last. */
const struct cublaslt_api *cublaslt_load(const char **why);
/* Of the one that was loaded: "12.9.1", and the file, symbolic links resolved ("": not known). */
const char *cublaslt_version(void);
const char *cublaslt_path(void);
/* CUBLAS_STATUS_NOT_SUPPORTED; NULL: a status that this program has no name for. */
const char *cublaslt_status_name(int status);

#endif
