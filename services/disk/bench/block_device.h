/* The block device under a file system, as far as the kernel tells. */
#ifndef DISK_BENCH_BLOCK_DEVICE_H
#define DISK_BENCH_BLOCK_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

/* "254:0" of the device or partition that holds an open file; empty where the kernel reports none, as on
 * network file systems and on overlays. */
void block_device_of(int fd, char *device, size_t size);
/* Whether it is a RAM disk: zram or brd. */
bool block_device_in_memory(const char *device);
/* Bytes read and written and seconds with something under way, since boot, by all processes.
 * false when unknown. */
bool block_device_counters(const char *device, double *read_bytes, double *write_bytes,
                           double *busy_s);

#endif
