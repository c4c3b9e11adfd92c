#define _GNU_SOURCE
#include "sentinel.h"

#include "monotonic.h"

#include <math.h>
#include <time.h>

/* In each phase the first thread works, in every second one all do. A sleeper is woken some 50 µs
 * late, and a burst takes some 20 µs: it fits between two interruptions of a host in use. */
enum { PHASES = 12, BURSTS = 3, TURN_STEPS = 400, SIDE_STEPS = 1600, LOOK_STEPS = 50 };

static const double LEAD_S = 100e-6, PHASE_S = 300e-6, GUARD_S = 80e-6;

#define EIGHT(text) text text text text text text text text
#if defined(__x86_64__)
#define ADD(to) "add %[one], %[" to "]\n\t"
#elif defined(__aarch64__)
#define ADD(to) "add %[" to "], %[" to "], %[one]\n\t"
#endif

/* 64 additions a step, each waiting for the one before: a cycle each, whatever runs beside it. */
static void add_in_turn(unsigned steps)
{
    uint64_t a = 0;
    for (; steps; steps--)
        __asm__ volatile(EIGHT(EIGHT(ADD("a"))) : [a] "+r"(a) : [one] "r"((uint64_t)1));
}

/* 64 additions a step in eight chains: as many in a cycle as the core has room for. */
static void add_side_by_side(unsigned steps)
{
    uint64_t a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;
    for (; steps; steps--)
        __asm__ volatile(
            EIGHT(ADD("a") ADD("b") ADD("c") ADD("d") ADD("e") ADD("f") ADD("g") ADD("h"))
            : [a] "+r"(a), [b] "+r"(b), [c] "+r"(c), [d] "+r"(d), [e] "+r"(e), [f] "+r"(f),
              [g] "+r"(g), [h] "+r"(h)
            : [one] "r"((uint64_t)1));
}

const char *sentinel_unsuited(const struct run *run)
{
    const struct workload *workload = run->workload;
    if (run->threads < 2)
        return "one thread shares its core with no other of the trial";
    if (workload->loop || workload->background)
        return "not all threads of this workload work all the time";
    if (run->placement.oversubscribed || run->placement.smt_shared)
        return "threads share a core or a CPU by their placement";
    return NULL;
}

/* Additions per cycle, of the shortest bursts: the others were interrupted. */
static double of_a_phase(double begins_s)
{
    double turn_s = INFINITY, side_s = INFINITY;
    while (now_s() < begins_s + GUARD_S)
        add_in_turn(LOOK_STEPS);
    for (int i = 0; i < BURSTS; i++) {
        double start_s = now_s();
        add_in_turn(TURN_STEPS);
        double middle_s = now_s();
        add_side_by_side(SIDE_STEPS);
        turn_s = fmin(turn_s, middle_s - start_s);
        side_s = fmin(side_s, now_s() - middle_s);
    }
    return SIDE_STEPS / side_s * turn_s / TURN_STEPS;
}

static void watch(struct sentinel *found, double begin_s)
{
    double alone[PHASES / 2], all = 0;
    for (int i = 0; i < PHASES; i += 2) {
        alone[i / 2] = of_a_phase(begin_s + i * PHASE_S);
        all = fmax(all, of_a_phase(begin_s + (i + 1) * PHASE_S));
    }
    found->alone = median(alone, PHASES / 2);
    found->all = all;
}

static void sleep_until(double when_s)
{
    struct timespec when = {.tv_sec = (time_t)when_s};
    when.tv_nsec = (long)((when_s - (double)when.tv_sec) * 1e9);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
}

static void work_beside(double begin_s)
{
    for (int i = 1; i < PHASES; i += 2) {
        sleep_until(begin_s + i * PHASE_S);
        while (now_s() < begin_s + (i + 1) * PHASE_S)
            add_side_by_side(LOOK_STEPS);
    }
}

void sentinel_watch(struct worker *worker, struct sentinel *found)
{
    const struct run *run = worker->thread.run;
    double begin_s;
    if (sentinel_unsuited(run))
        return;
    if (worker->thread.index == 0) {
        begin_s = now_s() + LEAD_S;
        atomic_store(&found->begin_s, begin_s);
        watch(found, begin_s);
        return;
    }
    while ((begin_s = atomic_load(&found->begin_s)) == 0)
        if (run_stopping(run))
            return;
    work_beside(begin_s);
}
