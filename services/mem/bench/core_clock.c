#include "core_clock.h"

#include "monotonic.h"
#include "statistics.h"
#include "workload.h"

#include <math.h>
#include <stdint.h>

enum {
    ADDITIONS = 16, /* in one turn of the chain, one cycle each */
    TURNS = 4096,   /* some 20 µs: a reading of the clock is too short to matter */
    CHAINS = 15,
};

#if defined(__x86_64__)
#define ADD "add %[y], %[x]\n\t"
#define AGAIN "dec %[turns]\n\tjnz 1b\n\t"
#else
#define ADD "add %[x], %[x], %[y]\n\t"
#define AGAIN "subs %[turns], %[turns], #1\n\tb.ne 1b\n\t"
#endif
#define ADD_4 ADD ADD ADD ADD

/* Of registers only: Golden Cove removes additions of an immediate at rename. */
static void add_chain(uint64_t turns)
{
    uint64_t x = 0;
    __asm__ volatile(".p2align 6\n1:\n\t" ADD_4 ADD_4 ADD_4 ADD_4 AGAIN
                     : [turns] "+&r"(turns), [x] "+&r"(x)
                     : [y] "r"((uint64_t)3)
                     : "cc");
}

double core_clock_hertz(void)
{
    double clocks[CHAINS];
    for (int i = 0; i < CHAINS; i++) {
        double start_s = now_s();
        add_chain(TURNS);
        clocks[i] = ADDITIONS * TURNS / (now_s() - start_s);
    }
    return confirmed_highest(clocks, CHAINS);
}

double core_rate_per_cycle(struct run *run, const char *metric, double clock_hertz)
{
    double per_cycle = run_rate(run) / run_threads(run) / clock_hertz;
    if (run_oversubscribed(run)) {
        run_no_metric(run, metric, "threads share a CPU: none has all its cycles");
        return NAN;
    }
    if (!isfinite(per_cycle))
        run_no_metric(run, metric, "other processes used the CPU while its clock was measured");
    return per_cycle;
}
