/* How much memory may still be taken: what the host has left and what the control groups allow. */
#ifndef HOSTBENCH_MEMORY_H
#define HOSTBENCH_MEMORY_H

#include <stdbool.h>

struct memory_left {
    double bytes;     /* the smallest figure that was found */
    char source[600]; /* where it stands */
};

/* `proc` is "/proc" outside tests. false when nothing is known. */
bool memory_left_read(struct memory_left *left, const char *proc);

#endif
