#include "table.h"

#include "json.h"
#include "run.h"
#include "summary.h"

#include <string.h>

#define NAIVE                                                                                      \
    "\n\nNaive: this workload measures in a way that is known to mislead, to show by how "         \
    "much.\nIts figure has no limit, no peer and no place among the best."

static const char *type_name(enum param_type type)
{
    static const char *const names[] = {[PARAM_COUNT] = "count",
                                        [PARAM_NUMBER] = "number",
                                        [PARAM_CHOICE] = "choice",
                                        [PARAM_CPU_LIST] = "cpu_list",
                                        [PARAM_TEXT] = "text"};
    return names[type];
}

/* Why the workload cannot run here with its defaults and, if `param` is given, that choice. */
static const char *unsupported_with(const struct program *program, const struct workload *workload,
                                    const char *param, const char *choice)
{
    static struct run run; /* the reason may point into it */
    if (!workload->unsupported)
        return NULL;
    memset(&run, 0, sizeof run);
    run.program = program;
    run.workload = workload;
    options_init(&run.options, workload);
    if (param)
        run_set_choice(&run, param, choice);
    if (workload->resolve)
        workload->resolve(&run);
    return workload->unsupported(&run);
}

static void default_value(struct json *json, const struct param *param)
{
    struct options options;
    const struct param alone[] = {*param, {.name = NULL}};
    const struct workload workload = {.params = alone};
    options_init(&options, &workload);
    const struct value *value = &options.values[0];
    if (!value->set)
        json_null(json, "default");
    else if (value->word)
        json_string(json, "default", value->word);
    else
        json_number(json, "default", value->number);
}

static void choices(struct json *json, const struct program *program,
                    const struct workload *workload, const struct param *param)
{
    json_open_array(json, "choices");
    for (const char *const *choice = param->choices; choice && *choice; choice++)
        json_string(json, NULL, *choice);
    json_close_array(json);
    json_open_object(json, "unsupported");
    for (const char *const *choice = param->choices;
         param->type == PARAM_CHOICE && choice && *choice; choice++) {
        const char *reason = unsupported_with(program, workload, param->name, *choice);
        if (reason)
            json_string(json, *choice, reason);
    }
    json_close_object(json);
}

static void words(struct json *json, const char *name, const char *const *words)
{
    json_open_array(json, name);
    for (; *words; words++)
        json_string(json, NULL, *words);
    json_close_array(json);
}

static void roles(struct json *json, unsigned roles)
{
    static const char *const names[] = {"axis", "tag", "how"};
    json_open_array(json, "roles");
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (roles & 1U << i)
            json_string(json, NULL, names[i]);
    json_close_array(json);
}

static bool has_choice(const struct param *param, const char *word)
{
    const char *const *choice = param->choices;
    while (choice && *choice && strcmp(*choice, word))
        choice++;
    return choice && *choice;
}

static void fallbacks(struct json *json, const struct param *param)
{
    json_open_object(json, "fallbacks");
    for (const char *const *pair = param->fallbacks; *pair; pair += 2)
        if (has_choice(param, pair[0]))
            json_string(json, pair[0], pair[1]);
    json_close_object(json);
}

/* What is behind the words of a parameter; only what there is to say. */
static void meaning(struct json *json, const struct param *param)
{
    const char *const facts[] = {param->facts[0], param->facts[1], NULL};
    const char *const resolved[] = {param->resolved, NULL};
    bool number = param->type == PARAM_COUNT || param->type == PARAM_NUMBER;
    if (param->roles)
        roles(json, param->roles);
    if (param->title)
        json_string(json, "title", param->title);
    if (param->noun)
        json_string(json, "noun", param->noun);
    if (param->named)
        json_bool(json, "named", true);
    if (param->resolved || (number && param->choices))
        words(json, "resolved", number ? param->choices : resolved);
    if (param->resolved_once)
        json_bool(json, "resolved_once", true);
    if (param->fallbacks)
        fallbacks(json, param);
    if (param->facts[0])
        words(json, "facts", facts);
    if (param->excludes)
        json_string(json, "excludes", param->excludes);
    if (param->ends_trial)
        json_bool(json, "ends_trial", true);
}

static void param_object(struct json *json, const struct program *program,
                         const struct workload *workload, const struct param *param)
{
    bool number = param->type == PARAM_COUNT || param->type == PARAM_NUMBER;
    json_open_object(json, NULL);
    json_string(json, "name", param->name);
    json_string(json, "type", type_name(param->type));
    json_string(json, "unit", param->unit);
    default_value(json, param);
    if (number)
        json_number(json, "min", param->min);
    else
        json_null(json, "min");
    if (number || param->max > 0)
        json_number(json, "max", param->max);
    else
        json_null(json, "max");
    choices(json, program, workload, param);
    json_string(json, "scope", param->scope == SCOPE_HOST ? "host" : "request");
    json_string(json, "help", param->help);
    meaning(json, param);
    json_close_object(json);
}

static void metric_object(struct json *json, const struct metric *metric, bool primary)
{
    json_open_object(json, NULL);
    json_string(json, "name", metric->name);
    json_string(json, "unit", metric->unit);
    json_string(json, "direction", metric->direction == HIGHER_IS_BETTER ? "higher" : "lower");
    json_bool(json, "primary", primary);
    json_string(json, "description", metric->description);
    json_close_object(json);
}

static void workload_object(struct json *json, const struct program *program,
                            const struct workload *workload)
{
    struct options options;
    options_init(&options, workload);
    json_open_object(json, NULL);
    json_string(json, "name", workload->name);
    json_string(json, "description", workload->description);
    json_string(json, "kind", workload->loop ? "loop" : workload->team ? "team" : "step");
    if (workload->setup_s > 0)
        json_number(json, "setup_s", workload->setup_s);
    if (workload->setup_s_per_byte > 0)
        json_number(json, "setup_s_per_byte", workload->setup_s_per_byte);
    if (workload->naive)
        json_bool(json, "naive", true);
    json_string(json, "unsupported", unsupported_with(program, workload, NULL, NULL));
    json_open_array(json, "params");
    for (size_t i = 0; i < options.count; i++)
        param_object(json, program, workload, options.params[i]);
    json_close_array(json);
    json_open_array(json, "metrics");
    for (unsigned which = 0; which < harness_metrics(workload); which++) {
        struct metric metric;
        char name[64];
        if (harness_metric(workload, which, &metric, name, sizeof name))
            metric_object(json, &metric, which == 0);
    }
    for (const struct metric *own = workload->metrics; own && own->name; own++)
        metric_object(json, own, false);
    json_close_array(json);
    json_close_object(json);
}

void table_print_json(const struct program *program)
{
    struct json json = {.stream = stdout};
    json_open_object(&json, NULL);
    json_count(&json, "schema", 1);
    json_string(&json, "program", program->name);
    json_string(&json, "subsystem", program->subsystem);
    json_string(&json, "version", HOSTBENCH_VERSION);
    json_open_array(&json, "workloads");
    for (const struct workload *const *at = program->workloads; *at; at++)
        workload_object(&json, program, *at);
    json_close_array(&json);
    json_close_object(&json);
    putchar('\n');
}

void table_print_help(const struct program *program)
{
    printf("%s %s: measures one workload once and prints its events as JSON lines.\n\n"
           "usage: %s WORKLOAD [--PARAMETER VALUE ...]\n"
           "       %s WORKLOAD --help    its parameters and metrics\n"
           "       %s --list             all of them as JSON\n"
           "       %s --version\n\nworkloads:\n",
           program->name, HOSTBENCH_VERSION, program->name, program->name, program->name,
           program->name);
    for (const struct workload *const *at = program->workloads; *at; at++)
        printf("  %-16s %s\n", (*at)->name, (*at)->description);
    printf("\nexit codes: 0 measured and verified, 1 failed or ended early, 2 usage,\n3 a resource "
           "is missing, 4 unsupported here, 5 the result was wrong\n");
}

void table_print_workload_help(const struct program *program, const struct workload *workload)
{
    struct options options;
    options_init(&options, workload);
    printf("usage: %s %s [--PARAMETER VALUE ...]\n\n%s%s\n\nparameters:\n", program->name,
           workload->name, workload->description, workload->naive ? NAIVE : "");
    for (size_t i = 0; i < options.count; i++) {
        const struct param *param = options.params[i];
        char name[64], allowed[256];
        option_name(param, name, sizeof name);
        option_allowed(param, allowed, sizeof allowed);
        printf("  %s  %s\n      %s", name, param->help, allowed);
        if (param->initial)
            printf("; default %s", param->initial);
        if (param->excludes) {
            option_name(&(struct param){.name = param->excludes}, name, sizeof name);
            printf("; not together with %s", name);
        }
        putchar('\n');
    }
    printf("\nmetrics:\n");
    for (unsigned which = 0; which < harness_metrics(workload); which++) {
        struct metric metric;
        char name[64];
        if (harness_metric(workload, which, &metric, name, sizeof name))
            printf("  %s (%s)\n      %s\n", metric.name, metric.unit, metric.description);
    }
    for (const struct metric *own = workload->metrics; own && own->name; own++)
        printf("  %s (%s)\n      %s\n", own->name, own->unit, own->description);
}
