/* wgmma: m64n256, 32 bytes of K an instruction, both operands in shared memory.
 *
 * A group is one warpgroup with one accumulator tile, in 128 registers of each thread. It has so much
 * shared memory that two groups share a multiprocessor: while one hashes its accumulators at the end
 * of a pass, the other keeps the pipe full. There are STEPS different slices of A and B, so that the
 * operands' bits change from one instruction to the next. Forms, descriptors and layout (128-byte
 * swizzle, K-major): PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions".
 */

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

enum {
    THREADS = 128,
    STEPS = 8,
    STEPS_A_ROW = 4, /* slices of 32 bytes in a swizzled row of 128 */
    M = 64,
    N = 256,
    A_BYTES = STEPS / STEPS_A_ROW * M * 128,
    B_BYTES = STEPS / STEPS_A_ROW * N * 128,
};

/* Start address, 1024 bytes from eight rows to the next eight, swizzle of 128 bytes. The field in
 * between has no meaning under that swizzle. */
__device__ inline u64 descriptor(u32 address)
{
    return (u64)((address & 0x3ffff) >> 4) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}

__device__ inline u32 slice(u32 base, int step, u32 rows)
{
    return base + (u32)(step / STEPS_A_ROW) * rows * 128 + (u32)(step % STEPS_A_ROW) * 32;
}

#define ACCUMULATORS                                                                               \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                      \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "             \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "             \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "             \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "             \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "             \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}"

#define FOUR(C, d, i) "+" C(d[i]), "+" C(d[i + 1]), "+" C(d[i + 2]), "+" C(d[i + 3])
#define SIXTEEN(C, d, i) FOUR(C, d, i), FOUR(C, d, i + 4), FOUR(C, d, i + 8), FOUR(C, d, i + 12)
#define ALL(C, d)                                                                                  \
    SIXTEEN(C, d, 0), SIXTEEN(C, d, 16), SIXTEEN(C, d, 32), SIXTEEN(C, d, 48), SIXTEEN(C, d, 64),  \
        SIXTEEN(C, d, 80), SIXTEEN(C, d, 96), SIXTEEN(C, d, 112)

#define EIGHT(a)                                                                                   \
    "l"(a[0]), "l"(a[1]), "l"(a[2]), "l"(a[3]), "l"(a[4]), "l"(a[5]), "l"(a[6]), "l"(a[7])

#define PRODUCT(INSTRUCTION, SCALES, A, B, KEEP)                                                   \
    "wgmma.mma_async.sync.aligned." INSTRUCTION " " ACCUMULATORS ", %" A ", %" B ", " KEEP SCALES  \
    ";\n"

/* `rounds` times all STEPS products, of which the first of all sets the accumulators. One piece of
 * assembly, since the compiler waits for all products wherever its own loop closes; so a round is
 * issued while the one before is under way. */
#define WGMMA(NAME, VALUE, CONSTRAINT, INSTRUCTION, SCALES)                                        \
    struct NAME {                                                                                  \
        typedef VALUE value;                                                                       \
        static __device__ void rounds(VALUE *d, const u64 *a, const u64 *b, u32 rounds)            \
        {                                                                                          \
            asm volatile("{ .reg .pred keep, always, again;\n"                                     \
                         ".reg .u32 left;\n"                                                       \
                         "mov.u32 left, %144;\n"                                                   \
                         "setp.ne.u32 keep, 0, 0;\n"                                               \
                         "setp.eq.u32 always, 0, 0;\n"                                             \
                         "next: .pragma \"nounroll\";\n"                                          \
                         "wgmma.fence.sync.aligned;\n"                                             \
                         PRODUCT(INSTRUCTION, SCALES, "128", "136", "keep")                        \
                         PRODUCT(INSTRUCTION, SCALES, "129", "137", "always")                      \
                         PRODUCT(INSTRUCTION, SCALES, "130", "138", "always")                      \
                         PRODUCT(INSTRUCTION, SCALES, "131", "139", "always")                      \
                         PRODUCT(INSTRUCTION, SCALES, "132", "140", "always")                      \
                         PRODUCT(INSTRUCTION, SCALES, "133", "141", "always")                      \
                         PRODUCT(INSTRUCTION, SCALES, "134", "142", "always")                      \
                         PRODUCT(INSTRUCTION, SCALES, "135", "143", "always")                      \
                         "wgmma.commit_group.sync.aligned;\n"                                      \
                         "wgmma.wait_group.sync.aligned 1;\n"                                      \
                         "setp.eq.u32 keep, 0, 0;\n"                                               \
                         "sub.u32 left, left, 1;\n"                                                \
                         "setp.ne.u32 again, left, 0;\n"                                           \
                         "@again bra next;\n"                                                      \
                         "wgmma.wait_group.sync.aligned 0; }"                                      \
                         : ALL(CONSTRAINT, d)                                                      \
                         : EIGHT(a), EIGHT(b), "r"(rounds)                                         \
                         : "memory");                                                              \
        }                                                                                          \
    };

template <class S>
__device__ inline void pipe(const uint4 *operands, typename S::value *results, u32 *hashes,
                            u32 passes, u32 rounds, tensor_record *records, u32 slot)
{
    extern __shared__ unsigned char shared[];
    const u32 a = tensor_load_operands<A_BYTES + B_BYTES, THREADS>(operands, shared);
    u64 a_slices[STEPS], b_slices[STEPS];
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        a_slices[step] = descriptor(slice(a, step, M));
        b_slices[step] = descriptor(slice(a + A_BYTES, step, N));
    }

    typename S::value d[128];
#pragma unroll
    for (int i = 0; i < 128; i++)
        d[i] = 0;
    tensor_hash hash;
    tensor_begin(records, slot);
#pragma unroll 1
    for (u32 pass = 0; pass < passes; pass++) {
        S::rounds(d, a_slices, b_slices, rounds);
#pragma unroll
        for (u32 i = 0; i < 128; i++)
            hash.add(d[i], i);
    }
    tensor_end(records, slot);

    typename S::value *to = results + blockIdx.x * 128 * THREADS + threadIdx.x;
#pragma unroll
    for (u32 i = 0; i < 128; i++)
        to[i * THREADS] = d[i];
    hashes[blockIdx.x * THREADS + threadIdx.x] += hash.sum();
}

#define KERNEL(DTYPE, VALUE, CONSTRAINT, INSTRUCTION, SCALES)                                      \
    WGMMA(m64n256_##DTYPE, VALUE, CONSTRAINT, INSTRUCTION, SCALES)                                 \
    extern "C" __global__ void __launch_bounds__(THREADS, 2)                                       \
        tensor_wgmma_m64n256_##DTYPE(const uint4 *operands, VALUE *results, u32 *hashes,           \
                                     u32 passes, u32 rounds, tensor_record *records, u32 slot)     \
    {                                                                                              \
        pipe<m64n256_##DTYPE>(operands, results, hashes, passes, rounds, records, slot);           \
    }

KERNEL(fp16, float, "f", "m64n256k16.f32.f16.f16", ", 1, 1, 0, 0")
KERNEL(bf16, float, "f", "m64n256k16.f32.bf16.bf16", ", 1, 1, 0, 0")
KERNEL(tf32, float, "f", "m64n256k8.f32.tf32.tf32", ", 1, 1")
KERNEL(fp8, float, "f", "m64n256k32.f32.e4m3.e4m3", ", 1, 1")
KERNEL(int8, int, "r", "m64n256k32.s32.s8.s8", "")

#endif
