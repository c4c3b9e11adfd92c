/* What naive_copy and naive_set share: the life of a trial. */
#ifndef MEM_BENCH_NAIVE_LIFE_H
#define MEM_BENCH_NAIVE_LIFE_H

#include "workload.h"

/* What such a workload is: its `own`. */
struct naive_kind {
    bool set; /* memset(); otherwise memcpy() */
};

void naive_resolve(struct run *run);
int naive_check(struct run *run);
int naive_open(struct run *run);
void naive_close(struct run *run);
int naive_setup(struct thread *thread);
int naive_calibrate(struct thread *thread);
int naive_run(struct thread *thread);
uint64_t naive_moved(const struct thread *thread, double *at_s);
int naive_verify(struct thread *thread, uint64_t units);
void naive_finish(struct thread *thread);

#endif
