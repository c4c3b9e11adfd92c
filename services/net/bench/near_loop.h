/* The measured work of all workloads, seen from the near end: each harness thread runs the role that
 * it has on its socket, the far end another one, and both begin and end each phase together. */
#ifndef NET_BENCH_NEAR_LOOP_H
#define NET_BENCH_NEAR_LOOP_H

#include "workload.h"

#include <stdint.h>

/* All are the table's functions of the same names. */
int near_setup(struct thread *thread);
/* Opens the timed phase: the far end's senders begin. */
int near_prepare(struct thread *thread);
int near_loop(struct thread *thread);
/* Ends the timed phase and compares what either end counted. */
int near_verify(struct thread *thread, uint64_t units);
/* Of streams alone. */
uint64_t near_moved(const struct thread *thread, double *at_s);

#endif
