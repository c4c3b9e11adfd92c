/* Preloaded into a process: the wall clock is ahead of the host's by the seconds that stand in a
 * file, which a test changes while the process runs. Every other clock is the host's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long step_s(void)
{
    static const volatile long *offset;
    if (!offset) {
        int fd = open(getenv("HOSTBENCH_TEST_STEP_FILE"), O_RDONLY | O_CLOEXEC);
        offset = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, fd, 0);
        close(fd);
    }
    return *offset;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int error = real(clock, now);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        now->tv_sec += step_s();
    return error;
}

/* What Redis reads. */
int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    (void)zone;
    struct timespec precise;
    int error = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return error;
}
