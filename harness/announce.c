#include "announce.h"

#include "events.h"

#include <errno.h>
#include <string.h>

static const double COARSE_CLOCK_S = 1e-6; /* 1/3000 of the shortest slice */

static void warn(const struct run *run)
{
    const char *unconfirmed = run->workload->unconfirmed ? run->workload->unconfirmed(run) : NULL;
    if (unconfirmed)
        event_warning("not_run_on_hardware", "%s", unconfirmed);
    bool waits = run->workload->loop;
    if (run->placement.oversubscribed)
        event_warning("oversubscribed", "%u threads share %u CPUs: %s", run->threads, run->cpus,
                      waits ? "their figures hold the waiting for one"
                            : "figures that add up over threads are those of the whole run, not "
                              "of clean slices");
    if (run->cgroup.quota_cpus > 0 && run->cgroup.quota_cpus < run->threads)
        event_warning("quota", "the cgroup allows %.2f CPUs to %u threads: they %s be throttled",
                      run->cgroup.quota_cpus, run->threads, waits ? "may" : "will");
    if (run->clock.resolution_s > COARSE_CLOCK_S)
        event_warning("coarse_clock", "CLOCK_MONOTONIC moves in steps of %.3g s: %s are blurred",
                      run->clock.resolution_s, waits ? "latencies" : "slices");
}

int announce(struct run *run)
{
    warn(run);
    if (event_start(run))
        return EXIT_OK;
    run_reason(run, "the output cannot be written (%s): give stdout a reader or a file with room",
               strerror(errno));
    return EXIT_FAILED;
}
