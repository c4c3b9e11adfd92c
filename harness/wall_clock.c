#include "wall_clock.h"

#include "monotonic.h"

#include <stdlib.h>
#include <sys/time.h>

enum { SET_LEAST_US = 1000, ATTEMPTS = 10 };

/* Two clocks read further apart, as where a thread loses its CPU between them, are read again. */
static const double APART_MOST_S = 1e-4;

struct reading {
    int64_t day_us, ahead_us;
};

static struct reading read_both(void)
{
    struct timeval day;
    double before_s, after_s;
    int attempt = 0;
    do {
        before_s = now_s();
        gettimeofday(&day, NULL);
        after_s = now_s();
    } while (after_s - before_s > APART_MOST_S && ++attempt < ATTEMPTS);
    int64_t day_us = (int64_t)day.tv_sec * 1000000 + day.tv_usec;
    return (struct reading){day_us, day_us - (int64_t)((before_s + after_s) / 2 * 1e6)};
}

void wall_clock_begin(struct wall_clock *clock)
{
    clock->ahead_us = read_both().ahead_us;
}

int64_t wall_clock_us(struct wall_clock *clock)
{
    struct reading now = read_both();
    int64_t set_us = now.ahead_us - clock->ahead_us;
    if (llabs(set_us) < SET_LEAST_US)
        return now.day_us;
    clock->set_us = set_us;
    return now.day_us - set_us;
}
