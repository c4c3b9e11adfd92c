#include "monotonic.h"

#include <math.h>

enum { READINGS = 2000, BLOCK = 50 };

struct monotonic monotonic_check(void)
{
    struct monotonic found = {.resolution_s = INFINITY, .read_s = INFINITY};
    double first = now_s(), last = first;
    for (int i = 0; i < READINGS; i++) {
        double now = now_s();
        if (now > last && now - last < found.resolution_s)
            found.resolution_s = now - last;
        last = now;
        /* The smallest mean over a block: an interruption falls into few of them, and a clock
         * coarser than one reading needs many readings for one step. */
        if (i % BLOCK == BLOCK - 1) {
            found.read_s = fmin(found.read_s, (now - first) / BLOCK);
            first = now;
        }
    }
    /* A clock coarser than all the readings together has shown no step: wait for one. */
    while (!isfinite(found.resolution_s)) {
        double now = now_s();
        if (now > last)
            found.resolution_s = now - last;
    }
    return found;
}
