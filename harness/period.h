/* The period of what comes again and again, such as the interruptions of a CPU. */
#ifndef HOSTBENCH_PERIOD_H
#define HOSTBENCH_PERIOD_H

#include <stddef.h>

enum { PERIOD_BINS_LEAST = 512, PERIOD_BINS_MOST = 1 << 17 };

struct period {
    double seconds;  /* NaN: there is none … */
    const char *why; /* … for this reason */
};

/* `lost_s` is what was lost in each of `bins` equal stretches of time, at most PERIOD_BINS_MOST, each
 * `bin_s` long. A period is between four bins and a sixth of the whole. It is first that of the
 * time lost, where long losses weigh most, then that of all losses alike. */
struct period period_find(const float *lost_s, size_t bins, double bin_s);

#endif
