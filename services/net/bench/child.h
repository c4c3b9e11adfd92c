/* The far end of a test on this host: the program itself, started once more. */
#ifndef NET_BENCH_CHILD_H
#define NET_BENCH_CHILD_H

#include "grant.h"

#include <stddef.h>
#include <sys/types.h>

struct child {
    pid_t pid;       /* 0: none */
    int lifeline_fd; /* held open: the child ends when it closes, however we end */
    int output_fd;   /* what the child prints */
};

/* Starts it on grant->address with a token that is made up here, and waits until it listens; the
 * grant becomes that of a near end. 0, or a negative errno with one line in `why`. */
int child_start(struct child *child, struct grant *grant, char *why, size_t size);
/* Closes the lifeline and waits until the child is gone; one that is not within a second is killed. */
void child_end(struct child *child);

#endif
