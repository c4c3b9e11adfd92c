/* What the shared kernels are written in, for NVRTC. Half and bfloat16 and what else has no operator
   without headers of a toolkit is PTX. */
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;
typedef uint4 vector16;

#define WANT_fma_fp64
#define WANT_fma_fp32
#define WANT_fma_fp16
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
#if __CUDA_ARCH__ >= 800
#define WANT_fma_bf16
#endif
#if __CUDA_ARCH__ >= 1000 && __CUDA_ARCH__ < 1200 /* elsewhere the compiler takes it apart */
#define WANT_fma_fp32x2
#endif

#define GLOBAL
#define KERNEL extern "C" __global__ void
#define DEVICE static __device__ __forceinline__
/* Groups of 256 work-items, four of them at once on a multiprocessor: at most 64 registers each. */
#define IN_GROUPS __launch_bounds__(256, 4)
#define ONE_WORK_ITEM __launch_bounds__(1)
#define NO_UNROLL _Pragma("unroll 1")
#define UNROLL _Pragma("unroll")

#define LOCAL_ID threadIdx.x
#define GROUP_ID blockIdx.x
#define GLOBAL_ID ((u64)blockIdx.x * blockDim.x + threadIdx.x)
#define GLOBAL_SIZE ((u64)gridDim.x * blockDim.x)

#define FMA32(a, b, c) __fmaf_rn(a, b, c)
#define FMA64(a, b, c) __fma_rn(a, b, c)
#define VECTOR16(x, y, z, w) make_uint4(x, y, z, w)
#define AS_UINT(x) __float_as_uint(x)
#define AS_FLOAT(x) __uint_as_float(x)

/* ---- clocks ---- */

DEVICE u64 cycles_now(void)
{
    u64 now;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
    return now;
}

DEVICE u64 ns_now(void)
{
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    return now;
}

DEVICE u32 multiprocessor(void)
{
    u32 id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    return id;
}

/* For kernels whose groups all work from begin to end: the first one's clocks. */
#define RECORD_BEGIN                                    \
    if (GROUP_ID == 0 && LOCAL_ID == 0) {               \
        record[4 * (u64)slot + 1] = ~ns_now();          \
        record[4 * (u64)slot + 0] = ~cycles_now();      \
    }
#define RECORD_END                                      \
    if (GROUP_ID == 0 && LOCAL_ID == 0) {               \
        record[4 * (u64)slot + 2] = cycles_now();       \
        record[4 * (u64)slot + 3] = ns_now();           \
    }

/* For kernels of many short groups: from the first to the last one on multiprocessor 0. Clocks of
   different multiprocessors have nothing to do with one another. */
#define RECORD_FIRST                                          \
    if (LOCAL_ID == 0 && multiprocessor() == 0) {             \
        atomicMax(&record[4 * (u64)slot + 1], ~ns_now());     \
        atomicMax(&record[4 * (u64)slot + 0], ~cycles_now()); \
    }
#define RECORD_LAST                                           \
    if (LOCAL_ID == 0 && multiprocessor() == 0) {             \
        atomicMax(&record[4 * (u64)slot + 2], cycles_now());  \
        atomicMax(&record[4 * (u64)slot + 3], ns_now());      \
    }

/* ---- half and bfloat16 in pairs ---- */

typedef u32 fp16_pair;
typedef u32 bf16_pair;

/* Already packed by the host: put together here, the compiler would do so again in each iteration. */
#define fp16_operand(k) (u32)OPERAND(8 + k)
#define bf16_operand(k) (u32)OPERAND(12 + k)

DEVICE fp16_pair fp16_fma(fp16_pair a, fp16_pair b, fp16_pair c)
{
    fp16_pair d;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

DEVICE fp16_pair fp16_pack(i32 low, i32 high)
{
    fp16_pair d;
    asm("{ .reg .f16 l, h; cvt.rn.f16.s32 l, %1; cvt.rn.f16.s32 h, %2; mov.b32 %0, {l, h}; }"
        : "=r"(d)
        : "r"(low), "r"(high));
    return d;
}

DEVICE i32 fp16_low(fp16_pair x)
{
    i32 d;
    asm("{ .reg .f16 l, h; mov.b32 {l, h}, %1; cvt.rni.s32.f16 %0, l; }" : "=r"(d) : "r"(x));
    return d;
}

DEVICE i32 fp16_high(fp16_pair x)
{
    i32 d;
    asm("{ .reg .f16 l, h; mov.b32 {l, h}, %1; cvt.rni.s32.f16 %0, h; }" : "=r"(d) : "r"(x));
    return d;
}

#if __CUDA_ARCH__ >= 800
DEVICE bf16_pair bf16_fma(bf16_pair a, bf16_pair b, bf16_pair c)
{
    bf16_pair d;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

/* Whole numbers up to 256 are exact; a bfloat16 is the upper half of a float. */
DEVICE bf16_pair bf16_pack(i32 low, i32 high)
{
    return AS_UINT((float)low) >> 16 | (AS_UINT((float)high) & 0xffff0000u);
}

DEVICE i32 bf16_low(bf16_pair x)
{
    return (i32)AS_FLOAT(x << 16);
}

DEVICE i32 bf16_high(bf16_pair x)
{
    return (i32)AS_FLOAT(x & 0xffff0000u);
}
#endif

#ifdef WANT_fma_fp32x2
typedef u64 fp32_pair;

DEVICE fp32_pair fp32_pair_fma(fp32_pair a, fp32_pair b, fp32_pair c)
{
    fp32_pair d;
    asm("fma.rn.f32x2 %0, %1, %2, %3;" : "=l"(d) : "l"(a), "l"(b), "l"(c));
    return d;
}

DEVICE fp32_pair fp32_pair_pack(float low, float high)
{
    return (u64)AS_UINT(high) << 32 | AS_UINT(low);
}
#endif

/* ---- integers ---- */

DEVICE i32 dot4(i32 a, i32 b, i32 c)
{
    i32 d;
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

/* ---- memory ---- */

DEVICE u64 load_ca(u64 address)
{
    u64 value;
    asm volatile("ld.global.ca.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

DEVICE u64 load_cg(u64 address)
{
    u64 value;
    asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

/* sums[GROUP_ID] = sum of `value` over the group. */
#define GROUP_SCRATCH __shared__ u32 scratch[8];
#define GROUP_SUM(sums, value) group_sum(sums, value, scratch)

DEVICE void group_sum(u32 *sums, u32 value, u32 *scratch)
{
    for (u32 distance = 16; distance != 0; distance /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, distance);
    if (LOCAL_ID % 32 == 0)
        scratch[LOCAL_ID / 32] = value;
    __syncthreads();
    if (LOCAL_ID != 0)
        return;
    for (u32 warp = 1; warp < 8; ++warp)
        value += scratch[warp];
    sums[GROUP_ID] = value;
}
