/* What the scratch file holds, written on the file itself (an extended attribute), so that a job's
 * next trial need not fill it again. It goes with the file; where the file system has no such
 * attributes, each trial fills. */
#ifndef DISK_BENCH_MARKER_H
#define DISK_BENCH_MARKER_H

#include <stdbool.h>
#include <stdint.h>

struct marker {
    uint64_t filled_bytes; /* from the beginning on, all of them really written */
    double compressible;   /* NaN: parts of several kinds */
    bool verify;           /* blocks with a header … */
    uint64_t block_bytes;  /* … of this size … */
    uint64_t file_id;      /* … and with this number in it */
};

/* false: there is none. `touched`: somebody has written to the file since it was stored. */
bool marker_read(int fd, struct marker *marker, bool *touched);
/* When all that was written has been written. */
void marker_store(int fd, const struct marker *marker);
/* Before anything is written. */
void marker_forget(int fd);

#endif
