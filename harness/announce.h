/* What is said once nothing stands in the way of the measurement any more. */
#ifndef HOSTBENCH_ANNOUNCE_H
#define HOSTBENCH_ANNOUNCE_H

#include "run.h"

/* The start event, and the conditions that the reader of the figures should know of although they
 * do not stop the trial. 0 or an exit_code with its reason. */
int announce(struct run *run);

#endif
