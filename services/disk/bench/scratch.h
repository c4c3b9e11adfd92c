/* The scratch file: unnamed, in the operator's directory, so that nothing is left whatever ends the
 * process, and nothing that has a name is ever written to. */
#ifndef DISK_BENCH_SCRATCH_H
#define DISK_BENCH_SCRATCH_H

#include <stdbool.h>
#include <stdint.h>

struct run;

struct scratch {
    int fd;               /* without flags: buffered, for filling, syncing and dropping */
    char directory[512];  /* for messages */
    char device[32];      /* "254:0" of the file system's block device; empty: unknown */
    double reserve_bytes; /* that stay free */
};

/* Takes the job's file (scratch_fd) or makes one. 0 or an exit_code, with run_reason(). */
int scratch_open(struct run *run, struct scratch *scratch);
void scratch_close(struct scratch *scratch);
/* The same file with other flags (O_DIRECT, O_DSYNC): a descriptor, or -1 with errno. */
int scratch_reopen(const struct scratch *scratch, int flags);
/* What O_DIRECT wants offsets and sizes to be multiples of; 0: there is no O_DIRECT here. */
uint64_t scratch_alignment(const struct scratch *scratch);
/* Whether `more_bytes` can be allocated without touching the reserve. 0 or EXIT_RESOURCE. */
int scratch_space(struct run *run, const struct scratch *scratch, double more_bytes);

#endif
