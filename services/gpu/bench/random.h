/* Random operands: the power that a card takes, and with it the clock, depends on the bits that change.
 */
#ifndef GPU_BENCH_RANDOM_H
#define GPU_BENCH_RANDOM_H

#include <stdint.h>

/* All 64 bits alike; the state may begin as any number. */
uint64_t random_next(uint64_t *state);
/* −most to most, all alike. */
double random_whole(uint64_t *state, int most);
/* Normally distributed, mean 0, variance 1. */
double random_normal(uint64_t *state);

#endif
