/* The rows of the workloads that only compute. */
#include "compute.h"
#include "gpu_workloads.h"
#include "rows.h"

static const char *const floats[] = {"fp64", "fp32", "fp16", "bf16", NULL};
static const char *const integers[] = {"int32", "int64", NULL};

static const struct param fma_params[] = {
    ROWS_DTYPE(
        "fp32", floats,
        "fp64: double precision; fp32: single precision; fp16 and bf16: half precision, in pairs."),
    ROWS_PARAMS,
    {.name = NULL},
};
static const struct param integer_params[] = {
    ROWS_DTYPE("int32", integers, "Width of the integers."),
    ROWS_PARAMS,
    {.name = NULL},
};
static const struct param plain_params[] = {ROWS_PARAMS, {.name = NULL}};

static const struct metric metrics[] = {
    GPU_METRICS("operation/s", HIGHER_IS_BETTER), GPU_CYCLE_METRICS, {.name = NULL}};

const struct workload fma_workload = {
    .name = "fma",
    .description = "Chains of fused multiply-adds in registers, in every lane of the device.",
    .params = fma_params,
    .metrics = metrics,
    .own = &fma_kind,
    .setup_s = ROWS_SETUP_S,
    ROWS_OPERATIONS("A fused multiply-add counts as two operations."),
    ROWS_BULK,
};

const struct workload int_add_workload = {
    .name = "int_add",
    .description = "Integer additions in registers.",
    .params = integer_params,
    .metrics = metrics,
    .own = &int_add_kind,
    .setup_s = ROWS_SETUP_S,
    ROWS_OPERATIONS("An addition counts as one operation."),
    ROWS_BULK,
};

const struct workload int_mul_add_workload = {
    .name = "int_mul_add",
    .description = "Integer multiply-adds in registers.",
    .params = integer_params,
    .metrics = metrics,
    .own = &int_mul_add_kind,
    .setup_s = ROWS_SETUP_S,
    ROWS_OPERATIONS("A multiply-add counts as two operations."),
    ROWS_BULK,
};

const struct workload dp4a_workload = {
    .name = "dp4a",
    .description = "Dot products of four 8-bit integers, added to a 32-bit integer, in registers.",
    .params = plain_params,
    .metrics = metrics,
    .own = &dp4a_kind,
    .setup_s = ROWS_SETUP_S,
    ROWS_OPERATIONS("A dot product with its addition counts as eight operations."),
    ROWS_BULK,
};
