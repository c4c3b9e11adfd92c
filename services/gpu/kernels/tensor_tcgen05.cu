/* tcgen05.mma: m128n256, 32 bytes of K an instruction, operands in shared memory, the accumulator
 * tile in tensor memory.
 *
 * A group of four warps has one tile: 256 of the 512 columns, so that two groups share a
 * multiprocessor and one of them keeps the pipe full while the other reads its tile at the end of a
 * pass. Forms and descriptors: PTX ISA, "TensorCore 5th Generation Family Instructions"; the fields of
 * the descriptors were compared with CUTLASS (include/cute/arch/mma_sm100_desc.hpp). */

#if defined(__CUDA_ARCH_FEAT_SM100_ALL) || defined(__CUDA_ARCH_FEAT_SM103_ALL)

enum {
    THREADS = 128,
    STEPS = 8,
    STEPS_A_ROW = 4, /* slices of 32 bytes in a swizzled row of 128 */
    M = 128,
    N = 256,
    A_BYTES = STEPS / STEPS_A_ROW * M * 128,
    B_BYTES = STEPS / STEPS_A_ROW * N * 128,
    COLUMNS_A_LOAD = 32,
};

constexpr int TILE_COLUMNS = N; /* of tensor memory; assembly takes no enumerator */

/* Start address, 1024 bytes from eight rows to the next eight, the descriptor's version, swizzle of
 * 128 bytes. */
__device__ inline u64 descriptor(u32 address)
{
    return (u64)((address & 0x3ffff) >> 4) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 46 |
           (u64)2 << 61;
}

__device__ inline u32 slice(u32 base, int step, u32 rows)
{
    return base + (u32)(step / STEPS_A_ROW) * rows * 128 + (u32)(step % STEPS_A_ROW) * 32;
}

/* Both operands K-major and of the same format. */
constexpr u32 instruction(u32 accumulator_format, u32 operand_format)
{
    return accumulator_format << 4 | operand_format << 7 | operand_format << 10 | (N >> 3) << 17 |
           (M >> 4) << 24;
}

enum { ACCUMULATE_FP32 = 1, ACCUMULATE_INT32 = 2 };

#define TCGEN05(NAME, KIND, ACCUMULATOR, OPERAND)                                                  \
    struct NAME {                                                                                  \
        static __device__ void mma(u32 d, u64 a, u64 b, u32 keep)                                  \
        {                                                                                          \
            asm volatile("{ .reg .pred p; setp.ne.u32 p, %4, 0;"                                   \
                         " tcgen05.mma.cta_group::1.kind::" KIND " [%0], %1, %2, %3, p; }"         \
                         :                                                                         \
                         : "r"(d), "l"(a), "l"(b), "n"(instruction(ACCUMULATOR, OPERAND)),         \
                           "r"(keep)                                                               \
                         : "memory");                                                              \
        }                                                                                          \
    };

__device__ inline bool elected()
{
    u32 chosen;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }"
                 : "=r"(chosen));
    return chosen;
}

__device__ inline void wait_for(u32 barrier, u32 parity)
{
    asm volatile("{ .reg .pred p;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@!p bra again; }" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

#define LOAD(r, i) "=r"(r[i]), "=r"(r[i + 1]), "=r"(r[i + 2]), "=r"(r[i + 3])

/* The thread's row of 32 columns. */
__device__ inline void load_columns(u32 *r, u32 from)
{
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x32.b32"
                 " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
                 " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31},"
                 " [%32];"
                 : LOAD(r, 0), LOAD(r, 4), LOAD(r, 8), LOAD(r, 12), LOAD(r, 16), LOAD(r, 20),
                   LOAD(r, 24), LOAD(r, 28)
                 : "r"(from));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}

template <class S>
__device__ inline void pipe(const uint4 *operands, u32 *results, u32 *hashes, u32 passes,
                            u32 rounds, tensor_record *records, u32 slot)
{
    extern __shared__ unsigned char shared[];
    __shared__ u64 done;
    __shared__ u32 tile_at;
    const u32 warp = threadIdx.x / 32;
    const u32 barrier = tensor_shared_address(&done);

    if (warp == 0) {
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(
                         tensor_shared_address(&tile_at)),
                     "n"(TILE_COLUMNS)
                     : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    }
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    const u32 a = tensor_load_operands<A_BYTES + B_BYTES, THREADS>(operands, shared);
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    const u32 b = a + A_BYTES;
    const u32 tile = tile_at;
    const u32 own_lanes = tile + (warp * 32 << 16);

    tensor_hash hash;
    tensor_begin(records, slot);
#pragma unroll 1
    for (u32 pass = 0; pass < passes; pass++) {
        if (warp == 0 && elected()) {
#pragma unroll 1
            for (u32 round = 0; round < rounds; round++)
#pragma unroll
                for (int step = 0; step < STEPS; step++)
                    S::mma(tile, descriptor(slice(a, step, M)), descriptor(slice(b, step, N)),
                           step ? 1 : round);
            asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"
                         " [%0];" ::"r"(barrier)
                         : "memory");
        }
        __syncwarp();
        wait_for(barrier, pass & 1);
        asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
        const bool last = pass + 1 == passes;
#pragma unroll 1
        for (u32 column = 0; column < N; column += COLUMNS_A_LOAD) {
            u32 r[COLUMNS_A_LOAD];
            load_columns(r, own_lanes + column);
#pragma unroll
            for (u32 i = 0; i < COLUMNS_A_LOAD; i++)
                hash.parts[i % 4] += r[i] * (2 * (column + i) + 1);
            if (last)
#pragma unroll
                for (u32 i = 0; i < COLUMNS_A_LOAD; i++)
                    results[(blockIdx.x * N + column + i) * THREADS + threadIdx.x] = r[i];
        }
        asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
        __syncthreads();
        asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    }
    tensor_end(records, slot);
    hashes[blockIdx.x * THREADS + threadIdx.x] += hash.sum();
    if (warp == 0)
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(tile), "n"(TILE_COLUMNS));
}

#define KERNEL(DTYPE, KIND, ACCUMULATOR, OPERAND)                                                  \
    TCGEN05(m128n256_##DTYPE, KIND, ACCUMULATOR, OPERAND)                                          \
    extern "C" __global__ void __launch_bounds__(THREADS, 2)                                       \
        tensor_tcgen05_m128n256_##DTYPE(const uint4 *operands, u32 *results, u32 *hashes,          \
                                        u32 passes, u32 rounds, tensor_record *records, u32 slot)  \
    {                                                                                              \
        pipe<m128n256_##DTYPE>(operands, results, hashes, passes, rounds, records, slot);          \
    }

/* The operands' formats of each kind. */
KERNEL(fp16, "f16", ACCUMULATE_FP32, 0)
KERNEL(bf16, "f16", ACCUMULATE_FP32, 1)
KERNEL(tf32, "tf32", ACCUMULATE_FP32, 2)
KERNEL(fp8, "f8f6f4", ACCUMULATE_FP32, 0)
#if defined(__CUDA_ARCH_FEAT_SM100_ALL)
KERNEL(int8, "i8", ACCUMULATE_INT32, 1)
#endif

#endif
