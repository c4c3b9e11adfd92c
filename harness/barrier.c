#define _GNU_SOURCE
#include "barrier.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    /* A stop wakes no sleeper: each looks for itself this often. */
    LOOK_AGAIN_NS = 50 * 1000 * 1000,
};

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static bool stop_requested(const atomic_bool *stopping)
{
    return stopping && atomic_load_explicit(stopping, memory_order_relaxed);
}

bool word_wait(atomic_uint *word, unsigned seen, unsigned spins, const atomic_bool *stopping)
{
    const struct timespec look_again = {.tv_nsec = LOOK_AGAIN_NS};
    for (unsigned i = 0; i < spins && !stop_requested(stopping); i++) {
        if (atomic_load(word) != seen)
            return true;
        relax();
    }
    while (atomic_load(word) == seen) {
        if (stop_requested(stopping))
            return false;
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, stopping ? &look_again : NULL, NULL, 0);
    }
    return true;
}

void word_wake(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void barrier_init(struct barrier *barrier, unsigned total, unsigned spins)
{
    atomic_init(&barrier->arrived, 0);
    atomic_init(&barrier->generation, 0);
    barrier->total = total;
    barrier->spins = spins;
}

bool barrier_wait_unless(struct barrier *barrier, const atomic_bool *stopping)
{
    unsigned generation = atomic_load(&barrier->generation);
    bool passed = true;
    if (atomic_fetch_add(&barrier->arrived, 1) + 1 < barrier->total) {
        passed = word_wait(&barrier->generation, generation, barrier->spins, stopping);
    } else {
        atomic_store(&barrier->arrived, 0);
        atomic_fetch_add(&barrier->generation, 1);
        word_wake(&barrier->generation);
    }
    /* Also for the last, and for one alone: what was left early must not be taken for done. */
    return passed && !(stopping && atomic_load(stopping));
}

void barrier_wait(struct barrier *barrier)
{
    barrier_wait_unless(barrier, NULL);
}
