/* A CPU that computes wrong, for tests: in the build `flips` alone (Makefile). Everywhere else this
 * is nothing. */
#ifndef CPU_BENCH_FLIP_H
#define CPU_BENCH_FLIP_H

#ifdef HOSTBENCH_FLIPS
/* Flips a bit in a lane of `bytes` bytes after every so many passes on one CPU, as the environment
 * says: HOSTBENCH_FLIP=CPU:LANE:BIT:PASSES. */
void flip_a_bit(unsigned char *lanes, unsigned bytes, int cpu);
#else
static inline void flip_a_bit(unsigned char *lanes, unsigned bytes, int cpu)
{
    (void)lanes;
    (void)bytes;
    (void)cpu;
}
#endif

#endif
