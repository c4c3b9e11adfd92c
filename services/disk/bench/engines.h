/* Which engine a trial takes: the one of the name, or the best that works here. */
#ifndef DISK_BENCH_ENGINES_H
#define DISK_BENCH_ENGINES_H

#include "engine.h"

/* Replaces `auto` by the first engine of the ladder that works here, and says so when that is not
 * the first; holds the others against depth and cache mode. 0 or an exit_code with its reason. */
int engine_choose(struct run *run, struct disk_job *job);

/* NULL, or why the engine of this name cannot be had here; of `auto` always NULL. */
const char *engine_why_not(const char *name, const struct disk_job *job);

#endif
