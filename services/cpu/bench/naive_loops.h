/* The loops of naive_operations, compiled without optimisation (Makefile): every variable is in
 * memory, the loop's counter too. */
#ifndef CPU_BENCH_NAIVE_LOOPS_H
#define CPU_BENCH_NAIVE_LOOPS_H

#include <stdint.h>

enum {
    NAIVE_SUMS = 6,       /* statements of a pass of add_sub */
    NAIVE_OPERATIONS = 5, /* of each of them */
    NAIVE_VECTORS = 64,   /* in each array of avx */
    NAIVE_VECTOR_BYTES = 32,
    NAIVE_ARRAY_BYTES = NAIVE_VECTORS * NAIVE_VECTOR_BYTES,
};

/* What a loop works on and leaves: add_sub its sums, compare its counter, avx c = a + b. */
struct naive_memory {
    _Alignas(64) unsigned char a[NAIVE_ARRAY_BYTES];
    unsigned char b[NAIVE_ARRAY_BYTES], c[NAIVE_ARRAY_BYTES];
    double sums[NAIVE_SUMS];
    uint64_t counted;
};

struct naive_loop {
    const char *method, *dtype;
    unsigned operations; /* counted of a pass */
    void (*run)(uint64_t passes, struct naive_memory *memory);
};

/* Ended by a NULL method. */
extern const struct naive_loop naive_loops[];

/* What is around a pass of add_sub and of avx. */
void naive_empty_loop(uint64_t passes);

#endif
