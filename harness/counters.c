#define _GNU_SOURCE
#include "counters.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_event(uint64_t config, int group)
{
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_HARDWARE,
        .size = sizeof attributes,
        .config = config,
        .read_format =
            PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    return (int)syscall(SYS_perf_event_open, &attributes, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
}

struct counters counters_open(void)
{
    struct counters counters = {.cycles = open_event(PERF_COUNT_HW_CPU_CYCLES, -1),
                                .instructions = -1};
    if (counters.cycles >= 0)
        counters.instructions = open_event(PERF_COUNT_HW_INSTRUCTIONS, counters.cycles);
    if (counters.instructions < 0)
        counters.error = errno;
    return counters;
}

void counters_close(struct counters *counters)
{
    if (counters->instructions >= 0)
        close(counters->instructions);
    if (counters->cycles >= 0)
        close(counters->cycles);
    counters->cycles = counters->instructions = -1;
}

struct counts counters_read(const struct counters *counters)
{
    /* perf_event_open(2), "Reading results": of a group. */
    struct {
        uint64_t events, enabled_ns, running_ns, cycles, instructions;
    } group;
    if (counters->instructions < 0 ||
        read(counters->cycles, &group, sizeof group) != (ssize_t)sizeof group)
        return (struct counts){NAN, NAN};
    /* Others' events took turns with these, or this core's kind has no such counter: what is missing
     * would be a guess. */
    if (group.running_ns < group.enabled_ns || group.running_ns == 0)
        return (struct counts){NAN, NAN};
    return (struct counts){(double)group.cycles, (double)group.instructions};
}

struct counts counts_between(const struct counts *before, const struct counts *after)
{
    return (struct counts){after->cycles - before->cycles,
                           after->instructions - before->instructions};
}

struct counts counts_sum(const struct counts *one, const struct counts *other)
{
    return (struct counts){one->cycles + other->cycles, one->instructions + other->instructions};
}

const char *counters_missing(int error)
{
    switch (error) {
    case 0:
        return "other users of the CPU's counters took turns with this process (the kernel's NMI "
               "watchdog uses one, too)";
    case EACCES:
    case EPERM:
        return "the kernel does not let this process count cycles: set kernel.perf_event_paranoid "
               "to 2 or less, or give it CAP_PERFMON; in a container, its seccomp profile must "
               "allow perf_event_open";
    case EMFILE:
    case ENFILE:
        return "no file descriptor was left for the CPU's counters: raise ulimit -n";
    case ENOSYS:
        return "this kernel has no perf_event_open";
    default:
        return "the kernel knows no cycle counter of this CPU, which is usual in a virtual machine";
    }
}
