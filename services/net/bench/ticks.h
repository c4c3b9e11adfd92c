/* Has the calling thread's blocking calls come back now and then with EINTR. A time limit on the
 * socket would do so too, but the kernel arms and disarms a timer for it in every call that sleeps. */
#ifndef NET_BENCH_TICKS_H
#define NET_BENCH_TICKS_H

#include <stdbool.h>
#include <time.h>

struct ticks {
    timer_t timer;
};

/* Every `interval_ms`, on this thread alone. false, with errno: there is no timer to be had. */
bool ticks_begin(struct ticks *ticks, unsigned interval_ms);
void ticks_end(struct ticks *ticks);

#endif
