/* The C library as a part of the measured work: its memcpy() and memset(). */
#ifndef MEM_BENCH_LIBC_ROUTINES_H
#define MEM_BENCH_LIBC_ROUTINES_H

#include "workload.h"

/* Its version, its file and, where it tells, the size from which on its routines bypass the caches:
 * glibc derives it from the size of a cache, which hypervisors may get wrong. */
const struct library *libc_routines(void);
/* That size, in bytes; 0: it does not tell. */
double libc_nt_threshold(void);

#endif
