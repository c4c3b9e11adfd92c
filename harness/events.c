#define _GNU_SOURCE
#include "events.h"

#include "checked.h"
#include "json.h"
#include "loop.h"
#include "output.h"
#include "sentinel.h"
#include "summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* An event is built in memory and written as one line, so a reader never sees half of one. */
struct line {
    struct json json;
    char *text;
    size_t length;
};

/* Warnings wait here for the main thread to print them. */
static struct {
    pthread_mutex_t lock;
    char *text; /* whole lines */
    size_t length;
} waiting = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool started; /* the start event is out */

static void line_begin(struct line *line, const char *event)
{
    line->text = NULL;
    line->json = (struct json){.stream = open_memstream(&line->text, &line->length)};
    if (!line->json.stream)
        abort();
    json_open_object(&line->json, NULL);
    json_string(&line->json, "event", event);
}

static void line_close(struct line *line)
{
    json_close_object(&line->json);
    fputc('\n', line->json.stream);
    fclose(line->json.stream);
}

/* Lines of warnings are as whole as the events. */
static bool write_waiting(void)
{
    pthread_mutex_lock(&waiting.lock);
    char *text = waiting.text;
    size_t length = waiting.length;
    waiting.text = NULL;
    waiting.length = 0;
    pthread_mutex_unlock(&waiting.lock);
    bool written = output_write(text, length);
    free(text);
    return written;
}

static bool line_end(struct line *line)
{
    line_close(line);
    bool written = (!started || write_waiting()) && output_write(line->text, line->length);
    free(line->text);
    return written;
}

static void cpu_array(struct json *json, const char *key, const struct cpulist *list)
{
    json_open_array(json, key);
    for (size_t i = 0; i < list->count; i++)
        json_count(json, NULL, (uint64_t)list->cpus[i]);
    json_close_array(json);
}

static void param_value(struct json *json, const struct param *param, const struct value *value)
{
    if (!value->set)
        json_null(json, param->name);
    else if (value->word)
        json_string(json, param->name, value->word);
    else if (param->type == PARAM_COUNT)
        json_count(json, param->name, value->count);
    else if (param->type == PARAM_NUMBER)
        json_number(json, param->name, value->number);
    else
        cpu_array(json, param->name, &value->cpus);
}

static void placement_object(struct json *json, const struct run *run)
{
    const struct placement *placement = &run->placement;
    const struct cgroup *cgroup = &run->cgroup;
    json_open_object(json, "placement");
    cpu_array(json, "cpus", &placement->cpus);
    cpu_array(json, "affinity", &placement->affinity);
    json_count(json, "cores", placement->cores);
    json_count(json, "sockets", placement->sockets);
    json_bool(json, "smt_shared", placement->smt_shared);
    json_bool(json, "oversubscribed", placement->oversubscribed);
    json_string(json, "policy", placement->given ? "given" : "cores_first");
    json_number(json, "quota_cpus", cgroup->quota_cpus > 0 ? cgroup->quota_cpus : NAN);
    json_string(json, "cpuset", cgroup->cpuset[0] ? cgroup->cpuset : NULL);
    json_string(json, "cgroup", cgroup->version == 2 ? "v2" : cgroup->version ? "v1" : NULL);
    json_close_object(json);
}

static void library_objects(struct json *json, const struct run *run)
{
    json_open_array(json, "libraries");
    for (size_t i = 0; i < run->library_count; i++) {
        const struct library *library = &run->libraries[i];
        json_open_object(json, NULL);
        json_string(json, "name", library->name);
        json_string(json, "version", library->version);
        json_string(json, "path", library->path);
        json_string(json, "detail", library->detail);
        json_close_object(json);
    }
    json_close_array(json);
}

static void facts_object(struct json *json, const struct run *run)
{
    json_open_object(json, "facts");
    for (size_t i = 0; i < run->fact_count; i++)
        json_string(json, run->facts[i].name, run->facts[i].text);
    json_close_object(json);
}

bool event_start(const struct run *run)
{
    struct line line;
    struct json *json = &line.json;
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    line_begin(&line, "start");
    json_count(json, "schema", 1);
    json_string(json, "program", run->program->name);
    json_string(json, "version", HOSTBENCH_VERSION);
    json_string(json, "workload", run->workload->name);
    json_open_object(json, "params");
    for (size_t i = 0; i < run->options.count; i++)
        if (run->options.params[i]->scope == SCOPE_REQUEST)
            param_value(json, run->options.params[i], &run->options.values[i]);
    json_close_object(json);
    placement_object(json, run);
    json_open_object(json, "clock");
    json_string(json, "source", "CLOCK_MONOTONIC");
    json_number(json, "resolution_s", run->clock.resolution_s);
    json_number(json, "read_s", run->clock.read_s);
    json_close_object(json);
    library_objects(json, run);
    facts_object(json, run);
    json_number(json, "time_unix_s", (double)wall.tv_sec + round((double)wall.tv_nsec / 1e6) / 1e3);
    started = line_end(&line);
    return started && write_waiting();
}

static void add_waiting(const struct line *line)
{
    pthread_mutex_lock(&waiting.lock);
    waiting.text = realloc(waiting.text, waiting.length + line->length);
    if (!waiting.text)
        abort();
    memcpy(waiting.text + waiting.length, line->text, line->length);
    waiting.length += line->length;
    pthread_mutex_unlock(&waiting.lock);
}

void run_warning(const struct run *run, const char *code, const char *format, ...)
{
    struct line line;
    char message[512];
    va_list arguments;
    (void)run; /* there is one in a process */
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    line_begin(&line, "warning");
    json_string(&line.json, "code", code);
    json_string(&line.json, "message", message);
    line_close(&line);
    add_waiting(&line);
    free(line.text);
}

bool event_sample(double t_s, double dt_s, const struct sampled *metrics, size_t count)
{
    struct line line;
    struct json *json = &line.json;
    line_begin(&line, "sample");
    json_number(json, "t_s", t_s);
    json_number(json, "dt_s", dt_s);
    json_open_object(json, "metrics");
    for (size_t i = 0; i < count; i++)
        json_number(json, metrics[i].name, metrics[i].value);
    json_close_object(json);
    return line_end(&line);
}

static const char NO_SCHEDSTAT[] = "the kernel keeps no run-queue statistics "
                                   "(/proc/thread-self/schedstat), or no descriptor was left";

/* Values of one object of the end event; those that are missing are remembered with the reason. */
struct reasons {
    struct json json;
    char *text;
    size_t length;
};

static void number_or_reason(struct json *json, struct reasons *reasons, const char *object,
                             const char *name, double value, const char *reason)
{
    char key[128];
    json_number(json, name, value);
    if (isfinite(value))
        return;
    snprintf(key, sizeof key, "%s.%s", object, name);
    json_string(&reasons->json, key, reason);
}

static void metrics_object(struct json *json, struct reasons *reasons,
                           const struct summary *summary)
{
    json_open_object(json, "metrics");
    for (size_t i = 0; i < summary->count; i++)
        number_or_reason(json, reasons, "metrics", summary->metrics[i].name,
                         summary->metrics[i].value, summary->metrics[i].reason);
    json_close_object(json);
}

static void thread_objects(struct json *json, struct reasons *reasons, const struct trial *trial,
                           const struct summary *summary)
{
    const double origin_s = summary->first_start_s;
    const struct run *run = trial->run;
    json_open_array(json, "threads");
    for (unsigned i = 0; i < run->threads; i++) {
        const struct worker *worker = &trial->workers[i];
        char object[32];
        snprintf(object, sizeof object, "threads.%u", i);
        json_open_object(json, NULL);
        json_count(json, "cpu", (uint64_t)worker->thread.cpu);
        json_number(json, "start_s", worker->start_s - origin_s);
        json_number(json, "stop_s", worker->stop_s - origin_s);
        json_number(json, "cpu_s", worker->used.cpu_s);
        number_or_reason(json, reasons, object, "wait_s", worker->used.wait_s, NO_SCHEDSTAT);
        json_count(json, "involuntary_switches", worker->used.involuntary_switches);
        json_count(json, "slices", worker->progress.slices);
        double clean = run->workload->loop ? NAN : (double)worker->progress.clean_slices;
        number_or_reason(json, reasons, object, "clean_slices", clean,
                         summary->clean_slice_ratio_reason);
        json_count(json, "operations", worker->progress.operations);
        const struct thread_figures *figures = &worker->figures;
        double rate = isfinite(figures->rate_clean) ? figures->rate_clean : figures->rate_whole;
        const char *why = worker->background     ? "this thread makes load: it is not measured"
                          : run->workload->moved ? loop_no_rate(worker)
                                                 : "the fixed work left nothing for this thread";
        number_or_reason(json, reasons, object, run->workload->rate.name,
                         run->workload->rate.time ? 1 / rate : rate, why);
        if (run->workload->clock_hertz)
            number_or_reason(json, reasons, object, "clock_hertz", worker->figures.clock_hertz,
                             run->workload->team ? "no two clock chains in a row agreed"
                                                 : "no two clock chains agreed");
        json_close_object(json);
    }
    json_close_array(json);
}

/* The primary figure of some CPUs. */
static void cpus_object(struct json *json, const int *cpus, size_t count, double value)
{
    json_open_object(json, NULL);
    json_open_array(json, "cpus");
    for (size_t i = 0; i < count; i++)
        json_count(json, NULL, (uint64_t)cpus[i]);
    json_close_array(json);
    json_number(json, "value", value);
    json_close_object(json);
}

static void pair_objects(struct json *json, const struct run *run)
{
    json_open_array(json, "pairs");
    for (size_t i = 0; i < run->pair_count; i++)
        cpus_object(json, run->pairs[i].cpus, 2, run->pairs[i].value);
    json_close_array(json);
}

static void rung_objects(struct json *json, const struct run *run)
{
    json_open_array(json, "rungs");
    for (size_t i = 0; i < run->rung_count; i++)
        cpus_object(json, run->placement.cpus.cpus, run->rungs[i].threads, run->rungs[i].value);
    json_close_array(json);
}

static void node_figure_objects(struct json *json, const struct run *run)
{
    json_open_array(json, "node_figures");
    for (size_t i = 0; i < run->node_figure_count; i++) {
        const struct node_figure *figure = &run->node_figures[i];
        json_open_object(json, NULL);
        json_count(json, "cpu_node", (uint64_t)figure->cpu_node);
        json_count(json, "memory_node", (uint64_t)figure->memory_node);
        json_string(json, "metric", figure->metric);
        json_number(json, "value", figure->value);
        json_close_object(json);
    }
    json_close_array(json);
}

static void disturbance_object(struct json *json, struct reasons *reasons,
                               const struct trial *trial, const struct summary *summary)
{
    const struct host_usage *before = &trial->host_before, *after = &trial->host_after;
    const char *object = "disturbance";
    json_open_object(json, object);
    number_or_reason(json, reasons, object, "cpu_ratio", summary->cpu_ratio,
                     summary->cpu_ratio_reason);
    number_or_reason(json, reasons, object, "wait_s", summary->wait_s, NO_SCHEDSTAT);
    json_count(json, "involuntary_switches", summary->involuntary_switches);
    number_or_reason(json, reasons, object, "steal_s", after->steal_s - before->steal_s,
                     "/proc/stat does not list these CPUs");
    number_or_reason(json, reasons, object, "psi_cpu_some_s",
                     after->psi_cpu_some_s - before->psi_cpu_some_s,
                     "the kernel gives no /proc/pressure/cpu");
    number_or_reason(json, reasons, object, "throttled_s", after->throttled_s - before->throttled_s,
                     "no cgroup of this process has CPU bandwidth statistics");
    /* Two clocks read one after the other differ by some 100 ns without any suspension. */
    double suspended_s = fmax(0, after->suspended_s - before->suspended_s);
    json_number(json, "stopped_s", trial->stopped_s + (suspended_s > 1e-3 ? suspended_s : 0));
    number_or_reason(json, reasons, object, "clean_slice_ratio", summary->clean_slice_ratio,
                     summary->clean_slice_ratio_reason);
    number_or_reason(json, reasons, object, "harness_ratio", summary->harness_ratio,
                     summary->harness_ratio_reason);
    json_close_object(json);
}

static void sentinel_object(struct json *json, struct reasons *reasons, const struct trial *trial)
{
    const char *object = "sentinel", *unsuited = sentinel_unsuited(trial->run);
    const struct sentinel *before = &trial->sentinel_before, *after = &trial->sentinel_after;
    if (unsuited) {
        json_null(json, object);
        json_string(&reasons->json, object, unsuited);
        return;
    }
    json_open_object(json, object);
    json_number(json, "alone_before", before->alone);
    json_number(json, "all_before", before->all);
    json_number(json, "alone_after", after->alone);
    json_number(json, "all_after", after->all);
    json_close_object(json);
}

/* Of all threads that were measured; NaN as soon as one was not counted. `*error`: as of counters. */
static struct counts counts_of(const struct trial *trial, double *cpu_s, int *error)
{
    struct counts all = {0, 0};
    for (unsigned i = 0; i < trial->run->threads; i++) {
        const struct worker *worker = &trial->workers[i];
        if (worker->background)
            continue;
        all = counts_sum(&all, &worker->counted);
        *cpu_s += worker->used.cpu_s;
        if (worker->counters.error)
            *error = worker->counters.error;
    }
    return all;
}

static void counted_object(struct json *json, struct reasons *reasons, const struct trial *trial)
{
    int error = 0;
    double cpu_s = 0;
    const struct counts counts = counts_of(trial, &cpu_s, &error);
    const char *object = "counted";
    if (isnan(counts.cycles)) {
        json_null(json, object);
        json_string(&reasons->json, object, counters_missing(error));
        return;
    }
    json_open_object(json, object);
    json_count(json, "cycles", (uint64_t)counts.cycles);
    json_count(json, "instructions", (uint64_t)counts.instructions);
    json_number(json, "cpu_s", cpu_s);
    json_close_object(json);
}

static void energy_object(struct json *json, struct reasons *reasons, const struct trial *trial,
                          double elapsed_s)
{
    const struct energy *before = &trial->energy_before, *after = &trial->energy_after;
    const char *object = "energy", *why, *why_memory;
    double package = energy_joules(before, after, elapsed_s, false, &why);
    double memory = energy_joules(before, after, elapsed_s, true, &why_memory);
    if (isnan(package)) {
        json_null(json, object);
        json_string(&reasons->json, object, why);
        return;
    }
    json_open_object(json, object);
    json_number(json, "package_joules", package);
    number_or_reason(json, reasons, object, "memory_joules", memory, why_memory);
    json_close_object(json);
}

bool event_end(const struct trial *trial)
{
    struct line line;
    struct json *json = &line.json;
    struct summary summary;
    struct reasons reasons = {0};
    reasons.json.stream = open_memstream(&reasons.text, &reasons.length);
    if (!reasons.json.stream)
        abort();
    summarise(trial, &summary);
    line_begin(&line, "end");
    metrics_object(json, &reasons, &summary);
    json_string(json, "basis", summary.basis);
    thread_objects(json, &reasons, trial, &summary);
    pair_objects(json, trial->run);
    rung_objects(json, trial->run);
    node_figure_objects(json, trial->run);
    disturbance_object(json, &reasons, trial, &summary);
    sentinel_object(json, &reasons, trial);
    counted_object(json, &reasons, trial);
    energy_object(json, &reasons, trial, summary.elapsed_s);
    json_bool(json, "verified", RESULTS_ARE_CHECKED);
    json_number(json, "elapsed_s", summary.elapsed_s);
    json_open_object(json, "reasons");
    fclose(reasons.json.stream);
    fputs(reasons.text, json->stream);
    json_close_object(json);
    free(reasons.text);
    return line_end(&line);
}

bool event_skip(const struct program *program, const char *reason)
{
    struct line line;
    fprintf(stderr, "%s: not supported here: %s\n", program->name, reason);
    line_begin(&line, "skip");
    json_string(&line.json, "reason", reason);
    return line_end(&line);
}

static void hex_string(struct json *json, const char *key, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "0x%" PRIx64, value);
    json_string(json, key, text);
}

static void wrong_object(struct json *json, const struct wrong *wrong)
{
    json_open_object(json, "wrong");
    json_count(json, "cpu", (uint64_t)wrong->cpu);
    json_string(json, "place", wrong->place);
    hex_string(json, "expected", wrong->expected);
    hex_string(json, "value", wrong->value);
    json_close_object(json);
}

bool event_error(const struct program *program, const char *code, const char *message,
                 const struct wrong *wrong)
{
    struct line line;
    char printable[1024];
    snprintf(printable, sizeof printable, "%s", message);
    for (char *c = printable; *c; c++) /* a value may hold any bytes; a message is one line */
        if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7e)
            *c = '?';
    fprintf(stderr, "%s: %s\n", program->name, printable);
    line_begin(&line, "error");
    json_string(&line.json, "code", code);
    json_string(&line.json, "message", printable);
    if (wrong)
        wrong_object(&line.json, wrong);
    return line_end(&line);
}
