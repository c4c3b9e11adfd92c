/* What `best` stands for: the kernels that parameters leave open are tried on the arrays
 * themselves, all threads at once. */
#ifndef MEM_BENCH_STORE_H
#define MEM_BENCH_STORE_H

#include "walk.h"
#include "workload.h"

enum { CANDIDATES_MAX = 32 };

struct candidates {
    const struct kernel *kernels[CANDIDATES_MAX];
    unsigned count;
    const struct kernel *chosen;
    double *rates; /* byte/s by thread and candidate; NULL: nothing had to be tried */
    double totals[CANDIDATES_MAX];
    bool dropped[CANDIDATES_MAX]; /* too slow to be tried again */
};

/* The wanted properties of a kernel; NULL: any. */
struct wish {
    enum operation operation;
    const char *isa, *store, *streams, *prefetch;
};

/* Whether a kernel can do it on such ground. */
bool candidates_find(struct candidates *candidates, const struct wish *wish,
                     const struct ground *ground);
/* 0 or an exit_code with its reason. */
int candidates_prepare(struct candidates *candidates, struct run *run);
void candidates_free(struct candidates *candidates);
/* Leaves the fastest of them in `walk`, on every thread. 0 or an exit_code. */
int candidates_try(struct candidates *candidates, struct thread *thread, struct walk *walk);
/* byte/s of the best candidate with such stores; 0: none was tried. */
double candidates_rate(const struct candidates *candidates, const char *store);

#endif
