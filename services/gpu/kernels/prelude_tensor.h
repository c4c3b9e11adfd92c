/* What the tensor kernels share; compiled in front of each of them. They measure a pipe: operands never
 * leave registers or shared memory, and nothing is loaded while they work. tensor_shapes.h has their
 * shapes and their arguments, tensor_check.h what they must leave. */

typedef unsigned int u32;
typedef unsigned long long u64;

/* struct kernel_record of kernel_set.h. */
struct tensor_record {
    u64 not_cycles_begin, not_ns_begin, cycles_end, ns_end;
};

__device__ inline u64 tensor_nanoseconds()
{
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* By one thread of one group: cycles of different multiprocessors do not compare. */
__device__ inline void tensor_begin(tensor_record *records, u32 slot)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        records[slot].not_ns_begin = ~tensor_nanoseconds();
        records[slot].not_cycles_begin = ~(u64)clock64();
    }
}

__device__ inline void tensor_end(tensor_record *records, u32 slot)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        records[slot].cycles_end = (u64)clock64();
        records[slot].ns_end = tensor_nanoseconds();
    }
}

__device__ inline u32 tensor_bits(float value)
{
    return __float_as_uint(value);
}

__device__ inline u32 tensor_bits(int value)
{
    return (u32)value;
}

__device__ inline u32 tensor_bits(double value)
{
    u64 bits = (u64)__double_as_longlong(value);
    return (u32)bits ^ (u32)(bits >> 32);
}

/* Every pass of every launch is in the sum that the host checks, while only the last one's accumulators
 * are stored. In four parts, since the pipe may be idle meanwhile and one would be a chain of dependent
 * instructions. */
struct tensor_hash {
    u32 parts[4] = {0, 0, 0, 0};

    /* Accumulator i. */
    template <class Value> __device__ inline void add(Value value, u32 i)
    {
        parts[i % 4] += tensor_bits(value) * (2 * i + 1);
    }

    __device__ inline u32 sum() const
    {
        return parts[0] + parts[1] + parts[2] + parts[3];
    }
};

__device__ inline u32 tensor_shared_address(const void *at)
{
    return (u32)__cvta_generic_to_shared(at);
}

/* The group's operands, 16 bytes an access, into shared memory at the next multiple of 1024 (a
 * swizzled tile's alignment), visible to what reads it asynchronously. Gives its address. */
template <u32 BYTES, u32 THREADS>
__device__ inline u32 tensor_load_operands(const uint4 *operands, unsigned char *shared)
{
    u32 base = (tensor_shared_address(shared) + 1023) & ~1023u;
    uint4 *to = (uint4 *)(shared + (base - tensor_shared_address(shared)));
    for (u32 i = threadIdx.x; i < BYTES / 16; i += THREADS)
        to[i] = operands[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    return base;
}

