/* A connection on which nothing moves any more, while the heartbeats of the session pass: large
 * segments are lost on a path that drops them without a word, small ones are not. TCP itself gives up
 * after a quarter of an hour. */
#ifndef NET_BENCH_STALL_H
#define NET_BENCH_STALL_H

#include <linux/sockios.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ioctl.h>

/* Shorter than the far end's own STUCK_S: the near end sees more and reports more. */
static const double STALL_S = 4;
/* One look counts for no more: who was not on a CPU in between has not waited. */
static const double STALL_LOOK_S = 0.25;

#define STALL_REMEDY                                                                               \
    "nothing moves, and small packets pass: does the path drop what its MTU does not let "         \
    "through? check the MTU on the path, or use smaller block_bytes"

struct stall {
    double waited_s, looked_s; /* looked_s 0: not yet */
    uint64_t progress;
};

/* For whenever a call has moved nothing: whether that has lasted too long. `received` is what has
 * come so far; what the other end has acknowledged counts too. */
static inline bool stalled(struct stall *stall, int fd, uint64_t received, double now)
{
    int unacknowledged = 0;
    ioctl(fd, SIOCOUTQ, &unacknowledged);
    uint64_t progress = received ^ (uint64_t)unacknowledged << 40;
    if (stall->looked_s == 0 || progress != stall->progress)
        stall->waited_s = 0;
    else
        stall->waited_s += fmin(now - stall->looked_s, STALL_LOOK_S);
    stall->looked_s = now;
    stall->progress = progress;
    return stall->waited_s >= STALL_S;
}

#endif
