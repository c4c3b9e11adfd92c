#include "loops.h"

void loop_empty(uint64_t iterations)
{
    __asm__ volatile(LOOP_BEGIN LOOP_END : [n] "+&r"(iterations) : : "cc");
}

void loop_add_chain(uint64_t iterations)
{
    uint64_t x = 0;
    __asm__ volatile(LOOP_BEGIN ADD_16 ADD_16 ADD_16 ADD_16 ADD_16 LOOP_END
                     : [n] "+&r"(iterations), [x] "+&r"(x)
                     : [y] "r"((uint64_t)3)
                     : "cc");
}

uint64_t loop_sum_chain(uint64_t iterations, uint64_t x)
{
    __asm__ volatile(LOOP_BEGIN ADD_16 ADD_16 ADD_16 ADD_16 ADD_16 LOOP_END
                     : [n] "+&r"(iterations), [x] "+&r"(x)
                     : [y] "r"((uint64_t)SUM_CHAIN_ADDEND)
                     : "cc");
    return x;
}

#if defined(__x86_64__)
#define MULTIPLY_4 "imul %[y], %[x]\n\timul %[y], %[x]\n\timul %[y], %[x]\n\timul %[y], %[x]\n\t"

void loop_multiply_chain(uint64_t iterations)
{
    uint64_t x = 1;
    __asm__ volatile(LOOP_BEGIN MULTIPLY_4 MULTIPLY_4 MULTIPLY_4 MULTIPLY_4 LOOP_END
                     : [n] "+&r"(iterations), [x] "+&r"(x)
                     : [y] "r"((uint64_t)3)
                     : "cc");
}
#endif
