/* From a workload's parameters to its job: what they mean together, and what this host makes of
 * them. */
#ifndef DISK_BENCH_DISK_H
#define DISK_BENCH_DISK_H

struct run;

/* For unsupported(): why the engine cannot be had here. */
const char *disk_job_unsupported(const struct run *run);
/* For open(): reads the parameters, takes the scratch file, and resolves cache mode and engine. To
 * be closed even if it fails. 0 or an exit_code. */
int disk_job_open(struct run *run);
void disk_job_close(struct run *run);
/* For check(): what the parameters mean together, whether there is memory for them. */
int disk_job_check(struct run *run);

#endif
