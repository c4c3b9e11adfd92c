/* What went wrong with an operation, in one line: where, why, and what to do about it. */
#ifndef DISK_BENCH_IO_ERROR_H
#define DISK_BENCH_IO_ERROR_H

#include "job.h"

#include <stddef.h>
#include <sys/types.h>

/* `error`: the errno, positive; 0: `got` bytes of `requested` were transferred and there will be no
 * more (a read at the end of the file, a write of nothing). Sets run_reason(); the exit_code. */
int io_error(struct run *run, enum op op, int error, uint64_t offset, size_t requested,
             ssize_t got);
/* Of fsync, fdatasync, msync, fadvise …: `what` names it. */
int io_error_of(struct run *run, const char *what, int error);

#endif
