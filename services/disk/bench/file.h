/* The measured file: filled by real writes, checked, and out of the page cache before it is read. */
#ifndef DISK_BENCH_FILE_H
#define DISK_BENCH_FILE_H

#include "disk.h"

/* For setup(), by all threads at once: fills what is not filled yet, each thread its part; then
 * syncs, checks and drops. 0 or an exit_code. */
int file_fill(struct thread *thread);
/* The last act of loop() in the ramp, by all threads, which have no operation in flight nor a page
 * of the file mapped: waits for the others, syncs what the ramp has written, drops the page cache,
 * and notes the counters that the timed region is held against. 0 or an exit_code. */
int file_settle(struct thread *thread);
/* The last act of loop() in the timed region, inside its time: fdatasync where the mode is
 * buffered+fsync_end, otherwise nothing. 0 or an exit_code. */
int file_sync(struct thread *thread);
/* Share of the used part of the file that is in the page cache; NaN: the kernel does not tell. */
double file_cached_ratio(const struct disk_job *job);

#endif
