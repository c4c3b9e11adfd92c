/* A sender's rate: how much may go out now, and when more may. */
#ifndef NET_BENCH_PACING_H
#define NET_BENCH_PACING_H

#include "stream.h"

#include <stdint.h>

struct pacing {
    double rate;  /* byte/s; 0: as fast as possible */
    double due_s; /* now_s() before which nothing goes out */
};

/* Of one phase; also makes this thread's sleeps as precise as the kernel can (1 ns of slack). */
void pacing_begin(struct pacing *pacing, double rate, double now_s);
/* Blocks of `block_bytes` in a batch: at most a millisecond of the rate, 1 to `most`. */
unsigned pacing_batch(const struct pacing *pacing, uint32_t block_bytes, unsigned most);
/* Waits until more may go out. The time then, or a negative number: the driver's stopping or
 * over, which it calls meanwhile, returned true. */
double pacing_wait(const struct pacing *pacing, const struct driver *driver, uint64_t moved_bytes,
                   double now_s);
/* Accounts for what has gone out. Somebody who was held up catches up with at most 10 ms: a burst
 * would be lost on the path and would say nothing about the requested rate. */
void pacing_sent(struct pacing *pacing, uint64_t bytes, double now_s);

#endif
