/* Stands in for memcpy() and memset() of the C library in tests: hands on to the real ones, and then
 * spoils what large calls have written. Its name is in LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

enum { LARGE = 1024 };

typedef void *copying(void *, const void *, size_t);
typedef void *filling(void *, int, size_t);

void *memcpy(void *to, const void *from, size_t bytes)
{
    static copying *real;
    if (!real)
        real = (copying *)dlsym(RTLD_NEXT, "memcpy");
    real(to, from, bytes);
    if (bytes >= LARGE)
        ((unsigned char *)to)[bytes / 2] ^= 1;
    return to;
}

void *memset(void *to, int byte, size_t bytes)
{
    static filling *real;
    if (!real)
        real = (filling *)dlsym(RTLD_NEXT, "memset");
    real(to, byte, bytes);
    if (bytes >= LARGE)
        ((unsigned char *)to)[bytes / 2] ^= 1;
    return to;
}
