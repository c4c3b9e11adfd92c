/* What the shared kernels are written in, for OpenCL C 1.2. A program is built for one kernel:
   -D WANT_<name>. What a device lacks is left out, so that the kernel is not found there. */
typedef uint u32;
typedef ulong u64;
typedef int i32;
typedef long i64;
typedef uint4 vector16;

#if defined(WANT_fma_fp64) && !defined(cl_khr_fp64) && !defined(__opencl_c_fp64)
#undef WANT_fma_fp64
#endif
#if defined(WANT_fma_fp16) && !defined(cl_khr_fp16)
#undef WANT_fma_fp16
#endif
#undef WANT_fma_bf16
#undef WANT_fma_fp32x2
#ifdef WANT_fma_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifdef WANT_fma_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif

#define GLOBAL __global
#define KERNEL __kernel void
#define DEVICE static inline
#define IN_GROUPS __attribute__((reqd_work_group_size(256, 1, 1)))
/* Declared as one, or as alike in all of them, a load may become one of AMD's scalar loads, which
   have a cache of their own. */
#define ONE_WORK_ITEM
#define LANE LOCAL_ID
#define NO_UNROLL
/* Arrays of a work-item are in registers only where every index is known. */
#define UNROLL _Pragma("unroll")

#define LOCAL_ID ((u32)get_local_id(0))
#define GROUP_ID ((u32)get_group_id(0))
#define GLOBAL_ID ((u64)get_global_id(0))
#define GLOBAL_SIZE ((u64)get_global_size(0))

#define FMA32(a, b, c) fma(a, b, c)
#define FMA64(a, b, c) fma(a, b, c)
#define VECTOR16(x, y, z, w) ((uint4)(x, y, z, w))
#define AS_UINT(x) as_uint(x)
#define AS_FLOAT(x) as_float(x)

/* OpenCL has no clock that all its devices can read. */
#define RECORD_BEGIN
#define RECORD_END
#define RECORD_FIRST
#define RECORD_LAST

#ifdef WANT_fma_fp16
typedef half2 fp16_pair;
#define fp16_operand(k) fp16_pack(OPERAND(k), OPERAND(4 + k))
#define fp16_fma(a, b, c) fma(a, b, c)
#define fp16_pack(low, high) ((half2)((half)(low), (half)(high)))
#define fp16_low(pair) ((i32)(pair).x)
#define fp16_high(pair) ((i32)(pair).y)
#endif

#if defined(WANT_dp4a_int8) && defined(__opencl_c_integer_dot_product_input_4x8bit_packed)
#pragma OPENCL EXTENSION cl_khr_integer_dot_product : enable
DEVICE i32 dot4(i32 a, i32 b, i32 c)
{
    return c + dot_4x8packed_ss_int(as_uint(a), as_uint(b));
}
#else
DEVICE i32 dot4(i32 a, i32 b, i32 c)
{
    return c + (a << 24 >> 24) * (b << 24 >> 24) + (a << 16 >> 24) * (b << 16 >> 24) +
           (a << 8 >> 24) * (b << 8 >> 24) + (a >> 24) * (b >> 24);
}
/* Where it is no instruction of its own, a compiler sees products of bytes, which it would compute
   before the loop, and sums of products, whose common factors it would take out. So numbers change by
   a zero that it does not know. */
#define DOT4_CHANGE(a, zero) a += zero;
#define DOT4_SUM(x, zero) ((x) ^ zero)
#endif

/* A volatile load passes by the L1 cache (AMD: glc or sc0; NVIDIA: ld.volatile). */
#define load_ca(address) (*(GLOBAL const u64 *)(address))
#define load_cg(address) (*(GLOBAL const volatile u64 *)(address))

#define GROUP_SCRATCH __local u32 scratch[256];
#define GROUP_SUM(sums, value) group_sum(sums, value, scratch)

DEVICE void group_sum(GLOBAL u32 *sums, u32 value, __local u32 *scratch)
{
    const u32 lane = LOCAL_ID;
    scratch[lane] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (u32 distance = 128; distance != 0; distance /= 2) {
        if (lane < distance)
            scratch[lane] += scratch[lane + distance];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0)
        sums[GROUP_ID] = scratch[0];
}
