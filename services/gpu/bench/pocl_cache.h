/* The directory in which PoCL, the OpenCL driver for CPUs, compiles: it loads what it has compiled
 * from there as shared libraries. Without one it finds no device, and where files must not be
 * executed it ends the process. */
#ifndef GPU_BENCH_POCL_CACHE_H
#define GPU_BENCH_POCL_CACHE_H

#include <stddef.h>

/* Sets POCL_CACHE_DIR to a directory of this user's own below TMPDIR, /tmp, /var/tmp or /dev/shm when
 * neither it nor XDG_CACHE_HOME nor HOME name one that can be used. In the main thread, before PoCL
 * is loaded. */
void pocl_cache_prepare(void);
/* NULL, or why PoCL cannot be used here, with the remedy. */
const char *pocl_cache_missing(void);

#endif
