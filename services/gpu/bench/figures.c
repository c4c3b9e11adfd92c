#include "figures.h"

#include "clocks.h"
#include "telemetry.h"

#include <math.h>

static void report(struct run *run, const char *name, double value, const char *why)
{
    if (isfinite(value))
        run_metric(run, name, value);
    else
        run_no_metric(run, name, why);
}

static void report_windows(const struct gpu_job *job, const struct windows_figures *figures)
{
    struct run *run = job->run;
    double best = job->work.time ? 1 / figures->rate_best : figures->rate_best;
    report(run, "rate_best", best, "no window was filled");
    report(run, "rate_cv", figures->rate_cv, "one window has no spread");
    run_metric(run, "windows", (double)figures->count);
    report(run, "device_busy_ratio", figures->device_s / figures->wall_s, "no window was filled");
}

static double core_clock_hertz(const struct gpu_job *job)
{
    double hertz = clocks_hertz(job);
    return isfinite(hertz) ? hertz : telemetry_figures(job->telemetry).clock_hertz;
}

void figures_report_cycles(struct gpu_job *job)
{
    double rate = job->figures.rate_median;
    report(job->run, "operations_per_cycle", rate / core_clock_hertz(job),
           isfinite(rate) ? telemetry_why(job->telemetry) : "no window was filled");
}

void figures_report(struct gpu_job *job)
{
    const struct windows_figures *figures = &job->figures;
    report_windows(job, figures);
    report(job->run, "core_clock_hertz", core_clock_hertz(job), telemetry_why(job->telemetry));
    telemetry_report(job->telemetry, job->run);
}
