#include "emulation.h"

#include <time.h>

#include "prelude_c.h"

/* As in CUDA: kernels of many short groups record what multiprocessor 0 has. */
#undef RECORD_FIRST
#undef RECORD_LAST
#define RECORD_FIRST                                                                               \
    if (kernel_emulated_multiprocessor == 0)                                                       \
    RECORD_BEGIN
#define RECORD_LAST                                                                                \
    if (kernel_emulated_multiprocessor == 0)                                                       \
    RECORD_END

/* Names that the C library has too. */
#define read read_tiles
#define write write_tiles

#include "chase.k"
#include "memory.k"
#include "vector.k"

unsigned kernel_emulated_multiprocessor;
unsigned kernel_emulated_grain_ns;

/* A clock of 1 GHz: so many cycles as nanoseconds. */
u64 emulated_cycles(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (u64)now.tv_sec * 1000000000u + (u64)now.tv_nsec;
}

u64 emulated_ns(void)
{
    u64 now = emulated_cycles();
    return kernel_emulated_grain_ns ? now - now % kernel_emulated_grain_ns : now;
}

#define MEMORY(k) (*(void **)parameters[k])
#define NUMBER(k) (*(const u32 *)parameters[k])

static void call_empty(void **parameters)
{
    (void)parameters;
    empty();
}

#define CALL(kernel, ...)                                                                          \
    static void call_##kernel(void **parameters)                                                   \
    {                                                                                              \
        kernel(__VA_ARGS__);                                                                       \
    }
#define CALL_VECTOR(kernel) CALL(kernel, MEMORY(0), MEMORY(1), NUMBER(2), MEMORY(3), NUMBER(4))

CALL_VECTOR(fma_fp64)
CALL_VECTOR(fma_fp32)
CALL_VECTOR(fma_fp16)
CALL_VECTOR(fma_bf16)
CALL_VECTOR(fma_fp32x2)
CALL_VECTOR(int_add_int32)
CALL_VECTOR(int_add_int64)
CALL_VECTOR(int_mul_add_int32)
CALL_VECTOR(int_mul_add_int64)
CALL_VECTOR(dp4a_int8)
CALL(fill, MEMORY(0), NUMBER(1))
CALL(read_tiles, MEMORY(0), MEMORY(1), MEMORY(2), NUMBER(3))
CALL(write_tiles, MEMORY(0), NUMBER(1), MEMORY(2), NUMBER(3))
CALL(copy, MEMORY(0), MEMORY(1), MEMORY(2), NUMBER(3))
CALL(fill_float, MEMORY(0), NUMBER(1))
CALL(triad, MEMORY(0), MEMORY(1), MEMORY(2), NUMBER(3), MEMORY(4), NUMBER(5))
CALL(check, MEMORY(0), NUMBER(1), MEMORY(2))
CALL(check_triad, MEMORY(0), NUMBER(1), NUMBER(2), NUMBER(3), MEMORY(4))
CALL(chase_link, MEMORY(0), MEMORY(1), NUMBER(2), NUMBER(3))
CALL(pointer_chase_ca, MEMORY(0), MEMORY(1), NUMBER(2), MEMORY(3), NUMBER(4))
CALL(pointer_chase_cg, MEMORY(0), MEMORY(1), NUMBER(2), MEMORY(3), NUMBER(4))

static const struct {
    const char *name;
    void (*call)(void **parameters);
} kernels[] = {
    {"fma_fp64", call_fma_fp64},
    {"fma_fp32", call_fma_fp32},
    {"fma_fp16", call_fma_fp16},
    {"fma_bf16", call_fma_bf16},
    {"fma_fp32x2", call_fma_fp32x2},
    {"int_add_int32", call_int_add_int32},
    {"int_add_int64", call_int_add_int64},
    {"int_mul_add_int32", call_int_mul_add_int32},
    {"int_mul_add_int64", call_int_mul_add_int64},
    {"dp4a_int8", call_dp4a_int8},
    {"fill", call_fill},
    {"read", call_read_tiles},
    {"write", call_write_tiles},
    {"copy", call_copy},
    {"fill_float", call_fill_float},
    {"triad", call_triad},
    {"check", call_check},
    {"check_triad", call_check_triad},
    {"chase_link", call_chase_link},
    {"pointer_chase_ca", call_pointer_chase_ca},
    {"pointer_chase_cg", call_pointer_chase_cg},
    {"empty", call_empty},
};

int kernel_emulate(const char *name, unsigned groups, unsigned group_size, void **parameters)
{
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; ++k) {
        if (strcmp(kernels[k].name, name) != 0)
            continue;
        here.groups = groups;
        here.group_size = group_size;
        for (here.group = 0; here.group < groups; ++here.group)
            for (here.local = 0; here.local < group_size; ++here.local)
                kernels[k].call(parameters);
        return 0;
    }
    return -1;
}
