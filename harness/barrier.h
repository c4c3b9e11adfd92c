/* How threads wait for one another: briefly spinning, then asleep. A pure spin on a busy host
 * burns the time slices of the very threads it waits for; a pure sleep lets the cores cool down. */
#ifndef HOSTBENCH_BARRIER_H
#define HOSTBENCH_BARRIER_H

#include <stdatomic.h>
#include <stdbool.h>

/* Waits until *word differs from `seen`. false: `stopping` was set meanwhile (NULL: nothing can). */
bool word_wait(atomic_uint *word, unsigned seen, unsigned spins, const atomic_bool *stopping);
/* Wakes all that wait for the word; call it after the change. */
void word_wake(atomic_uint *word);

struct barrier {
    atomic_uint arrived;
    atomic_uint generation; /* the word they wait for */
    unsigned total;
    unsigned spins; /* 0 where threads share a CPU */
};

void barrier_init(struct barrier *barrier, unsigned total, unsigned spins);
void barrier_wait(struct barrier *barrier);
/* The same, given up as soon as `stopping` is set: then false, and no thread may use the barrier
 * again. */
bool barrier_wait_unless(struct barrier *barrier, const atomic_bool *stopping);

#endif
