/* The loop of the naive workloads: blocks read and written through the page cache, in which the file
 * is, and the clock read before and after. It is what a first program does; the figures are the page
 * cache's and the calls', and are to show how far they are from the disk's. */
#ifndef DISK_BENCH_NAIVE_H
#define DISK_BENCH_NAIVE_H

#include "job.h"

/* What setup() adds to file_fill(): descriptors, streams, a block. 0 or an exit_code. */
int naive_open(struct thread *thread);
/* For teardown(). */
void naive_close(struct thread *thread);
/* The table's loop(), moved(), prepare(), verify() and finish(). */
int naive_loop(struct thread *thread);
uint64_t naive_moved(const struct thread *thread, double *at_s);
int naive_prepare(struct thread *thread);
int naive_verify(struct thread *thread, uint64_t units);
void naive_finish(struct thread *thread);

#endif
