/* The main thread during a trial: it reports samples and listens for what may end the run. */
#ifndef HOSTBENCH_REPORTER_H
#define HOSTBENCH_REPORTER_H

#include "run.h"

struct reporter {
    struct progress *last; /* one a worker, as of the last sample */
    double *rates, *clocks;
    struct loop_seen *seen; /* of a workload with a loop of its own */
    double last_s, next_s, interval_s;
    bool started;
};

/* 0, or -1 without memory. */
int reporter_allocate(struct reporter *reporter, const struct run *run);
void reporter_free(struct reporter *reporter);
/* Whether the kernel keeps a worker on its CPU. EXIT_RESOURCE with a reason: it has moved it. */
int reporter_check_place(const struct worker *worker);
/* Comes back when all workers are done, or ENDING_WITHIN_S after the run is to end. */
void reporter_run(struct reporter *reporter, struct trial *trial);
/* The last sample, when the workers were done before the reporter woke for it. */
void reporter_finish(struct reporter *reporter, struct trial *trial);

#endif
