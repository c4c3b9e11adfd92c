/* What stands in the blocks: nothing that a device could compress or find twice, and where blocks
 * are verified, a header that says which block it is and what has to follow. */
#ifndef DISK_BENCH_CONTENT_H
#define DISK_BENCH_CONTENT_H

#include "job.h"

enum { CONTENT_HEADER_BYTES = 40 };

/* All of a block; `generation` tells two writes of the same block apart. */
void content_fill(const struct disk_job *job, void *block, uint64_t index, uint64_t generation);
/* The part of the file from `offset` on as the fill leaves it: blocks of generation 0. */
void content_fill_range(const struct disk_job *job, void *buffer, uint64_t offset, uint64_t bytes);
/* Before each write, by its thread, `block` having been through content_fill() once: makes it differ
 * from all that were written before. EXIT_RESOURCE once the write budget is spent, with
 * run_reason(): then it must not be written. */
int content_next(struct thread *thread, void *block, uint64_t index);
/* After each write that is done, where job->verify: the next read of the block must find this one. */
void content_written(const struct disk_job *job, const void *block, uint64_t index);
/* After each read, where job->verify: 0, or EXIT_WRONG with run_reason() that names the offset. */
int content_check(struct thread *thread, const void *block, uint64_t index);

#endif
