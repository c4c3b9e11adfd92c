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

/* Sleeps while the word is `seen`, 50 ms at most: whoever waits looks for the end of the run itself.
 * The word may lie in memory that processes share. false: nobody woke it in this time. */
bool partner_sleep(atomic_uint *word, unsigned seen);
/* Wakes the one that sleeps on the word. */
void partner_wake(atomic_uint *word);

/* How often the calling thread has left its CPU. 0: never, or the kernel does not count it. */
uint64_t partner_switches(void);
/* Whether `turns` turns, each of which takes a thread off its CPU, can have been taken with so many
 * switches. 0 or an exit_code with its reason. */
int partner_check_switches(struct run *run, uint64_t turns, uint64_t switches);

/* The failure of a call that this needs; `what` was to be had. EXIT_RESOURCE with its reason. */
int partner_lacks(struct run *run, const char *what);
/* Threads of a workload that has one only. */
unsigned partner_one_thread(const struct run *run);

#endif
