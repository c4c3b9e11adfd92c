#define _GNU_SOURCE
#include "barrier.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void barrier_init(struct barrier *barrier, unsigned total, unsigned spins)
{
    atomic_init(&barrier->arrived, 0);
    atomic_init(&barrier->generation, 0);
    barrier->total = total;
    barrier->spins = spins;
}

void barrier_wait(struct barrier *barrier)
{
    unsigned generation = atomic_load(&barrier->generation);
    if (atomic_fetch_add(&barrier->arrived, 1) + 1 == barrier->total) {
        atomic_store(&barrier->arrived, 0);
        atomic_fetch_add(&barrier->generation, 1);
        syscall(SYS_futex, &barrier->generation, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
        return;
    }
    for (unsigned i = 0; i < barrier->spins; i++) {
        if (atomic_load(&barrier->generation) != generation)
            return;
        relax();
    }
    while (atomic_load(&barrier->generation) == generation)
        syscall(SYS_futex, &barrier->generation, FUTEX_WAIT_PRIVATE, generation, NULL, NULL, 0);
}
