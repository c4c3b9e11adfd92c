/* The time of day, which naive workloads read as measurements by hand do, without what somebody
 * sets it by meanwhile. */
#ifndef HOSTBENCH_WALL_CLOCK_H
#define HOSTBENCH_WALL_CLOCK_H

#include <stdint.h>

struct wall_clock {
    int64_t ahead_us;       /* of the monotonic clock, at the beginning */
    _Atomic int64_t set_us; /* by how much it was set forward since; 0: it was not */
};

void wall_clock_begin(struct wall_clock *clock);
/* Now, as it would be if it had not been set since the beginning. Any thread may read it. */
int64_t wall_clock_us(struct wall_clock *clock);

#endif
