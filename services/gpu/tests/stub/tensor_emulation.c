/* What the instructions of the tensor kernels do, written down once more and apart from
 * tensor_shapes.c: element by element as the PTX ISA numbers the fragments, and address by address as a
 * shared-memory descriptor is followed. Both agree, or a check fails. */
#include "tensor_emulation.h"

#include "element.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

enum {
    LANES = 32,
    WARPS = 8,
    MMA_STEPS = 2,
    ROWS_MAX = 256,
    DEPTH_MAX = 256,
    SHARED_STEPS = 8,
};

/* A number of elements that a step multiplies: rows by depth. */
struct operand {
    unsigned rows, depth;
    double at[ROWS_MAX][DEPTH_MAX];
};

struct place {
    unsigned row, column;
};

/* ---- the arguments -------------------------------------------------------------------------- */

struct arguments {
    const unsigned char *operands;
    void *results;
    uint32_t *hashes;
    uint32_t passes, rounds;
    unsigned groups;
};

struct sums {
    enum element_type type;
    unsigned kept_bits; /* of a sum's fraction; 0: all that its type has */
};

static double add(const struct sums *sums, double sum, double product)
{
    double exact = sum + product;
    if (sums->type == ELEMENT_INT8 || sums->type == ELEMENT_FP64)
        return exact;
    if (!sums->kept_bits || exact == 0)
        return (float)exact;
    int below = ilogb(exact) - (int)sums->kept_bits;
    return ldexp(trunc(ldexp(exact, -below)), below);
}

static double accumulate(const struct sums *sums, const double *products, unsigned steps,
                         unsigned rounds)
{
    double sum = 0;
    for (unsigned round = 0; round < rounds; round++)
        for (unsigned step = 0; step < steps; step++)
            sum = add(sums, sum, products[step]);
    return sum;
}

/* Leaves an accumulator in all groups, and gives its part of a pass's hash. */
static uint32_t leave(const struct arguments *arguments, enum element_type type, double sum,
                      size_t index, size_t group_values, unsigned value)
{
    uint64_t bits = 0;
    float single = (float)sum;
    int32_t integer = (int32_t)sum;
    if (type == ELEMENT_FP64)
        memcpy(&bits, &sum, sizeof sum);
    else
        memcpy(&bits, type == ELEMENT_INT8 ? (void *)&integer : (void *)&single, 4);
    size_t bytes = type == ELEMENT_FP64 ? 8 : 4;
    for (unsigned group = 0; group < arguments->groups; group++)
        memcpy((char *)arguments->results + (group * group_values + index) * bytes, &bits, bytes);
    return ((uint32_t)bits ^ (uint32_t)(bits >> 32)) * (2 * value + 1);
}

static void leave_hash(const struct arguments *arguments, unsigned threads, unsigned thread,
                       uint32_t hash)
{
    for (unsigned group = 0; group < arguments->groups; group++)
        arguments->hashes[group * threads + thread] += hash * arguments->passes;
}

/* ---- fragments of mma.sync ------------------------------------------------------------------ */

struct shape {
    const char *name; /* of the kernel; NULL: the end */
    enum element_type type;
    unsigned rows, columns, depth; /* of an instruction, all its products together */
    unsigned a_registers, b_registers, c_registers, tiles_m, tiles_n;
    struct place (*a)(unsigned lane, unsigned i); /* row, k */
    struct place (*b)(unsigned lane, unsigned i); /* k, column */
    struct place (*c)(unsigned lane, unsigned i);
};

/* groupID and threadID_in_group */
#define G (lane >> 2)
#define T (lane % 4)
#define PLACE(name, r, k)                                                                          \
    static struct place name(unsigned lane, unsigned i)                                            \
    {                                                                                              \
        (void)i;                                                                                   \
        return (struct place){r, k};                                                               \
    }

/* clang-format off */
PLACE(a_m16n8k16_16bit, i < 2 || (i >= 4 && i < 6) ? G : G + 8, T * 2 + (i & 1) + (i >= 4 ? 8 : 0))
PLACE(b_m16n8k16_16bit, T * 2 + (i & 1) + (i >= 2 ? 8 : 0), G)
PLACE(a_m16n8k8_16bit, i < 2 ? G : G + 8, T * 2 + (i & 1))
PLACE(b_m16n8k8_16bit, T * 2 + i, G)
PLACE(a_m16n8k8_tf32, i == 0 || i == 2 ? G : G + 8, i < 2 ? T : T + 4)
PLACE(b_m16n8k8_tf32, i == 0 ? T : T + 4, G)
PLACE(a_m16n8k32_8bit, i < 4 || (i >= 8 && i < 12) ? G : G + 8, T * 4 + (i & 3) + (i >= 8 ? 16 : 0))
PLACE(b_m16n8k32_8bit, T * 4 + (i & 3) + (i >= 4 ? 16 : 0), G)
PLACE(a_m8n8k16_8bit, G, T * 4 + i)
PLACE(b_m8n8k16_8bit, T * 4 + i, G)
PLACE(a_m8n8k4_fp64, G, T)
PLACE(b_m8n8k4_fp64, T, G)
PLACE(a_m16n8k16_fp64, i % 2 == 0 ? G : G + 8, i % 2 == 0 ? i * 2 + T : i * 2 - 2 + T)
PLACE(b_m16n8k16_fp64, T + i * 4, G)
PLACE(c_8_rows, G, T * 2 + (i & 1))
PLACE(c_16_rows, i < 2 ? G : G + 8, T * 2 + (i & 1))
/* Four products: of lanes 0 to 3 and 16 to 19, and so on. Here they are blocks on a diagonal. */
#define QUADS (lane % 16 / 4 * 8)
PLACE(a_m8n8k4_fp16, QUADS + (lane < 16 ? lane % 4 : lane % 4 + 4), i)
PLACE(b_m8n8k4_fp16, i, QUADS + (lane < 16 ? lane % 4 : lane % 4 + 4))
PLACE(c_m8n8k4_fp16, QUADS + (lane & 1) + (i & 2) + (lane < 16 ? 0 : 4),
      QUADS + (i & 4) + (lane & 2) + (i & 1))

static const struct shape shapes[] = {
    {"tensor_mma_m16n8k16_fp16", ELEMENT_FP16, 16, 8, 16, 4, 2, 4, 2, 4,
     a_m16n8k16_16bit, b_m16n8k16_16bit, c_16_rows},
    {"tensor_mma_m16n8k16_bf16", ELEMENT_BF16, 16, 8, 16, 4, 2, 4, 2, 4,
     a_m16n8k16_16bit, b_m16n8k16_16bit, c_16_rows},
    {"tensor_mma_m16n8k8_fp16", ELEMENT_FP16, 16, 8, 8, 2, 1, 4, 2, 4,
     a_m16n8k8_16bit, b_m16n8k8_16bit, c_16_rows},
    {"tensor_mma_m16n8k8_tf32", ELEMENT_TF32, 16, 8, 8, 4, 2, 4, 2, 4,
     a_m16n8k8_tf32, b_m16n8k8_tf32, c_16_rows},
    {"tensor_mma_m16n8k32_fp8", ELEMENT_FP8, 16, 8, 32, 4, 2, 4, 2, 4,
     a_m16n8k32_8bit, b_m16n8k32_8bit, c_16_rows},
    {"tensor_mma_m16n8k32_int8", ELEMENT_INT8, 16, 8, 32, 4, 2, 4, 2, 4,
     a_m16n8k32_8bit, b_m16n8k32_8bit, c_16_rows},
    {"tensor_mma_m8n8k16_int8", ELEMENT_INT8, 8, 8, 16, 1, 1, 2, 4, 4,
     a_m8n8k16_8bit, b_m8n8k16_8bit, c_8_rows},
    {"tensor_mma_m8n8k4_fp64", ELEMENT_FP64, 8, 8, 4, 1, 1, 2, 2, 4,
     a_m8n8k4_fp64, b_m8n8k4_fp64, c_8_rows},
    {"tensor_mma_m16n8k16_fp64", ELEMENT_FP64, 16, 8, 16, 8, 4, 4, 2, 2,
     a_m16n8k16_fp64, b_m16n8k16_fp64, c_16_rows},
    {"tensor_mma_m8n8k4_fp16", ELEMENT_FP16, 32, 32, 4, 2, 2, 8, 2, 4,
     a_m8n8k4_fp16, b_m8n8k4_fp16, c_m8n8k4_fp16},
    {.name = NULL},
};
/* clang-format on */

static unsigned register_bytes(const struct shape *shape)
{
    return shape->type == ELEMENT_FP64 ? 8 : 4;
}

/* An operand's tile from the registers of a warp, which the kernel loads from `at`: register r of all
 * lanes, then register r + 1. */
static void load(const struct shape *shape, bool a, const unsigned char *at,
                 double tile[LANES][LANES])
{
    unsigned size = element_bytes(shape->type), in_register = register_bytes(shape) / size;
    unsigned registers = a ? shape->a_registers : shape->b_registers;
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned i = 0; i < registers * in_register; i++) {
            struct place place = a ? shape->a(lane, i) : shape->b(lane, i);
            const unsigned char *held =
                at + (i / in_register * LANES + lane) * register_bytes(shape);
            tile[place.row][place.column] =
                element_decode(shape->type, held + i % in_register * size);
        }
}

static double product(const struct shape *shape, struct place place, double a[LANES][LANES],
                      double b[LANES][LANES])
{
    double sum = 0;
    for (unsigned k = 0; k < shape->depth; k++)
        sum += a[place.row][k] * b[k][place.column];
    return sum;
}

static void run_tile(const struct shape *shape, const struct arguments *arguments, unsigned warp,
                     unsigned m, unsigned n, uint32_t *hashes)
{
    static double a[MMA_STEPS][LANES][LANES], b[MMA_STEPS][LANES][LANES];
    const struct sums sums = {.type = shape->type};
    size_t a_bytes = (size_t)shape->a_registers * LANES * register_bytes(shape);
    size_t b_bytes = (size_t)shape->b_registers * LANES * register_bytes(shape);
    size_t a_all = MMA_STEPS * shape->tiles_m * a_bytes;
    size_t b_all = MMA_STEPS * shape->tiles_n * b_bytes;
    const unsigned char *own = arguments->operands + warp * (a_all + b_all);
    unsigned values = shape->tiles_m * shape->tiles_n * shape->c_registers;
    for (unsigned step = 0; step < MMA_STEPS; step++) {
        load(shape, true, own + (step * shape->tiles_m + m) * a_bytes, a[step]);
        load(shape, false, own + a_all + (step * shape->tiles_n + n) * b_bytes, b[step]);
    }
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned i = 0; i < shape->c_registers; i++) {
            double products[MMA_STEPS];
            unsigned value = (m * shape->tiles_n + n) * shape->c_registers + i;
            for (unsigned step = 0; step < MMA_STEPS; step++)
                products[step] = product(shape, shape->c(lane, i), a[step], b[step]);
            hashes[lane] += leave(
                arguments, shape->type, accumulate(&sums, products, MMA_STEPS, arguments->rounds),
                (warp * values + value) * LANES + lane, WARPS * values * LANES, value);
        }
}

static void run_mma(const struct shape *shape, const struct arguments *arguments)
{
    for (unsigned warp = 0; warp < WARPS; warp++) {
        uint32_t hashes[LANES] = {0};
        for (unsigned m = 0; m < shape->tiles_m; m++)
            for (unsigned n = 0; n < shape->tiles_n; n++)
                run_tile(shape, arguments, warp, m, n, hashes);
        for (unsigned lane = 0; lane < LANES; lane++)
            leave_hash(arguments, WARPS * LANES, warp * LANES + lane, hashes[lane]);
    }
}

/* ---- operands in shared memory -------------------------------------------------------------- */

enum { CREW = 128, N = 256 };

/* Byte `k` of a slice's row: eight rows stand 1024 bytes from the next eight, rows 128 bytes from one
 * another; then bits 4 to 6 of the address are made exclusive-or with bits 7 to 9. */
static double element_at(const unsigned char *shared, unsigned start, unsigned row, unsigned k,
                         enum element_type type)
{
    unsigned address = start + row / 8 * 1024 + row % 8 * 128 + k;
    address ^= (address >> 7 & 7) << 4;
    return element_decode(type, shared + address);
}

static void read_operand(struct operand *operand, const unsigned char *shared, unsigned from,
                         unsigned rows, enum element_type type)
{
    unsigned size = element_bytes(type), in_slice = 32 / size;
    operand->rows = rows;
    operand->depth = SHARED_STEPS * in_slice;
    for (unsigned step = 0; step < SHARED_STEPS; step++) {
        unsigned start = from + step / 4 * rows * 128 + step % 4 * 32;
        for (unsigned row = 0; row < rows; row++)
            for (unsigned i = 0; i < in_slice; i++)
                operand->at[row][step * in_slice + i] =
                    element_at(shared, start, row, i * size, type);
    }
}

static struct place of_wgmma(unsigned thread, unsigned i)
{
    unsigned lane = thread % LANES;
    return (struct place){thread / LANES * 16 + G + (i & 2 ? 8 : 0), i / 4 * 8 + T * 2 + (i & 1)};
}

/* Lane and column of tensor memory. */
static struct place of_tcgen05(unsigned thread, unsigned i)
{
    return (struct place){thread, i};
}

/* The sums of the last launch, which the next one mostly repeats. */
static struct {
    enum element_type type;
    unsigned m, rounds;
    unsigned char operands[(128 + N) * SHARED_STEPS * 32];
    double sums[CREW * N];
} last;

static void sum_up(const struct arguments *arguments, enum element_type type, unsigned m,
                   struct place (*place_of)(unsigned thread, unsigned i))
{
    static struct operand a, b;
    const unsigned values = m * N / CREW;
    /* FP8 of 9.0 keeps 14 bits of a sum. */
    const struct sums sums = {type, type == ELEMENT_FP8 && m == 64 ? 13 : 0};
    read_operand(&a, arguments->operands, 0, m, type);
    read_operand(&b, arguments->operands, m * SHARED_STEPS * 32, N, type);
    unsigned in_slice = a.depth / SHARED_STEPS;
    for (unsigned thread = 0; thread < CREW; thread++)
        for (unsigned i = 0; i < values; i++) {
            struct place place = place_of(thread, i);
            double products[SHARED_STEPS] = {0};
            for (unsigned k = 0; k < a.depth; k++)
                products[k / in_slice] += a.at[place.row][k] * b.at[place.column][k];
            last.sums[thread * values + i] =
                accumulate(&sums, products, SHARED_STEPS, arguments->rounds);
        }
}

static void run_shared(const struct arguments *arguments, enum element_type type, unsigned m,
                       struct place (*place_of)(unsigned thread, unsigned i))
{
    const unsigned values = m * N / CREW;
    const size_t bytes = (size_t)(m + N) * SHARED_STEPS * 32;
    if (last.type != type || last.m != m || last.rounds != arguments->rounds ||
        memcmp(last.operands, arguments->operands, bytes) != 0) {
        sum_up(arguments, type, m, place_of);
        last.type = type;
        last.m = m;
        last.rounds = arguments->rounds;
        memcpy(last.operands, arguments->operands, bytes);
    }
    for (unsigned thread = 0; thread < CREW; thread++) {
        uint32_t hash = 0;
        for (unsigned i = 0; i < values; i++)
            hash += leave(arguments, type, last.sums[thread * values + i], i * CREW + thread,
                          (size_t)m * N, i);
        leave_hash(arguments, CREW, thread, hash);
    }
}

static bool shared_type(const char *name, const char *prefix, enum element_type *type)
{
    static const struct {
        const char *name;
        enum element_type type;
    } types[] = {{"fp16", ELEMENT_FP16},
                 {"bf16", ELEMENT_BF16},
                 {"tf32", ELEMENT_TF32},
                 {"fp8", ELEMENT_FP8},
                 {"int8", ELEMENT_INT8}};
    size_t length = strlen(prefix);
    if (strncmp(name, prefix, length) != 0)
        return false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(name + length, types[i].name)) {
            *type = types[i].type;
            return true;
        }
    return false;
}

/* A clock of 1 GHz: so many cycles as nanoseconds. */
static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int tensor_emulate(const char *name, unsigned groups, void **parameters)
{
    const struct shape *shape = shapes;
    enum element_type type = ELEMENT_FP16;
    bool wgmma = shared_type(name, "tensor_wgmma_m64n256_", &type);
    bool tcgen05 = shared_type(name, "tensor_tcgen05_m128n256_", &type);
    while (shape->name && strcmp(shape->name, name) != 0)
        shape++;
    if (!shape->name && !wgmma && !tcgen05)
        return -1;
    if (!groups)
        return 0;
    const struct arguments arguments = {
        .operands = *(void **)parameters[0],
        .results = *(void **)parameters[1],
        .hashes = *(void **)parameters[2],
        .passes = *(uint32_t *)parameters[3],
        .rounds = *(uint32_t *)parameters[4],
        .groups = groups,
    };
    uint64_t *record = (uint64_t *)*(void **)parameters[5] + 4 * *(uint32_t *)parameters[6];
    record[0] = record[1] = ~now_ns();
    if (shape->name)
        run_mma(shape, &arguments);
    else if (wgmma)
        run_shared(&arguments, type, 64, of_wgmma);
    else
        run_shared(&arguments, type, 128, of_tcgen05);
    record[2] = record[3] = now_ns();
    return 0;
}
