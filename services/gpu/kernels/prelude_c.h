/* What the shared kernels are written in, for C: work-items run one after the other. */
#include <stdint.h>
#include <string.h>

typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t i32;
typedef int64_t i64;
typedef struct {
    u32 x, y, z, w;
} vector16;

#define WANT_fma_fp64
#define WANT_fma_fp32
#define WANT_fma_fp16
#define WANT_fma_bf16
#define WANT_fma_fp32x2
#define WANT_int_add_int32
#define WANT_int_add_int64
#define WANT_int_mul_add_int32
#define WANT_int_mul_add_int64
#define WANT_dp4a_int8
#define WANT_fill
#define WANT_read
#define WANT_write
#define WANT_copy
#define WANT_fill_float
#define WANT_triad
#define WANT_check
#define WANT_check_triad
#define WANT_chase_link
#define WANT_pointer_chase_ca
#define WANT_pointer_chase_cg
#define WANT_empty

#define GLOBAL
#define KERNEL static void
#define DEVICE static inline
#define IN_GROUPS
#define ONE_WORK_ITEM
#define NO_UNROLL
#define UNROLL

/* Of the work-item that runs on this thread. */
static _Thread_local struct {
    u32 group, local, groups, group_size;
} here;

#define LOCAL_ID here.local
#define GROUP_ID here.group
#define GLOBAL_ID ((u64)here.group * here.group_size + here.local)
#define GLOBAL_SIZE ((u64)here.groups * here.group_size)

/* Exact for the whole numbers that the kernels compute with, and fast without an FMA instruction. */
#define FMA32(a, b, c) ((a) * (b) + (c))
#define FMA64(a, b, c) ((a) * (b) + (c))
#define VECTOR16(x, y, z, w) ((vector16){x, y, z, w})

DEVICE u32 as_uint(float value)
{
    u32 bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

DEVICE float as_float(u32 bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#define AS_UINT(x) as_uint(x)
#define AS_FLOAT(x) as_float(x)

u64 emulated_cycles(void);
u64 emulated_ns(void);

#define RECORD_BEGIN                                     \
    if (GROUP_ID == 0 && LOCAL_ID == 0) {                \
        record[4 * (u64)slot + 0] = ~emulated_cycles();  \
        record[4 * (u64)slot + 1] = ~emulated_ns();      \
    }
#define RECORD_END                                                              \
    if (GROUP_ID == here.groups - 1 && LOCAL_ID == here.group_size - 1) {       \
        record[4 * (u64)slot + 2] = emulated_cycles();                          \
        record[4 * (u64)slot + 3] = emulated_ns();                              \
    }
#define RECORD_FIRST RECORD_BEGIN
#define RECORD_LAST RECORD_END

typedef struct {
    float low, high;
} float_pair;
typedef float_pair fp16_pair;
typedef float_pair bf16_pair;
typedef float_pair fp32_pair;

DEVICE float_pair pair_fma(float_pair a, float_pair b, float_pair c)
{
    return (float_pair){a.low * b.low + c.low, a.high * b.high + c.high};
}

#define fp16_operand(k) fp16_pack(OPERAND(k), OPERAND(4 + k))
#define fp16_fma(a, b, c) pair_fma(a, b, c)
#define fp16_pack(first, second) ((float_pair){(float)(first), (float)(second)})
#define fp16_low(x) ((i32)(x).low)
#define fp16_high(x) ((i32)(x).high)
#define bf16_operand(k) bf16_pack(OPERAND(k), OPERAND(4 + k))
#define bf16_fma(a, b, c) pair_fma(a, b, c)
#define bf16_pack(first, second) fp16_pack(first, second)
#define bf16_low(x) ((i32)(x).low)
#define bf16_high(x) ((i32)(x).high)
#define fp32_pair_fma(a, b, c) pair_fma(a, b, c)
#define fp32_pair_pack(first, second) fp16_pack(first, second)
#define FP32_PAIR_LOW(x) ((x).low)
#define FP32_PAIR_HIGH(x) ((x).high)

DEVICE i32 dot4(i32 a, i32 b, i32 c)
{
    u32 sum = (u32)c;
    for (int byte = 0; byte < 4; ++byte)
        sum += (u32)((int8_t)((u32)a >> 8 * byte) * (int8_t)((u32)b >> 8 * byte));
    return (i32)sum;
}

#define load_ca(address) (*(const volatile u64 *)(address))
#define load_cg(address) (*(const volatile u64 *)(address))

#define GROUP_SCRATCH
#define GROUP_SUM(sums, value) \
    ((sums)[GROUP_ID] = (LOCAL_ID == 0 ? 0 : (sums)[GROUP_ID]) + (value))
