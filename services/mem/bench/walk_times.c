/* The times of blocks that a walk has timed one by one, as metrics. */
#include "walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *metric;
    double share;
    size_t least; /* of so many times such a quantile says something */
} quantiles[] = {
    {"block_time_s_median", 0.5, 1},
    {"block_time_s_p99", 0.99, 100},
    {"block_time_s_p999", 0.999, 1000},
};

/* The times of all walks, sorted; to be freed. */
static double *collect_times(const struct walk *walks, unsigned threads, size_t *count)
{
    double *times = calloc((size_t)threads * TIMES_KEPT, sizeof *times);
    *count = 0;
    for (unsigned i = 0; times && i < threads; i++) {
        memcpy(times + *count, walks[i].times.values, walks[i].times.kept * sizeof *times);
        *count += walks[i].times.kept;
    }
    if (times && *count)
        median(times, *count);
    return times;
}

static void report_no_times(struct run *run, const char *why)
{
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++)
        run_no_metric(run, quantiles[i].metric, why);
    run_no_metric(run, "block_time_s_max", why);
}

static void report_quantiles(struct run *run, const double *times, size_t count)
{
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++)
        if (count < quantiles[i].least)
            run_no_metric(run, quantiles[i].metric, "too few blocks were timed");
        else
            run_metric(run, quantiles[i].metric,
                       times[(size_t)ceil(quantiles[i].share * (double)count) - 1]);
}

void walks_report_times(struct run *run, const struct walk *walks, const struct ground *ground)
{
    size_t count;
    double longest_s = 0;
    if (!ground->timed) {
        report_no_times(run, "there are no blocks of at least 8192 bytes");
        return;
    }
    double *times = collect_times(walks, run_threads(run), &count);
    for (unsigned i = 0; i < run_threads(run); i++)
        longest_s = fmax(longest_s, walks[i].longest_s);
    if (!times || count == 0) {
        report_no_times(run, "no block was completed");
    } else {
        report_quantiles(run, times, count);
        run_metric(run, "block_time_s_max", longest_s);
    }
    free(times);
}
