/* The core clock, for work per cycle: the time-stamp counter runs at a rate of its own. */
#ifndef MEM_BENCH_CORE_CLOCK_H
#define MEM_BENCH_CORE_CLOCK_H

struct run;

/* In some tenths of a millisecond, of this thread's core, in Hz. NaN: others took the CPU
 * meanwhile. */
double core_clock_hertz(void);
/* In finish(): bytes or operations of one thread in a cycle of this clock, the mean of all threads.
 * NaN: there is no such figure, and the reason is recorded for `metric`. */
double core_rate_per_cycle(struct run *run, const char *metric, double clock_hertz);

#endif
