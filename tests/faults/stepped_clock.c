/* Preloaded into a process: its clocks are off by what stands in a file, which a test changes while
 * the process runs. The CPU time of threads stays the host's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* In nanoseconds. `wall`: the time of day is ahead by so much; `monotonic`: the clocks that no process
 * can set are. `grain`: those move in such steps; 0: as the host's do. */
struct offsets {
    int64_t wall, monotonic, grain;
};

static const int64_t SECOND = 1000000000;

static const volatile struct offsets *offsets(void)
{
    static const volatile struct offsets *mapped;
    if (!mapped) {
        int fd = open(getenv("HOSTBENCH_TEST_STEP_FILE"), O_RDONLY | O_CLOEXEC);
        mapped = mmap(NULL, sizeof *mapped, PROT_READ, MAP_SHARED, fd, 0);
        close(fd);
    }
    return mapped;
}

static void move(struct timespec *now, int64_t by, int64_t grain)
{
    int64_t at = now->tv_sec * SECOND + now->tv_nsec + by;
    at -= grain ? at % grain : 0;
    now->tv_sec = at / SECOND;
    now->tv_nsec = at % SECOND;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int error = real(clock, now);
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
        move(now, offsets()->wall, 0);
        break;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
        move(now, offsets()->monotonic, offsets()->grain);
        break;
    default:
        break;
    }
    return error;
}

/* What Redis reads, and naive workloads. */
int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    (void)zone;
    struct timespec precise;
    int error = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return error;
}
