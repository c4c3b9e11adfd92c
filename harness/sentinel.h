/* Whether cores that the host calls distinct are: what the first thread's core does alone, and while
 * the other threads work as well. A hypervisor may put two CPUs of a guest on the two hardware
 * threads of one core, for a while or for good, and hides that from the guest. */
#ifndef HOSTBENCH_SENTINEL_H
#define HOSTBENCH_SENTINEL_H

#include "run.h"

/* NULL, or why it would say nothing of this run: there is no second thread that always works, or
 * threads share a core by their placement. */
const char *sentinel_unsuited(const struct run *run);
/* Called by all threads at once; some 4 ms. Does nothing where it is unsuited. */
void sentinel_watch(struct worker *worker, struct sentinel *found);

#endif
