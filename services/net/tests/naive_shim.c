/* Loaded before the C library into a near end of the naive workload (LD_PRELOAD): SHIM_CLOCK makes its
 * time of day go so many times as fast, SHIM_DROP has every so manieth datagram of SHIM_BYTES bytes
 * vanish that it sends. The far end, which is a child with the same environment, is left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

static unsigned clock_factor = 1, drop_every, drop_bytes, seen;

static unsigned number(const char *name)
{
    const char *text = getenv(name);
    return text ? (unsigned)strtoul(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void begin(void)
{
    char arguments[4096] = "";
    FILE *file = fopen("/proc/self/cmdline", "r");
    size_t got = file ? fread(arguments, 1, sizeof arguments - 1, file) : 0;
    if (file)
        fclose(file);
    if (!memmem(arguments, got, "naive_stream", strlen("naive_stream")))
        return;
    clock_factor = number("SHIM_CLOCK") ? number("SHIM_CLOCK") : 1;
    drop_every = number("SHIM_DROP");
    drop_bytes = number("SHIM_BYTES");
}

int gettimeofday(struct timeval *restrict result, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_MONOTONIC, &now);
    unsigned long long us = (unsigned long long)now.tv_sec * 1000000 + (unsigned)now.tv_nsec / 1000;
    us *= clock_factor;
    *result = (struct timeval){(time_t)(us / 1000000), (suseconds_t)(us % 1000000)};
    return 0;
}

static bool datagram(int fd)
{
    int type = 0;
    socklen_t size = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_DGRAM;
}

ssize_t send(int fd, const void *bytes, size_t count, int flags)
{
    bool ours = drop_every > 0 && count == drop_bytes && datagram(fd);
    if (ours && ++seen % drop_every == 0)
        return (ssize_t)count;
    ssize_t (*real)(int, const void *, size_t, int) =
        (ssize_t (*)(int, const void *, size_t, int))dlsym(RTLD_NEXT, "send");
    return real(fd, bytes, count, flags);
}
