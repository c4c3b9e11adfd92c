/* The core clock, for bytes per cycle: the time-stamp counter runs at a rate of its own. */
#ifndef MEM_BENCH_CORE_CLOCK_H
#define MEM_BENCH_CORE_CLOCK_H

/* In some tenths of a millisecond, of this thread's core, in Hz. NaN: others took the CPU
 * meanwhile. */
double core_clock_hertz(void);

#endif
