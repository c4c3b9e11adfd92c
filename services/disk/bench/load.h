/* The measured file, in the page cache: as it is right after it was made. */
#ifndef DISK_BENCH_LOAD_H
#define DISK_BENCH_LOAD_H

struct disk_job;

/* Reads what is not there, as much as there is memory for. 0 or an exit_code. */
int load_file(const struct disk_job *job);

#endif
