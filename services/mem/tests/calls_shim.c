/* Counts in tests how often the C library's functions are called, and tells at the end: memcpy() and
 * memset() of SHIM_BYTES bytes, rand(), gettimeofday() and pthread_mutex_lock(). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum { MEMCPY, MEMSET, RAND, GETTIMEOFDAY, MUTEX, FUNCTIONS };

static const char *const names[FUNCTIONS] = {"memcpy", "memset", "rand", "gettimeofday",
                                             "pthread_mutex_lock"};
static atomic_ulong counts[FUNCTIONS];
static void *_Atomic reals[FUNCTIONS];
static size_t counted_bytes;

static void *count(int function)
{
    void *real = reals[function];
    atomic_fetch_add(&counts[function], 1);
    if (!real)
        reals[function] = real = dlsym(RTLD_NEXT, names[function]);
    return real;
}

static void *plain(int function)
{
    void *real = count(function);
    atomic_fetch_sub(&counts[function], 1);
    return real;
}

void *memcpy(void *to, const void *from, size_t bytes)
{
    void *(*real)(void *, const void *, size_t) =
        bytes == counted_bytes ? count(MEMCPY) : plain(MEMCPY);
    return real(to, from, bytes);
}

void *memset(void *to, int byte, size_t bytes)
{
    void *(*real)(void *, int, size_t) = bytes == counted_bytes ? count(MEMSET) : plain(MEMSET);
    return real(to, byte, bytes);
}

int rand(void)
{
    int (*real)(void) = count(RAND);
    return real();
}

int gettimeofday(struct timeval *now, void *zone)
{
    int (*real)(struct timeval *, void *) = count(GETTIMEOFDAY);
    return real(now, zone);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    int (*real)(pthread_mutex_t *) = count(MUTEX);
    return real(mutex);
}

static void __attribute__((constructor)) begin(void)
{
    counted_bytes = strtoul(getenv("SHIM_BYTES"), NULL, 10);
    unsetenv("LD_PRELOAD"); /* what the program starts is not counted */
}

static void __attribute__((destructor)) print_calls(void)
{
    for (int i = 0; i < FUNCTIONS; i++)
        fprintf(stderr, "%s %lu\n", names[i], atomic_load(&counts[i]));
}
