#define _GNU_SOURCE
#include "pacing.h"

#include "monotonic.h"

#include <math.h>
#include <sys/prctl.h>
#include <time.h>

static const double BATCH_S = 1e-3, CATCH_UP_S = 10e-3, POLL_S = 50e-3;

void pacing_begin(struct pacing *pacing, double rate, double now_s)
{
    *pacing = (struct pacing){.rate = rate, .due_s = now_s};
    if (rate > 0)
        prctl(PR_SET_TIMERSLACK, 1);
}

unsigned pacing_batch(const struct pacing *pacing, uint32_t block_bytes, unsigned most)
{
    if (pacing->rate == 0)
        return most;
    double blocks = pacing->rate * BATCH_S / block_bytes;
    return blocks < 1 ? 1 : (unsigned)fmin(blocks, most);
}

static void sleep_until(double at_s)
{
    struct timespec at = {
        .tv_sec = (time_t)at_s,
        .tv_nsec = (long)((at_s - floor(at_s)) * 1e9),
    };
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

double pacing_wait(const struct pacing *pacing, const struct driver *driver, uint64_t moved_bytes,
                   double now)
{
    while (pacing->rate > 0 && now < pacing->due_s) {
        sleep_until(fmin(pacing->due_s, now + POLL_S));
        now = now_s();
        if (driver->stopping(driver->context) || driver->over(driver->context, moved_bytes, now))
            return -1;
    }
    return now;
}

void pacing_sent(struct pacing *pacing, uint64_t bytes, double now)
{
    if (pacing->rate > 0)
        pacing->due_s = fmax(pacing->due_s, now - CATCH_UP_S) + (double)bytes / pacing->rate;
}
