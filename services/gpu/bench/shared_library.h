/* A library that may or may not be on this host: loaded at run time, its entry points put into a
 * table. */
#ifndef GPU_BENCH_SHARED_LIBRARY_H
#define GPU_BENCH_SHARED_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

struct library_symbol {
    const char *name;
    size_t offset; /* of its pointer in the table */
    bool optional; /* the pointer stays NULL where the library lacks it */
};

struct shared_library {
    const char *file; /* libcuda.so.1 */
    bool tried, loaded;
    char why[320]; /* it is not loaded: the library or the entry point that is missing */
};

/* Tries once; the library is kept until the process ends, since drivers have threads and exit
 * handlers of their own. Not for two threads at once. */
bool shared_library_load(struct shared_library *library, const struct library_symbol *symbols,
                         size_t count, void *table);

#endif
