/* Cycles and retired instructions of a thread, as the CPU counts them: perf_event_open(2). */
#ifndef HOSTBENCH_COUNTERS_H
#define HOSTBENCH_COUNTERS_H

/* In user mode, so that kernel.perf_event_paranoid may be up to 2. NaN: not counted all the time. */
struct counts {
    double cycles, instructions;
};

/* The counters of the calling thread, from now on. */
struct counters {
    int cycles, instructions; /* descriptors; below 0: none */
    int error;                /* errno of the one that could not be opened, else 0 */
};

struct counters counters_open(void);
void counters_close(struct counters *counters);
struct counts counters_read(const struct counters *counters);
struct counts counts_between(const struct counts *before, const struct counts *after);
struct counts counts_sum(const struct counts *one, const struct counts *other);
/* Why there are none, and what to do about it. */
const char *counters_missing(int error);

#endif
