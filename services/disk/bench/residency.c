#define _GNU_SOURCE
#include "residency.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* Linux 6.5, the same everywhere */
#endif

enum { WINDOW_PAGES = 1 << 18 }; /* a gibibyte of pages of 4 KiB at a time */

struct cachestat_range {
    uint64_t offset, length;
};

struct cachestat {
    uint64_t cached, dirty, writeback, evicted, recently_evicted; /* pages */
};

/* Cached pages of the file by one cachestat(); -1: this kernel or its seccomp filter refuses it. */
static double cachestat_ratio(int fd, uint64_t bytes)
{
    struct cachestat_range range = {0, bytes};
    struct cachestat found;
    return syscall(SYS_cachestat, fd, &range, &found, 0) ? -1 : (double)found.cached;
}

/* The same by mincore(), page by page of a mapping; NaN where it fails. */
static double counted(int fd, uint64_t bytes, uint64_t page_bytes)
{
    unsigned char *pages = malloc(WINDOW_PAGES);
    uint64_t window = WINDOW_PAGES * page_bytes;
    double cached = pages ? 0 : NAN;
    for (uint64_t at = 0; at < bytes && !isnan(cached); at += window) {
        size_t length = bytes - at < window ? bytes - at : window;
        void *map = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, (off_t)at);
        if (map == MAP_FAILED || mincore(map, length, pages))
            cached = NAN;
        for (size_t i = 0; i < (length + page_bytes - 1) / page_bytes; i++)
            cached += pages[i] & 1;
        if (map != MAP_FAILED)
            munmap(map, length);
    }
    free(pages);
    return cached;
}

double residency(int fd, uint64_t bytes)
{
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    double cached = cachestat_ratio(fd, bytes);
    if (cached < 0)
        cached = counted(fd, bytes, page_bytes);
    return cached / (double)((bytes + page_bytes - 1) / page_bytes);
}
