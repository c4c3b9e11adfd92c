#include "monotonic.h"

#include <math.h>

enum { READINGS = 2000 };

struct monotonic monotonic_check(void)
{
    struct monotonic found = {.resolution_s = INFINITY};
    double first = now_s(), last = first;
    for (int i = 0; i < READINGS; i++) {
        double now = now_s();
        if (now > last && now - last < found.resolution_s)
            found.resolution_s = now - last;
        last = now;
    }
    found.read_s = (last - first) / READINGS;
    /* A clock coarser than all the readings together has shown no step: wait for one. */
    while (!isfinite(found.resolution_s)) {
        double now = now_s();
        if (now > last)
            found.resolution_s = now - last;
    }
    return found;
}
