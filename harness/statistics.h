/* Medians, and a bounded record of a stream of any length. */
#ifndef HOSTBENCH_STATISTICS_H
#define HOSTBENCH_STATISTICS_H

#include <stddef.h>
#include <stdint.h>

/* Median of n > 0 values; sorts them in place. */
double median(double *values, size_t n);
/* The highest of n values, NaN unless a second one is within 1 % of it. Of clocks, which a chain
 * that was interrupted reads too slow and none reads too fast. */
double confirmed_highest(const double *values, size_t n);

/* A uniform random sample of all values added (Vitter's algorithm R, ACM TOMS 11(1), 1985): a run
 * of hours keeps its median in a fixed amount of memory. */
struct reservoir {
    double *values;
    size_t capacity;
    size_t kept;
    uint64_t seen;
    uint64_t random;
};

/* Allocates and touches the memory. 0, or -1 without memory. */
int reservoir_init(struct reservoir *reservoir, size_t capacity);
void reservoir_add(struct reservoir *reservoir, double value);
void reservoir_free(struct reservoir *reservoir);

#endif
