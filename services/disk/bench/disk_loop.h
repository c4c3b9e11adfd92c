/* The measured work of all workloads: requests begun as places in the queue come free (closed loop)
 * or as they are due (open loop), and timed until they are done. */
#ifndef DISK_BENCH_DISK_LOOP_H
#define DISK_BENCH_DISK_LOOP_H

#include "job.h"

/* For setup(), once the file is filled: buffers, the thread's own descriptor, its engine; becomes
 * thread->state. 0 or an exit_code with its reason. */
int disk_loop_open(struct thread *thread);
/* For teardown(). */
void disk_loop_close(struct thread *thread);
/* The table's loop(). */
int disk_loop(struct thread *thread);
/* In finish(): from the first start until the first thread had nothing left to begin or wait for but
 * the fdatasync() of buffered+fsync_end, in seconds. */
double disk_loop_worked_s(const struct disk_job *job);
/* For finish(): the warning rate_not_reached of an open loop. */
void disk_loop_report(const struct disk_job *job);

#endif
