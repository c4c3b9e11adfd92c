/* How much of a file is in the page cache. */
#ifndef DISK_BENCH_RESIDENCY_H
#define DISK_BENCH_RESIDENCY_H

#include <stdint.h>

/* Share of the first `bytes` of the file, by whole pages; NaN: the kernel does not tell. */
double residency(int fd, uint64_t bytes);

#endif
