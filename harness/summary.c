#include "summary.h"

#include "loop_summary.h"
#include "step_summary.h"

unsigned harness_metrics(const struct workload *workload)
{
    return workload->loop ? loop_metrics(workload) : step_metrics();
}

bool harness_metric(const struct workload *workload, unsigned which, struct metric *metric,
                    char *name, size_t size)
{
    return workload->loop ? loop_metric(workload, which, metric, name, size)
                          : step_metric(workload, which, metric, name, size);
}

void summarise(const struct trial *trial, struct summary *summary)
{
    const struct run *run = trial->run;
    struct totals totals = totals_collect(trial);
    *summary = (struct summary){.wait_s = totals.wait_s,
                                .involuntary_switches = totals.involuntary_switches,
                                .first_start_s = totals.first_start_s,
                                .elapsed_s = totals.last_stop_s - totals.first_start_s};
    if (run->workload->loop)
        loop_summarise(trial, &totals, summary);
    else
        step_summarise(trial, &totals, summary);
    for (size_t i = 0; i < run->metric_count; i++)
        summary_add(summary, run->metrics[i].name, run->metrics[i].value, run->metrics[i].why);
    totals_free(&totals);
}
