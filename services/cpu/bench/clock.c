/* clock: the core's true clock from a chain of dependent additions, one cycle each. The time-stamp
 * counter and /proc/cpuinfo tell a nominal figure that turbo and hypervisors make wrong. */
#include "loops.h"
#include "vector_kernel.h"
#include "workload.h"

#include "monotonic.h"

#include <math.h>

enum {
    BATCH_MAX = 1 << 24,
    CROSS_CHECKS = 64,
    CROSS_CHECK_MULTIPLICATIONS = 16000, /* 48,000 cycles at 3 a multiplication: about 15 µs */
};

static int setup(struct thread *thread)
{
    if (thread->index == 0)
        run_set_unit(thread->run, CHAIN_CYCLES, BATCH_MAX);
    return EXIT_OK;
}

static int step(struct thread *thread, uint64_t batch)
{
    (void)thread;
    loop_add_chain(batch);
    return EXIT_OK;
}

static void empty_loop(struct thread *thread, uint64_t batch)
{
    (void)thread;
    loop_empty(batch);
}

#if defined(__x86_64__)
/* A second, independent chain: a 64-bit multiplication takes 3 cycles on every x86-64 CPU from
 * Nehalem and Zen on (Agner Fog's instruction tables), so a core that did not run one addition a
 * cycle would show in the quotient of the two. */
static void cross_check(struct thread *thread)
{
    double best_s = INFINITY;
    for (int i = 0; i < CROSS_CHECKS; i++) {
        double start_s = now_s();
        loop_multiply_chain(CROSS_CHECK_MULTIPLICATIONS / MULTIPLY_CHAIN_LENGTH);
        best_s = fmin(best_s, now_s() - start_s - run_clock_read_s(thread->run));
    }
    run_metric(thread->run, "clock_hertz_multiply_chain",
               3.0 * CROSS_CHECK_MULTIPLICATIONS / best_s);
}

static const struct metric metrics[] = {
    {"clock_hertz_multiply_chain", "Hz", HIGHER_IS_BETTER,
     "Cross-check of the core clock: a chain of dependent multiplications (three cycles each) "
     "measures it on the first thread's CPU after the timed region, while the other threads are "
     "idle."},
    {.name = NULL},
};
#endif

WORKLOAD(clock) = {
    .name = "clock",
    .description = "Measures the core clock with a chain of dependent additions.",
    .rate = {.name = "clock_hertz",
             .unit = "Hz",
             .description =
                 "Core clock: median over the threads of each thread's median clean slice.",
             .combine = COMBINE_MEDIAN},
    .setup = setup,
    .step = step,
    .empty_loop = empty_loop,
#if defined(__x86_64__) /* on Arm the latency of a multiplication differs from core to core */
    .metrics = metrics,
    .finish = cross_check,
#endif
};
