#include "tensor_shapes.h"

enum {
    WARP = 32,
    WARPS = 8,
    SWIZZLE_ROW = 128,       /* bytes of a row of a swizzled tile */
    SWIZZLE_ROWS = 8,        /* … and rows of the pattern */
    SLICE_BYTES = 32,        /* of K, of one wgmma or tcgen05.mma of any type */
    SHARED_ALIGNMENT = 1024, /* of a swizzled tile */
    SHARED_STEPS = 8,
};

#define SHARED_BYTES(M, N) (SHARED_STEPS * SLICE_BYTES * ((M) + (N)) + SHARED_ALIGNMENT)

#define MMA(SHAPE, DTYPE, TYPE, M, N, K, PRODUCTS, TILES_M, TILES_N, GROUPS)                       \
    {                                                                                              \
        .name = "tensor_mma_" SHAPE "_" DTYPE,                                                     \
        .dtype = DTYPE,                                                                            \
        .type = TYPE,                                                                              \
        .instruction = TENSOR_MMA,                                                                 \
        .m = M,                                                                                    \
        .n = N,                                                                                    \
        .k = K,                                                                                    \
        .products = PRODUCTS,                                                                      \
        .tiles_m = TILES_M,                                                                        \
        .tiles_n = TILES_N,                                                                        \
        .steps = 2,                                                                                \
        .crew = WARP,                                                                              \
        .threads = WARP * WARPS,                                                                   \
        .groups_per_unit = GROUPS,                                                                 \
    }
#define SHARED(NAME, DTYPE, TYPE, INSTRUCTION, M, N, K)                                            \
    {                                                                                              \
        .name = NAME "_" DTYPE,                                                                    \
        .dtype = DTYPE,                                                                            \
        .type = TYPE,                                                                              \
        .instruction = INSTRUCTION,                                                                \
        .m = M,                                                                                    \
        .n = N,                                                                                    \
        .k = K,                                                                                    \
        .products = 1,                                                                             \
        .tiles_m = 1,                                                                              \
        .tiles_n = 1,                                                                              \
        .steps = SHARED_STEPS,                                                                     \
        .crew = 128,                                                                               \
        .threads = 128,                                                                            \
        .groups_per_unit = 2,                                                                      \
        .shared_bytes = SHARED_BYTES(M, N),                                                        \
    }
#define WGMMA(DTYPE, TYPE, K) SHARED("tensor_wgmma_m64n256", DTYPE, TYPE, TENSOR_WGMMA, 64, 256, K)
#define TCGEN05(DTYPE, TYPE, K)                                                                    \
    SHARED("tensor_tcgen05_m128n256", DTYPE, TYPE, TENSOR_TCGEN05, 128, 256, K)

const struct tensor_kernel tensor_kernels[] = {
    TCGEN05("fp16", ELEMENT_FP16, 16),
    WGMMA("fp16", ELEMENT_FP16, 16),
    MMA("m16n8k16", "fp16", ELEMENT_FP16, 16, 8, 16, 1, 2, 4, 2),
    MMA("m16n8k8", "fp16", ELEMENT_FP16, 16, 8, 8, 1, 2, 4, 2),
    MMA("m8n8k4", "fp16", ELEMENT_FP16, 8, 8, 4, 4, 2, 4, 2),
    TCGEN05("bf16", ELEMENT_BF16, 16),
    WGMMA("bf16", ELEMENT_BF16, 16),
    MMA("m16n8k16", "bf16", ELEMENT_BF16, 16, 8, 16, 1, 2, 4, 2),
    TCGEN05("tf32", ELEMENT_TF32, 8),
    WGMMA("tf32", ELEMENT_TF32, 8),
    MMA("m16n8k8", "tf32", ELEMENT_TF32, 16, 8, 8, 1, 2, 4, 2),
    TCGEN05("fp8", ELEMENT_FP8, 32),
    WGMMA("fp8", ELEMENT_FP8, 32),
    MMA("m16n8k32", "fp8", ELEMENT_FP8, 16, 8, 32, 1, 2, 4, 2),
    TCGEN05("int8", ELEMENT_INT8, 32),
    WGMMA("int8", ELEMENT_INT8, 32),
    MMA("m16n8k32", "int8", ELEMENT_INT8, 16, 8, 32, 1, 2, 4, 2),
    MMA("m8n8k16", "int8", ELEMENT_INT8, 8, 8, 16, 1, 4, 4, 2),
    MMA("m16n8k16", "fp64", ELEMENT_FP64, 16, 8, 16, 1, 2, 2, 1),
    MMA("m8n8k4", "fp64", ELEMENT_FP64, 8, 8, 4, 1, 2, 4, 2),
    {.name = NULL},
};

const char *tensor_instruction_name(enum tensor_instruction instruction)
{
    static const char *const names[] = {"mma", "wgmma", "tcgen05"};
    return names[instruction];
}

/* ---- shapes --------------------------------------------------------------------------------- */

unsigned tensor_element_bytes(const struct tensor_kernel *kernel)
{
    return element_bytes(kernel->type);
}

unsigned tensor_result_bytes(const struct tensor_kernel *kernel)
{
    return kernel->type == ELEMENT_FP64 ? 8 : 4;
}

unsigned tensor_a_rows(const struct tensor_kernel *kernel)
{
    return kernel->tiles_m * kernel->products * kernel->m;
}

unsigned tensor_b_rows(const struct tensor_kernel *kernel)
{
    return kernel->tiles_n * kernel->products * kernel->n;
}

unsigned tensor_depth(const struct tensor_kernel *kernel)
{
    return kernel->steps * kernel->k;
}

unsigned tensor_crews(const struct tensor_kernel *kernel)
{
    return kernel->threads / kernel->crew;
}

double tensor_operations(const struct tensor_kernel *kernel)
{
    return 2.0 * kernel->m * kernel->n * kernel->k * kernel->products * kernel->tiles_m *
           kernel->tiles_n * kernel->steps * tensor_crews(kernel);
}

static size_t crew_bytes(const struct tensor_kernel *kernel)
{
    return (size_t)(tensor_a_rows(kernel) + tensor_b_rows(kernel)) * tensor_depth(kernel) *
           tensor_element_bytes(kernel);
}

size_t tensor_operand_bytes(const struct tensor_kernel *kernel)
{
    return tensor_crews(kernel) * crew_bytes(kernel);
}

unsigned tensor_values(const struct tensor_kernel *kernel)
{
    return tensor_group_values(kernel) / kernel->threads;
}

unsigned tensor_group_values(const struct tensor_kernel *kernel)
{
    return kernel->m * kernel->n * kernel->products * kernel->tiles_m * kernel->tiles_n *
           tensor_crews(kernel);
}

size_t tensor_result_index(const struct tensor_kernel *kernel, unsigned group, unsigned thread,
                           unsigned value)
{
    size_t crew = (size_t)group * tensor_crews(kernel) + thread / kernel->crew;
    return (crew * tensor_values(kernel) + value) * kernel->crew + thread % kernel->crew;
}

/* ---- operands in shared memory -------------------------------------------------------------- */

/* K-major, swizzled by 128 bytes: a row has four slices; in each eight rows, 16 bytes of a row stand
 * at the place that is their own exclusive-or the row's (PTX ISA, "Swizzling modes"). */
static size_t swizzled_offset(const struct tensor_kernel *kernel, unsigned rows, unsigned row,
                              unsigned element)
{
    unsigned slice = element / kernel->k;
    unsigned byte = slice * SLICE_BYTES + element % kernel->k * tensor_element_bytes(kernel);
    unsigned tile = byte / SWIZZLE_ROW, in_row = byte % SWIZZLE_ROW;
    unsigned chunk = in_row / 16 ^ row % SWIZZLE_ROWS;
    return ((size_t)tile * rows + row) * SWIZZLE_ROW + chunk * 16 + in_row % 16;
}

/* ---- operands in registers ------------------------------------------------------------------ */

struct fragment {
    unsigned tile, lane, unit, byte; /* `byte` of the lane's register `unit` */
};

static unsigned unit_bytes(const struct tensor_kernel *kernel)
{
    return kernel->type == ELEMENT_FP64 ? 8 : 4;
}

/* m8n8k4 of fp16: lanes 4q to 4q+3 and 16 more have product q, each lane a row of its four elements.
 */
static struct fragment quad_fragment(const struct tensor_kernel *kernel, unsigned row,
                                     unsigned element)
{
    unsigned tile = row / (kernel->products * 8), product = row / 8 % kernel->products;
    unsigned in_row = row % 8;
    unsigned lane = product * 4 + in_row % 4 + (in_row >= 4 ? 16 : 0);
    return (struct fragment){tile, lane, element / 2, element % 2 * 2};
}

/* All others: eight rows by four units of K are a register of the warp, the lane being 4 row + unit;
 * further rows come before further units. */
static struct fragment lane_fragment(const struct tensor_kernel *kernel, unsigned tile_rows,
                                     unsigned row, unsigned element)
{
    unsigned byte = element * tensor_element_bytes(kernel);
    unsigned unit = byte / unit_bytes(kernel), in_tile = row % tile_rows;
    return (struct fragment){
        .tile = row / tile_rows,
        .lane = in_tile % 8 * 4 + unit % 4,
        .unit = in_tile / 8 + unit / 4 * (tile_rows / 8),
        .byte = byte % unit_bytes(kernel),
    };
}

static size_t register_offset(const struct tensor_kernel *kernel, unsigned tiles,
                              unsigned tile_rows, unsigned row, unsigned element)
{
    unsigned step = element / kernel->k, in_step = element % kernel->k;
    struct fragment at = kernel->products > 1 ? quad_fragment(kernel, row, in_step)
                                              : lane_fragment(kernel, tile_rows, row, in_step);
    unsigned units = tile_rows * kernel->products * kernel->k * tensor_element_bytes(kernel) /
                     (WARP * unit_bytes(kernel));
    size_t index = ((size_t)(step * tiles + at.tile) * units + at.unit) * WARP + at.lane;
    return index * unit_bytes(kernel) + at.byte;
}

size_t tensor_a_offset(const struct tensor_kernel *kernel, unsigned crew, unsigned row,
                       unsigned element)
{
    size_t at = kernel->instruction == TENSOR_MMA
                    ? register_offset(kernel, kernel->tiles_m, kernel->m, row, element)
                    : swizzled_offset(kernel, tensor_a_rows(kernel), row, element);
    return crew * crew_bytes(kernel) + at;
}

size_t tensor_b_offset(const struct tensor_kernel *kernel, unsigned crew, unsigned row,
                       unsigned element)
{
    size_t at = kernel->instruction == TENSOR_MMA
                    ? register_offset(kernel, kernel->tiles_n, kernel->n, row, element)
                    : swizzled_offset(kernel, tensor_b_rows(kernel), row, element);
    return crew * crew_bytes(kernel) +
           (size_t)tensor_a_rows(kernel) * tensor_depth(kernel) * tensor_element_bytes(kernel) + at;
}

/* ---- accumulators --------------------------------------------------------------------------- */

static struct tensor_place quad_place(const struct tensor_kernel *kernel, unsigned lane,
                                      unsigned value)
{
    unsigned tile = value / 8, i = value % 8, product = lane % 16 / 4;
    unsigned row = (lane & 1) + (i & 2) + (lane >= 16 ? 4 : 0);
    unsigned column = (i & 1) + (lane & 2) + (i & 4);
    return (struct tensor_place){
        .a_row = (tile / kernel->tiles_n * kernel->products + product) * 8 + row,
        .b_row = (tile % kernel->tiles_n * kernel->products + product) * 8 + column,
    };
}

static struct tensor_place lane_place(const struct tensor_kernel *kernel, unsigned lane,
                                      unsigned value)
{
    unsigned values = kernel->m * kernel->n / WARP; /* of a tile */
    unsigned tile = value / values, i = value % values;
    return (struct tensor_place){
        .a_row = tile / kernel->tiles_n * kernel->m + lane / 4 + i / 2 * 8,
        .b_row = tile % kernel->tiles_n * kernel->n + lane % 4 * 2 + i % 2,
    };
}

struct tensor_place tensor_place(const struct tensor_kernel *kernel, unsigned thread,
                                 unsigned value)
{
    unsigned lane = thread % WARP, warp = thread / WARP;
    switch (kernel->instruction) {
    case TENSOR_MMA:
        return kernel->products > 1 ? quad_place(kernel, lane, value)
                                    : lane_place(kernel, lane, value);
    case TENSOR_WGMMA:
        return (struct tensor_place){
            .a_row = warp * 16 + lane / 4 + value / 2 % 2 * 8,
            .b_row = value / 4 * 8 + lane % 4 * 2 + value % 2,
        };
    case TENSOR_TCGEN05:
        return (struct tensor_place){.a_row = thread, .b_row = value};
    }
    return (struct tensor_place){0, 0};
}
