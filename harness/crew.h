/* A crew: one thread of a run leads. Step by step it calls others, which work until it dismisses
 * them; all others sleep. The crew takes run_shared() and holds the workload's own state. */
#ifndef HOSTBENCH_CREW_H
#define HOSTBENCH_CREW_H

#include "workload.h"

/* In open(): a crew of all threads of the run. `state_bytes` of state for all of them together and
 * `member_bytes` for each thread are zeroed, on cache lines of their own. 0 or an exit_code. */
int crew_open(struct run *run, size_t state_bytes, size_t member_bytes);
/* As close(), or in it; also if crew_open() failed. */
void crew_close(struct run *run);

/* NULL: crew_open() failed or was not called. */
void *crew_state(const struct run *run);
void *crew_member(const struct run *run, unsigned index);

/* As prepare(), or in it: between ramp and timed region, when no thread waits or works. */
int crew_prepare(struct thread *thread);

/* How many units of `step` take as long as a pass of about 100 µs on this thread's CPU. 0 or an
 * exit_code. */
int crew_find_batch(struct thread *thread, int (*step)(struct thread *, uint64_t), uint64_t *batch);

/* ---- by the thread that leads ---- */

void crew_call(const struct run *run, unsigned index);
/* Sends the thread back to sleep, after what it has begun. */
void crew_dismiss(const struct run *run, unsigned index);
/* Waits until it sleeps. false: the run is to stop. */
bool crew_join(const struct run *run, unsigned index);
/* Ends the phase: crew_wait() is false for all from now on. */
void crew_end(const struct run *run);

/* Adds a step to what the samples show: `work`, in the unit of the rate, in `taken_s`. */
void crew_note(const struct run *run, uint64_t work, double taken_s);
/* As moved(): what was noted. */
uint64_t crew_moved(const struct thread *thread, double *at_s);

/* ---- by those that are called ---- */

/* Sleeps until this thread is called. false: the phase is over. */
bool crew_wait(const struct thread *thread);
/* Whether this thread is to go on. */
bool crew_wanted(const struct thread *thread);

#endif
