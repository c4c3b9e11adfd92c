#include "monotonic.h"

#include <math.h>

enum { READINGS = 2000, BLOCK = 50 };

/* Waits for a step of the clock and counts the readings until the next one. */
static struct monotonic check_coarse(void)
{
    double first = now_s(), begun, now;
    unsigned long readings = 0;
    while ((begun = now_s()) <= first)
        continue;
    do {
        now = now_s();
        readings++;
    } while (now <= begun);
    return (struct monotonic){now - begun, (now - begun) / (double)readings};
}

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
    /* A block without a step has taken no time by a clock that is coarser than it. */
    if (found.read_s > 0)
        return found;
    struct monotonic coarse = check_coarse();
    coarse.resolution_s = fmin(coarse.resolution_s, found.resolution_s);
    return coarse;
}
