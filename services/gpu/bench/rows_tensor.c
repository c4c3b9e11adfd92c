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
               "Type of the operands; fp8 is e4m3. Sums are int32 for int8, fp64 for fp64 and fp32 "
               "for all others."),
    {.name = "instruction",
     .type = PARAM_CHOICE,
     .initial = "auto",
     .choices = instructions,
     .roles = ROLE_TAG,
     .resolved = "auto",
     .help = "auto: tcgen05 (compute capability 10.0 and 10.3) or wgmma (9.0) if the device has it "
             "for this type, otherwise mma (mma.sync)."},
    ROWS_PARAMS,
    {.name = NULL},
};

static const struct param gemm_params[] = {
    ROWS_DTYPE("bf16", gemm_dtypes,
               "Type of the operands; fp8 is e4m3 with a result in bf16. tf32 is stored in memory "
               "as fp32."),
    {.name = "n",
     .type = PARAM_COUNT,
     .initial = "8192",
     .min = 16,
     .max = 65536,
     .help = "Order of the matrices; with fp8, a multiple of 16."},
    ROWS_PARAMS,
    {.name = NULL},
};

static const struct metric tensor_metrics[] = {
    GPU_METRICS("operation/s", HIGHER_IS_BETTER), GPU_CYCLE_METRICS, {.name = NULL}};

static const struct metric gemm_metrics[] = {
    GPU_METRICS("operation/s", HIGHER_IS_BETTER),
    {"residual", "1", LOWER_IS_BETTER,
     "Largest difference between a sampled element and the host's product, divided by the "
     "difference that rounding allows."},
    {.name = NULL}};

const struct workload tensor_workload = {
    .name = "tensor",
    .description =
        "Products of small matrices in the tensor cores, with operands in registers or shared "
        "memory: the peak rate of the tensor cores, which products of large matrices do not reach.",
    .params = tensor_params,
    .metrics = tensor_metrics,
    .own = &tensor_kind,
    .setup_s = 0.9,
    ROWS_OPERATIONS("A multiplication with its addition counts as two operations."),
    ROWS_BULK,
};

const struct workload gemm_workload = {
    .name = "gemm",
    .description =
        "Multiplies square matrices in device memory with cuBLASLt, which must be installed.",
    .params = gemm_params,
    .metrics = gemm_metrics,
    .own = &gemm_kind,
    .setup_s = 1.1,
    .resolve = gemm_resolve,
    ROWS_OPERATIONS("A product counts as 2 n^3 operations."),
    ROWS_BULK,
};
