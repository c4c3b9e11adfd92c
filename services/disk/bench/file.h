/* The measured file: filled by real writes, checked, and out of the page cache before it is read;
 * of naive workloads in it. */
#ifndef DISK_BENCH_FILE_H
#define DISK_BENCH_FILE_H

struct disk_job;
struct thread;

/* Once, before the threads start: finds out what is missing and whether there is space for it. 0 or
 * an exit_code. */
int file_plan(struct disk_job *job);
/* Then: removes the marker of a file that will be written. 0 or an exit_code. */
int file_prepare(struct disk_job *job);
/* For setup(), by all threads at once: sets space aside for what is missing and fills it, then syncs,
 * checks and drops; of a naive workload loads instead. 0 or an exit_code. */
int file_fill(struct thread *thread);
/* The last act of loop() in the ramp, by all threads, which have no operation under way nor a page of
 * the file mapped: waits for the others, syncs what the ramp has written, drops the page cache, and
 * notes the counters that the timed region is held against. 0 or an exit_code. */
int file_settle(struct thread *thread);
/* The last act of loop() in the timed region, inside its time: fdatasync where the mode is
 * buffered+fsync_end, otherwise nothing. 0 or an exit_code. */
int file_sync(struct thread *thread);
/* What was written is on the disk. 0 or an exit_code. */
int file_flush(struct disk_job *job);
/* The same, and it is read from there again. 0 or an exit_code. */
int file_to_disk(struct disk_job *job);
/* For finish(): notes on the file what it holds now. */
void file_conclude(struct disk_job *job);

#endif
