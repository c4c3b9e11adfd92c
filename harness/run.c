#include "run.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    TEAM_SPINS = 1 << 20, /* some ms (aarch64, old x86) to 50 ms: parts are seldom so uneven */
};

bool run_param_set(const struct run *run, const char *param)
{
    return options_get(&run->options, param)->set;
}

const char *run_choice(const struct run *run, const char *param)
{
    return options_get(&run->options, param)->word;
}

void run_set_choice(struct run *run, const char *param, const char *choice)
{
    options_value(&run->options, param)->word = choice;
}

uint64_t run_count(const struct run *run, const char *param)
{
    const struct value *value = options_get(&run->options, param);
    assert(value->set && !value->word);
    return value->count;
}

void run_set_count(struct run *run, const char *param, uint64_t count)
{
    *options_value(&run->options, param) =
        (struct value){.set = true, .count = count, .number = (double)count};
}

double run_number(const struct run *run, const char *param)
{
    const struct value *value = options_get(&run->options, param);
    assert(value->set && !value->word);
    return value->number;
}

unsigned run_cpus(const struct run *run)
{
    return run->cpus;
}

unsigned run_threads(const struct run *run)
{
    return run->threads;
}

int run_cpu(const struct run *run, unsigned thread)
{
    return run->placement.cpus.cpus[thread];
}

const struct cpulist *run_cpu_list(const struct run *run, const char *param)
{
    return &options_get(&run->options, param)->cpus;
}

void run_set_cpu_list(struct run *run, const char *param, struct cpulist *list)
{
    struct value *value = options_value(&run->options, param);
    cpulist_free(&value->cpus);
    *value = (struct value){.set = true, .cpus = *list};
    *list = (struct cpulist){0};
}

struct cpulist run_cpus_left(const struct run *run)
{
    return placement_left(&run->placement, "/sys");
}

bool run_siblings(const struct run *run, unsigned first, unsigned second)
{
    return placement_siblings(run_cpu(run, first), run_cpu(run, second), "/sys");
}

bool run_siblings_visible(void)
{
    struct cpulist affinity;
    if (!placement_affinity(&affinity))
        return false;
    bool found = placement_has_siblings(&affinity, "/sys");
    cpulist_free(&affinity);
    return found;
}

bool run_oversubscribed(const struct run *run)
{
    return run->placement.oversubscribed;
}

void run_share_cpus(struct run *run)
{
    run->has_helpers = true;
}

void run_times_are_means(struct run *run)
{
    run->times_are_means = true;
}

void run_set_shared(struct run *run, void *shared)
{
    run->shared = shared;
}

void *run_shared(const struct run *run)
{
    return run->shared;
}

void run_library(struct run *run, const struct library *library)
{
    assert(run->library_count < LIBRARIES_MAX);
    run->libraries[run->library_count++] = *library;
}

void run_fact(struct run *run, const char *name, const char *text)
{
    if (!text[0])
        return;
    size_t i = 0;
    while (i < run->fact_count && strcmp(run->facts[i].name, name) != 0)
        i++;
    assert(i < FACTS_MAX);
    struct fact *fact = &run->facts[i];
    run->fact_count += i == run->fact_count;
    fact->name = name;
    snprintf(fact->text, sizeof fact->text, "%s", text);
}

int64_t run_wall_us(struct run *run)
{
    return wall_clock_us(&run->wall_clock);
}

int64_t run_wall_set_us(const struct run *run)
{
    return run->wall_clock.set_us;
}

void run_bulk_rate(struct run *run, double rate)
{
    run->bulk_rate = rate;
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

void run_set_block_bytes(struct run *run, uint64_t bytes)
{
    run->block_bytes = bytes;
}

double run_clock_read_s(const struct run *run)
{
    return run->clock.read_s;
}

bool run_clock_coarse(const struct run *run)
{
    return run->clock.resolution_s > MONOTONIC_COARSE_S;
}

int run_check_units(const struct thread *thread, uint64_t done, uint64_t requested)
{
    if (done == requested)
        return EXIT_OK;
    run_reason(thread->run,
               "thread %u, CPU %d, has done %" PRIu64 " of %" PRIu64
               " units of work: this CPU, its memory or this build does not work correctly; do not "
               "trust its figures",
               thread->index, thread->cpu, done, requested);
    return EXIT_WRONG;
}

void run_metric(struct run *run, const char *name, double value)
{
    assert(run->metric_count < OWN_METRICS_MAX);
    run->metrics[run->metric_count++] =
        (struct own_metric){name, value, "the workload could not measure it"};
}

void run_no_metric(struct run *run, const char *name, const char *why)
{
    assert(run->metric_count < OWN_METRICS_MAX);
    run->metrics[run->metric_count++] = (struct own_metric){name, NAN, why};
}

void run_pair(struct run *run, int first_cpu, int second_cpu, double value)
{
    struct pair_figure *pairs = realloc(run->pairs, (run->pair_count + 1) * sizeof *pairs);
    if (!pairs)
        abort();
    pairs[run->pair_count++] = (struct pair_figure){{first_cpu, second_cpu}, value};
    run->pairs = pairs;
}

void run_rung(struct run *run, unsigned threads, double value)
{
    struct rung_figure *rungs = realloc(run->rungs, (run->rung_count + 1) * sizeof *rungs);
    if (!rungs)
        abort();
    rungs[run->rung_count++] = (struct rung_figure){threads, value};
    run->rungs = rungs;
}

void run_node_figure(struct run *run, int cpu_node, int memory_node, const char *metric,
                     double value)
{
    size_t bytes = (run->node_figure_count + 1) * sizeof *run->node_figures;
    struct node_figure *figures = realloc(run->node_figures, bytes);
    if (!figures)
        abort();
    figures[run->node_figure_count++] = (struct node_figure){cpu_node, memory_node, metric, value};
    run->node_figures = figures;
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

void run_wrong(const struct thread *thread, uint64_t expected, uint64_t value, const char *format,
               ...)
{
    struct wrong *wrong = &thread->run->wrong;
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&thread->run->lock);
    if (!wrong->found) {
        *wrong = (struct wrong){true, thread->cpu, expected, value, ""};
        vsnprintf(wrong->place, sizeof wrong->place, format, arguments);
    }
    pthread_mutex_unlock(&thread->run->lock);
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

unsigned run_spins(const struct run *run)
{
    return run->placement.oversubscribed ? 0 : TEAM_SPINS;
}

const atomic_bool *run_stop_flag(const struct run *run)
{
    return &run->stopping;
}

bool run_stopping(const struct run *run)
{
    return atomic_load_explicit(&run->stopping, memory_order_relaxed);
}
