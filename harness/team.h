/* The timed region of a team: all threads take each step together. What is judged clean or disturbed
 * is a whole step, by its shares of CPU time, run-queue wait and steal, since a step of seconds
 * never goes without an interruption. */
#ifndef HOSTBENCH_TEAM_H
#define HOSTBENCH_TEAM_H

#include "run.h"

/* Both are called by all threads of the team at once; 0 or an exit_code. */
int team_warm_up(struct worker *worker);
int team_run(struct worker *worker);

#endif
