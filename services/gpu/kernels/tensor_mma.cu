/* mma.sync: a warp's own operands and accumulators, all in registers.
 *
 * A warp has TILES_M x TILES_N accumulator tiles and STEPS sets of operands; in a step each tile takes
 * the product of its row's A and its column's B. Two consecutive instructions never write the same
 * tile, and no two tiles of a group have the same operands. Instruction forms and the place of every
 * element in its fragment: PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions". */

enum { WARPS = 8, STEPS = 2 };

/* Unit and Value: what a register of an operand and of an accumulator holds. */
template <class UNIT, class VALUE, int A, int B, int C, int M, int N> struct fragments {
    typedef UNIT unit;
    typedef VALUE value;
    enum { A_REGISTERS = A, B_REGISTERS = B, C_REGISTERS = C, TILES_M = M, TILES_N = N };
};

#define MMA_4_2_4(NAME, VALUE, CONSTRAINT, INSTRUCTION)                                            \
    struct NAME : fragments<u32, VALUE, 4, 2, 4, 2, 4> {                                           \
        static __device__ void mma(VALUE *c, const u32 *a, const u32 *b)                           \
        {                                                                                          \
            asm volatile("mma.sync.aligned." INSTRUCTION                                           \
                         " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"        \
                         : "+" CONSTRAINT(c[0]), "+" CONSTRAINT(c[1]), "+" CONSTRAINT(c[2]),       \
                           "+" CONSTRAINT(c[3])                                                    \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));      \
        }                                                                                          \
    };

#define KERNEL(NAME, SHAPE, GROUPS_PER_UNIT)                                                       \
    extern "C" __global__ void __launch_bounds__(WARPS * 32, GROUPS_PER_UNIT)                      \
        NAME(const SHAPE::unit *operands, SHAPE::value *results, u32 *hashes, u32 passes,          \
             u32 rounds, tensor_record *records, u32 slot)                                         \
    {                                                                                              \
        pipe<SHAPE>(operands, results, hashes, passes, rounds, records, slot);                     \
    }

template <class S>
__device__ inline void pipe(const typename S::unit *operands, typename S::value *results,
                            u32 *hashes, u32 passes, u32 rounds, tensor_record *records, u32 slot)
{
    constexpr u32 A_UNITS = STEPS * S::TILES_M * S::A_REGISTERS;
    constexpr u32 B_UNITS = STEPS * S::TILES_N * S::B_REGISTERS;
    constexpr u32 C_VALUES = S::TILES_M * S::TILES_N * S::C_REGISTERS;
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;

    typename S::unit a[STEPS][S::TILES_M][S::A_REGISTERS], b[STEPS][S::TILES_N][S::B_REGISTERS];
    const typename S::unit *own = operands + warp * (A_UNITS + B_UNITS) * 32 + lane;
#pragma unroll
    for (u32 i = 0; i < A_UNITS; i++)
        (&a[0][0][0])[i] = own[i * 32];
#pragma unroll
    for (u32 i = 0; i < B_UNITS; i++)
        (&b[0][0][0])[i] = own[(A_UNITS + i) * 32];

    typename S::value c[S::TILES_M][S::TILES_N][S::C_REGISTERS];
    tensor_hash hash;
    tensor_begin(records, slot);
#pragma unroll 1
    for (u32 pass = 0; pass < passes; pass++) {
#pragma unroll
        for (u32 i = 0; i < C_VALUES; i++)
            (&c[0][0][0])[i] = 0;
#pragma unroll 1
        for (u32 round = 0; round < rounds; round++)
#pragma unroll
            for (int step = 0; step < STEPS; step++)
#pragma unroll
                for (int m = 0; m < S::TILES_M; m++)
#pragma unroll
                    for (int n = 0; n < S::TILES_N; n++)
                        S::mma(c[m][n], a[step][m], b[step][n]);
#pragma unroll
        for (u32 i = 0; i < C_VALUES; i++)
            hash.add((&c[0][0][0])[i], i);
    }
    tensor_end(records, slot);

    typename S::value *to = results + (blockIdx.x * WARPS + warp) * C_VALUES * 32 + lane;
#pragma unroll
    for (u32 i = 0; i < C_VALUES; i++)
        to[i * 32] = (&c[0][0][0])[i];
    hashes[blockIdx.x * WARPS * 32 + threadIdx.x] += hash.sum();
}

#if __CUDA_ARCH__ < 750
/* Four products of 8 x 8 x 4 at once, one of each two quads of the warp. */
struct m8n8k4_fp16 : fragments<u32, float, 2, 2, 8, 2, 4> {
    static __device__ void mma(float *c, const u32 *a, const u32 *b)
    {
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"
                     " {%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9}, {%10, %11},"
                     " {%0, %1, %2, %3, %4, %5, %6, %7};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]),
                       "+f"(c[6]), "+f"(c[7])
                     : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]));
    }
};
KERNEL(tensor_mma_m8n8k4_fp16, m8n8k4_fp16, 2)

#elif __CUDA_ARCH__ < 800
struct m16n8k8_fp16 : fragments<u32, float, 2, 1, 4, 2, 4> {
    static __device__ void mma(float *c, const u32 *a, const u32 *b)
    {
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
                     " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(b[0]));
    }
};
KERNEL(tensor_mma_m16n8k8_fp16, m16n8k8_fp16, 2)

struct m8n8k16_int8 : fragments<u32, int, 1, 1, 2, 4, 4> {
    static __device__ void mma(int *c, const u32 *a, const u32 *b)
    {
        asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"
                     " {%0, %1}, {%2}, {%3}, {%0, %1};"
                     : "+r"(c[0]), "+r"(c[1])
                     : "r"(a[0]), "r"(b[0]));
    }
};
KERNEL(tensor_mma_m8n8k16_int8, m8n8k16_int8, 2)

#else
MMA_4_2_4(m16n8k16_fp16, float, "f", "m16n8k16.row.col.f32.f16.f16.f32")
MMA_4_2_4(m16n8k16_bf16, float, "f", "m16n8k16.row.col.f32.bf16.bf16.f32")
MMA_4_2_4(m16n8k8_tf32, float, "f", "m16n8k8.row.col.f32.tf32.tf32.f32")
MMA_4_2_4(m16n8k32_int8, int, "r", "m16n8k32.row.col.s32.s8.s8.s32")
KERNEL(tensor_mma_m16n8k16_fp16, m16n8k16_fp16, 2)
KERNEL(tensor_mma_m16n8k16_bf16, m16n8k16_bf16, 2)
KERNEL(tensor_mma_m16n8k8_tf32, m16n8k8_tf32, 2)
KERNEL(tensor_mma_m16n8k32_int8, m16n8k32_int8, 2)

/* On 9.0 and 10.x the compiler makes it of FP16 instructions: no figure of an FP8 pipe. */
#if __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200
MMA_4_2_4(m16n8k32_fp8, float, "f", "m16n8k32.row.col.f32.e4m3.e4m3.f32")
KERNEL(tensor_mma_m16n8k32_fp8, m16n8k32_fp8, 2)
#endif

#if __CUDA_ARCH__ < 900
struct m8n8k4_fp64 : fragments<double, double, 1, 1, 2, 2, 4> {
    static __device__ void mma(double *c, const double *a, const double *b)
    {
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"
                     " {%0, %1}, {%2}, {%3}, {%0, %1};"
                     : "+d"(c[0]), "+d"(c[1])
                     : "d"(a[0]), "d"(b[0]));
    }
};
KERNEL(tensor_mma_m8n8k4_fp64, m8n8k4_fp64, 2)
#else
struct m16n8k16_fp64 : fragments<double, double, 8, 4, 4, 2, 2> {
    static __device__ void mma(double *c, const double *a, const double *b)
    {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64"
                     " {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11},"
                     " {%12, %13, %14, %15}, {%0, %1, %2, %3};"
                     : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                     : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]),
                       "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
    }
};
KERNEL(tensor_mma_m16n8k16_fp64, m16n8k16_fp64, 1)
#endif
#endif
