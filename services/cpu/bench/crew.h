/* Threads that work beside the first one when it calls them, in passes of about 100 µs, and sleep
 * otherwise. */
#ifndef CPU_BENCH_CREW_H
#define CPU_BENCH_CREW_H

#include "workload.h"

struct crew;

/* For all threads of the run, in open(). NULL: no memory. */
struct crew *crew_open(const struct run *run);
void crew_close(struct crew *crew);

/* How many units of `step` take as long as a pass on this thread's CPU. 0 or an exit_code. */
int crew_find_batch(struct thread *thread, int (*step)(struct thread *, uint64_t), uint64_t *batch);

/* ---- by the first thread ---- */

void crew_call(struct crew *crew, unsigned index);
/* Sends the thread back to sleep, after what it has begun. */
void crew_dismiss(struct crew *crew, unsigned index);
/* Waits until it sleeps. false: the run is to stop. */
bool crew_join(struct crew *crew, unsigned index, const struct run *run);
/* Ends the phase: crew_wait() is false for all from now on. */
void crew_end(struct crew *crew);
/* Begins the next one, when no thread waits or works: in prepare(). */
void crew_begin(struct crew *crew);

/* ---- by the others ---- */

/* Sleeps until this thread is called. false: the phase is over. */
bool crew_wait(struct crew *crew, const struct thread *thread);
/* Whether this thread is to go on. */
bool crew_wanted(const struct crew *crew, const struct thread *thread);

#endif
