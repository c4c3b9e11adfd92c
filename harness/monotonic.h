/* The one clock of all measurements: CLOCK_MONOTONIC, in seconds. */
#ifndef HOSTBENCH_MONOTONIC_H
#define HOSTBENCH_MONOTONIC_H

#include <time.h>

struct monotonic {
    double resolution_s; /* smallest step seen between two readings */
    double read_s;       /* what one reading costs */
};

/* Coarser steps tell no chain of some 26 µs, and few parts of a slice. */
static const double MONOTONIC_COARSE_S = 1e-6;

static inline double seconds_of(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline double now_s(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

/* Measures both figures in well under a millisecond. */
struct monotonic monotonic_check(void);

#endif
