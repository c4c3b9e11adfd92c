/* The workload that is naive on purpose: it counts what the near end gave to the kernel, or got back,
 * over the time of day around all of it. Sessions, sockets, roles and checks are those of the sound
 * workloads; clock, count and figure are not. */
#ifndef NET_BENCH_NAIVE_H
#define NET_BENCH_NAIVE_H

#include "workload.h"

#include <stdint.h>

/* All are the table's functions of the same names. */
int naive_setup(struct thread *thread);
int naive_loop(struct thread *thread);
int naive_verify(struct thread *thread, uint64_t units);
uint64_t naive_moved(const struct thread *thread, double *at_s);
void naive_finish(struct thread *thread);

#endif
