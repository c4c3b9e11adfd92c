#define _GNU_SOURCE
#include "disturbance.h"

#include "monotonic.h"
#include "textfile.h"

#include <ctype.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int thread_usage_open(void)
{
    return open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

/* schedstat: "run_ns wait_ns timeslices". */
static void read_schedstat(int schedstat, struct thread_usage *usage)
{
    char text[96], *end = text;
    ssize_t length = schedstat < 0 ? -1 : pread(schedstat, text, sizeof text - 1, 0);
    usage->wait_s = usage->turns = NAN;
    if (length <= 0)
        return;
    text[length] = '\0';
    /* A kernel that keeps no such statistics prints zeros; a thread that reads this has run. */
    if (!(strtod(text, &end) > 0))
        return;
    usage->wait_s = strtod(end, &end) * 1e-9;
    usage->turns = strtod(end, NULL);
}

struct thread_usage thread_usage_read(int schedstat)
{
    struct rusage counted;
    getrusage(RUSAGE_THREAD, &counted);
    struct thread_usage usage = {
        .cpu_s = seconds_of(CLOCK_THREAD_CPUTIME_ID),
        .involuntary_switches = (uint64_t)counted.ru_nivcsw,
    };
    read_schedstat(schedstat, &usage);
    return usage;
}

struct thread_usage thread_usage_between(const struct thread_usage *before,
                                         const struct thread_usage *after)
{
    return (struct thread_usage){
        .cpu_s = after->cpu_s - before->cpu_s,
        .wait_s = after->wait_s - before->wait_s,
        .turns = after->turns - before->turns,
        .involuntary_switches = after->involuntary_switches - before->involuntary_switches,
    };
}

/* /proc/stat: "cpuN user nice system idle iowait irq softirq steal …" in clock ticks. */
double steal_read_s(const struct cpulist *cpus)
{
    char line[512];
    double ticks = 0;
    bool known = false;
    FILE *stream = fopen("/proc/stat", "re");
    while (stream && fgets(line, sizeof line, stream)) {
        int cpu;
        unsigned long long steal;
        if (strlen(line) < 4 || !isdigit((unsigned char)line[3])) /* "cpu ": the sum of all */
            continue;
        if (sscanf(line, "cpu%d %*u %*u %*u %*u %*u %*u %*u %llu", &cpu, &steal) != 2 ||
            !cpulist_contains(cpus, cpu))
            continue;
        ticks += (double)steal;
        known = true;
    }
    if (stream)
        fclose(stream);
    return known ? ticks / (double)sysconf(_SC_CLK_TCK) : NAN;
}

static double psi_cpu_some_s(void)
{
    char text[256];
    if (!textfile_read("/proc/pressure/cpu", text, sizeof text))
        return NAN;
    const char *total = strstr(text, "total=");
    return total ? strtod(total + strlen("total="), NULL) * 1e-6 : NAN;
}

struct host_usage host_usage_read(const struct cpulist *cpus, const struct cgroup *cgroup)
{
    struct host_usage usage = {
        .steal_s = steal_read_s(cpus),
        .psi_cpu_some_s = psi_cpu_some_s(),
        .suspended_s = seconds_of(CLOCK_BOOTTIME) - now_s(),
    };
    if (!cgroup_throttled_s(cgroup, &usage.throttled_s))
        usage.throttled_s = NAN;
    return usage;
}
