/* The life of a trial and its workers: each worker warms up, meets the others at a barrier, runs its
 * slices and works out its figures. */
#ifndef HOSTBENCH_TRIAL_H
#define HOSTBENCH_TRIAL_H

#include "run.h"

/* Runs the trial and emits its samples. When it comes back while workers are still at work, the
 * process must end with them. */
void trial_execute(struct trial *trial, struct run *run);
/* Whether all threads have been joined; otherwise nothing of the trial may be freed. */
bool trial_ended(const struct trial *trial);
void trial_free(struct trial *trial);

#endif
