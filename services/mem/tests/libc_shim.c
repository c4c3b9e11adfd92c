/* Stands in for memcpy() and memset() of the C library in tests: hands on to the real ones, and then
 * spoils a bit of what large calls of the one named by SHIM have written. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 4096 }; /* the harness's own records of one thread are smaller */

typedef void *copying(void *, const void *, size_t);
typedef void *filling(void *, int, size_t);

static void spoil(const char *function, void *at, size_t bytes)
{
    if (bytes >= LARGE && !strcmp(getenv("SHIM"), function))
        ((unsigned char *)at)[bytes / 2] ^= 1;
}

void *memcpy(void *to, const void *from, size_t bytes)
{
    static copying *real;
    if (!real)
        real = (copying *)dlsym(RTLD_NEXT, "memcpy");
    real(to, from, bytes);
    spoil("memcpy", to, bytes);
    return to;
}

void *memset(void *to, int byte, size_t bytes)
{
    static filling *real;
    if (!real)
        real = (filling *)dlsym(RTLD_NEXT, "memset");
    real(to, byte, bytes);
    spoil("memset", to, bytes);
    return to;
}
