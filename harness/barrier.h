/* A barrier that spins briefly, then sleeps. A pure spin barrier on a busy host burns the time
 * slices of the very threads it waits for; a pure sleep lets the cores cool down. */
#ifndef HOSTBENCH_BARRIER_H
#define HOSTBENCH_BARRIER_H

#include <stdatomic.h>

struct barrier {
    atomic_uint arrived;
    atomic_uint generation; /* the futex word */
    unsigned total;
    unsigned spins; /* 0 where threads share a CPU */
};

void barrier_init(struct barrier *barrier, unsigned total, unsigned spins);
void barrier_wait(struct barrier *barrier);

#endif
