/* The rows of the workloads that multiply matrices. */
#include "gemm.h"
#include "gpu_workloads.h"
#include "rows.h"
#include "tensor.h"

static const char *const tensor_dtypes[] = {"fp16", "bf16", "tf32", "fp8", "int8", "fp64", NULL};
static const char *const instructions[] = {"auto", "mma", "wgmma", "tcgen05", NULL};
static const char *const gemm_dtypes[] = {"fp16", "bf16", "tf32", "fp32", "fp64", "fp8", NULL};

static const struct param tensor_params[] = {
    ROWS_DTYPE("bf16", tensor_dtypes,
               "Of the operands; fp8 is e4m3. Sums are fp32, of int8 int32, of fp64 fp64."),
    {.name = "instruction",
     .type = PARAM_CHOICE,
     .initial = "auto",
     .choices = instructions,
     .roles = ROLE_TAG,
     .resolved = "auto",
     .help = "auto: tcgen05 (compute capability 10.0 and 10.3) or wgmma (9.0) where the device has "
             "it for this type, else mma (mma.sync)."},
    ROWS_PARAMS,
    {.name = NULL},
};

static const struct param gemm_params[] = {
    ROWS_DTYPE("bf16", gemm_dtypes,
               "Of the operands; fp8 is e4m3, with a result in bf16. tf32 has fp32 in memory."),
    {.name = "n",
     .type = PARAM_COUNT,
     .initial = "8192",
     .min = 16,
     .max = 65536,
     .help = "Order of the matrices; of fp8 a multiple of 16."},
    ROWS_PARAMS,
    {.name = NULL},
};

static const struct metric tensor_metrics[] = {
    GPU_METRICS("operation/s", HIGHER_IS_BETTER), GPU_CYCLE_METRICS, {.name = NULL}};

static const struct metric gemm_metrics[] = {
    GPU_METRICS("operation/s", HIGHER_IS_BETTER),
    {"residual", "1", LOWER_IS_BETTER,
     "The largest difference of a sampled element from the host's product / what rounding allows."},
    {.name = NULL}};

const struct workload tensor_workload = {
    .name = "tensor",
    .description =
        "Products of small matrices in the tensor cores, operands in registers or shared "
        "memory: the rate of the pipe, which no product of large matrices reaches.",
    .params = tensor_params,
    .metrics = tensor_metrics,
    .own = &tensor_kind,
    .setup_s = 0.9,
    ROWS_OPERATIONS("A multiplication with its addition is two operations."),
    ROWS_BULK,
};

const struct workload gemm_workload = {
    .name = "gemm",
    .description =
        "Products of square matrices in device memory by cuBLASLt, where it is installed.",
    .params = gemm_params,
    .metrics = gemm_metrics,
    .own = &gemm_kind,
    .setup_s = 1.1,
    .resolve = gemm_resolve,
    ROWS_OPERATIONS("2 n^3 operations a product."),
    ROWS_BULK,
};
