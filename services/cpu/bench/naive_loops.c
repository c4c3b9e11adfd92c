/* What the programs of students do a billion times, as a compiler without optimisation leaves it. */
#include "naive_loops.h"

#include <stddef.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Six statements of five additions and subtractions. Each adds 1 to its sum, and together they take
 * each operand with either sign: a statement or an operation left out shows in the sums. */
#define ADD_SUB(name, type)                                                                        \
    static void name(uint64_t passes, struct naive_memory *memory)                                 \
    {                                                                                              \
        type a = 5, b = 3, c = 4, d = 6, e = 1;                                                    \
        type u = 0, v = 0, w = 0, x = 0, y = 0, z = 0;                                             \
        for (uint64_t i = 0; i < passes; i++) {                                                    \
            u = u + a - b + c - d + e;                                                             \
            v = v - a + b - c + d + e;                                                             \
            w = w + a + c - b - d + e;                                                             \
            x = x + d - c + b - a + e;                                                             \
            y = y - d - b + a + c + e;                                                             \
            z = z + b + d - a - c + e;                                                             \
        }                                                                                          \
        memory->sums[0] = (double)u;                                                               \
        memory->sums[1] = (double)v;                                                               \
        memory->sums[2] = (double)w;                                                               \
        memory->sums[3] = (double)x;                                                               \
        memory->sums[4] = (double)y;                                                               \
        memory->sums[5] = (double)z;                                                               \
    }

/* The counter of the comparisons is the loop's. */
#define COMPARE(name, type)                                                                        \
    static void name(uint64_t passes, struct naive_memory *memory)                                 \
    {                                                                                              \
        type a = 1, b = 2;                                                                         \
        uint64_t counted = 0;                                                                      \
        while (counted < passes) {                                                                 \
            if (a < b)                                                                             \
                counted++;                                                                         \
            else                                                                                   \
                counted++;                                                                         \
        }                                                                                          \
        memory->counted = counted;                                                                 \
    }

ADD_SUB(naive_add_sub_int8, int8_t)
ADD_SUB(naive_add_sub_int16, int16_t)
ADD_SUB(naive_add_sub_int32, int32_t)
ADD_SUB(naive_add_sub_int64, int64_t)
ADD_SUB(naive_add_sub_fp32, float)
ADD_SUB(naive_add_sub_fp64, double)

COMPARE(naive_compare_int8, int8_t)
COMPARE(naive_compare_int16, int16_t)
COMPARE(naive_compare_int32, int32_t)
COMPARE(naive_compare_int64, int64_t)
COMPARE(naive_compare_fp32, float)
COMPARE(naive_compare_fp64, double)

#if defined(__x86_64__)
/* One vector after another: loaded, added, stored. */
#define AVX(name, vector, load, add, store, element)                                               \
    __attribute__((target("avx2"))) static void name(uint64_t passes, struct naive_memory *memory) \
    {                                                                                              \
        for (uint64_t i = 0; i < passes; i++) {                                                    \
            uint64_t at = i % NAIVE_VECTORS * NAIVE_VECTOR_BYTES;                                  \
            vector a = load((const element *)(memory->a + at));                                    \
            vector b = load((const element *)(memory->b + at));                                    \
            vector sum = add(a, b);                                                                \
            store((element *)(memory->c + at), sum);                                               \
        }                                                                                          \
        _mm256_zeroupper();                                                                        \
    }

AVX(naive_avx_int32, __m256i, _mm256_load_si256, _mm256_add_epi32, _mm256_store_si256, __m256i)
AVX(naive_avx_fp32, __m256, _mm256_load_ps, _mm256_add_ps, _mm256_store_ps, float)
AVX(naive_avx_fp64, __m256d, _mm256_load_pd, _mm256_add_pd, _mm256_store_pd, double)
#endif

enum { ADD_SUB_OPERATIONS = NAIVE_SUMS * NAIVE_OPERATIONS };

#define ROWS(dtype)                                                                                \
    {"add_sub", #dtype, ADD_SUB_OPERATIONS, naive_add_sub_##dtype},                                \
    {                                                                                              \
        "compare", #dtype, 1, naive_compare_##dtype                                                \
    }

const struct naive_loop naive_loops[] = {
    ROWS(int8),
    ROWS(int16),
    ROWS(int32),
    ROWS(int64),
    ROWS(fp32),
    ROWS(fp64),
#if defined(__x86_64__)
    {"avx", "int32", NAIVE_VECTOR_BYTES / 4, naive_avx_int32},
    {"avx", "fp32", NAIVE_VECTOR_BYTES / 4, naive_avx_fp32},
    {"avx", "fp64", NAIVE_VECTOR_BYTES / 8, naive_avx_fp64},
#endif
    {.method = NULL},
};

void naive_empty_loop(uint64_t passes)
{
    for (uint64_t i = 0; i < passes; i++)
        ;
}
