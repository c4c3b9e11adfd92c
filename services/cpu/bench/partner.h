/* What workloads share that work by turns with a second thread or process: waiting on a word, and
 * the kernel's count of how often they really left the CPU. */
#ifndef CPU_BENCH_PARTNER_H
#define CPU_BENCH_PARTNER_H

#include "workload.h"

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Sleeps while the word is `seen`, at most 50 ms, so that the caller can check whether the run has
 * ended. The word may lie in memory that processes share. false: 50 ms passed without a wake-up. */
bool partner_sleep(atomic_uint *word, unsigned seen);
/* Wakes the thread that sleeps on the word. */
void partner_wake(atomic_uint *word);

/* How often the calling thread has left its CPU. 0: never, or the kernel does not count it. */
uint64_t partner_switches(void);
/* Each turn takes a thread off its CPU. Returns 0 if the kernel counted enough switches for so many
 * turns, else an exit_code with its reason. */
int partner_check_switches(struct run *run, uint64_t turns, uint64_t switches);

/* Reports that a call failed to provide `what`, with errno's reason. Returns EXIT_RESOURCE. */
int partner_lacks(struct run *run, const char *what);
/* For workloads with a single thread. */
unsigned partner_one_thread(const struct run *run);

#endif
