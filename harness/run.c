#include "run.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

const char *run_choice(const struct run *run, const char *param)
{
    return options_get(&run->options, param)->word;
}

void run_set_choice(struct run *run, const char *param, const char *choice)
{
    options_value(&run->options, param)->word = choice;
}

const void *run_own(const struct run *run)
{
    return run->workload->own;
}

void run_set_unit(struct run *run, uint64_t operations, uint64_t batch_max)
{
    run->unit_operations = operations;
    run->batch_max = batch_max;
}

double run_clock_read_s(const struct run *run)
{
    return run->clock.read_s;
}

void run_metric(struct run *run, const char *name, double value)
{
    assert(run->metric_count < OWN_METRICS_MAX);
    run->metrics[run->metric_count++] = (struct own_metric){name, value};
}

void run_reason(struct run *run, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&run->lock);
    if (!run->reason[0])
        vsnprintf(run->reason, sizeof run->reason, format, arguments);
    pthread_mutex_unlock(&run->lock);
    va_end(arguments);
}

void run_fail(struct run *run, int exit_code)
{
    if (exit_code == EXIT_OK)
        return;
    pthread_mutex_lock(&run->lock);
    if (run->exit_code == EXIT_OK)
        run->exit_code = exit_code;
    pthread_mutex_unlock(&run->lock);
    atomic_store(&run->stopping, true);
}

bool run_stopping(const struct run *run)
{
    return atomic_load_explicit(&run->stopping, memory_order_relaxed);
}
