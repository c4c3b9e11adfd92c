/* What the operator of the host sets for disk-bench in its environment. */
#ifndef DISK_BENCH_ENVIRONMENT_H
#define DISK_BENCH_ENVIRONMENT_H

struct run;

/* A number of bytes; where the variable is not set, `bytes` keeps its value. 0 or EXIT_USAGE with
 * run_reason(). */
int environment_bytes(struct run *run, const char *variable, double *bytes);

#endif
