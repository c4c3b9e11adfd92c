/* Part of a program with a BLAS: gives each thread that the library has started a CPU of its own, in
 * turn, as cpu-bench does with its threads. The libraries themselves leave them to the scheduler. */
#define _GNU_SOURCE
#include <dirent.h>
#include <sched.h>
#include <stdlib.h>

static int next_of(const cpu_set_t *allowed, int cpu)
{
    do
        cpu = (cpu + 1) % CPU_SETSIZE;
    while (!CPU_ISSET(cpu, allowed));
    return cpu;
}

/* After the constructor of the library, which starts them, and before main(). */
__attribute__((constructor)) static void pin_threads(void)
{
    DIR *threads = opendir("/proc/self/task");
    cpu_set_t allowed;
    int cpu = -1;
    if (!threads || sched_getaffinity(0, sizeof allowed, &allowed))
        abort();
    for (const struct dirent *one; (one = readdir(threads));) {
        cpu_set_t own;
        int thread = atoi(one->d_name);
        if (thread == 0)
            continue;
        cpu = next_of(&allowed, cpu);
        CPU_ZERO(&own);
        CPU_SET(cpu, &own);
        if (sched_setaffinity(thread, sizeof own, &own))
            abort();
    }
    closedir(threads);
}
