#include "options.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 128 };

static const char TEXT_CHARACTERS[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789:._-";

static const char WORK[] = "work";
static const char *const all_cpus[] = {"all", NULL};

static const struct param common_params[] = {
    {.name = "threads",
     .type = PARAM_COUNT,
     .initial = "all",
     .min = 1,
     .max = THREADS_MAX,
     .choices = all_cpus,
     .roles = ROLE_AXIS | ROLE_TAG,
     .noun = "thread",
     .help = "Number of threads; all: one per CPU that this process may use."},
    {.name = "cpus",
     .type = PARAM_CPU_LIST,
     .help = "CPUs to pin the threads to, round-robin. Default: one CPU of each core first, then "
             "the SMT siblings."},
    {.name = "duration_s",
     .type = PARAM_NUMBER,
     .unit = "s",
     .roles = ROLE_HOW,
     .initial = "1",
     .min = 0.01,
     .max = 604800,
     .help = "Length of the timed region."},
    {.name = WORK,
     .type = PARAM_COUNT,
     .unit = "operation",
     .min = 1,
     .max = 1e18,
     .excludes = "duration_s",
     .ends_trial = true,
     .help = "Total amount of work, split over the threads (strong scaling)."},
    {.name = "warmup_s",
     .type = PARAM_NUMBER,
     .unit = "s",
     .roles = ROLE_HOW,
     .initial = "0.1",
     .min = 0,
     .max = 60,
     .help = "Length of the warm-up before the timed region, which is not measured."},
    {.name = "slice_s",
     .type = PARAM_NUMBER,
     .unit = "s",
     .roles = ROLE_HOW,
     .initial = "0.003",
     .min = 0.003,
     .max = 0.01,
     .help = "Target length of one slice; the program judges each slice clean or disturbed."},
    {.name = "sample_interval_s",
     .type = PARAM_NUMBER,
     .unit = "s",
     .roles = ROLE_HOW,
     .initial = "1",
     .min = 0.1,
     .max = 3600,
     .help = "Interval between two sample events."},
    {.name = "lifeline_fd",
     .type = PARAM_COUNT,
     .scope = SCOPE_HOST,
     .min = 0,
     .max = 1048576,
     .help = "File descriptor of a pipe; the program exits when the other end closes."},
    {.name = NULL},
};

/* Instead of the common one where bytes are counted. */
static const struct param work_bytes = {
    .name = WORK,
    .type = PARAM_COUNT,
    .unit = "byte",
    .min = 1,
    .max = 1e18,
    .excludes = "duration_s",
    .ends_trial = true,
    .help = "Total number of bytes, split over the threads (strong scaling)."};

static void add_param(struct options *options, const struct param *param)
{
    assert(options->total < OPTIONS_MAX);
    options->params[options->total++] = param;
}

static bool excludes(const struct workload *workload, const char *name)
{
    const char *const *excluded = workload->excludes;
    if (workload->loop && !strcmp(name, "slice_s"))
        return true;
    while (excluded && *excluded && strcmp(*excluded, name))
        excluded++;
    return excluded && *excluded;
}

static bool has_own(const struct workload *workload, const char *name)
{
    const struct param *own = workload->params;
    while (own && own->name && strcmp(own->name, name))
        own++;
    return own && own->name;
}

/* Those the workload excludes, or those it does not. */
static void add_common(struct options *options, const struct workload *workload, bool excluded)
{
    for (const struct param *param = common_params; param->name; param++) {
        bool bytes = !strcmp(param->name, work_bytes.name) && rate_in_bytes(&workload->rate);
        if (!has_own(workload, param->name) && excludes(workload, param->name) == excluded)
            add_param(options, bytes ? &work_bytes : param);
    }
}

static bool parse_value(const struct param *param, const char *text, struct value *value);

void options_init(struct options *options, const struct workload *workload)
{
    *options = (struct options){0};
    for (const struct param *own = workload->params; own && own->name; own++)
        add_param(options, own);
    add_common(options, workload, false);
    options->count = options->total;
    add_common(options, workload, true);
    for (size_t i = 0; i < options->total; i++) {
        const struct param *param = options->params[i];
        if (param->initial && !parse_value(param, param->initial, &options->values[i]))
            assert(!"the default of a parameter is out of its own range");
    }
    /* Its own ones come first, and the common one is always there. */
    while (!options->params[options->work]->ends_trial) {
        options->work++;
        assert(options->work < options->total);
    }
}

void option_name(const struct param *param, char *name, size_t size)
{
    snprintf(name, size, "--%s", param->name);
    for (char *c = name + 2; *c; c++)
        if (*c == '_')
            *c = '-';
}

static void append(char *text, size_t size, const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s", more);
}

static void append_choices(const struct param *param, char *text, size_t size)
{
    for (const char *const *choice = param->choices; *choice; choice++) {
        append(text, size, choice == param->choices ? "" : ", ");
        append(text, size, *choice);
    }
}

void option_allowed(const struct param *param, char *text, size_t size)
{
    switch (param->type) {
    case PARAM_CHOICE:
        snprintf(text, size, "one of ");
        append_choices(param, text, size);
        return;
    case PARAM_CPU_LIST:
        snprintf(text, size, "a CPU list such as 0,2-5 that names each CPU once");
        return;
    case PARAM_TEXT:
        snprintf(text, size, "a name of 1 to %d of A-Z a-z 0-9 : . _ -", TEXT_MAX);
        return;
    case PARAM_COUNT:
        snprintf(text, size, "a whole number from %.0f to %.0f", param->min, param->max);
        break;
    case PARAM_NUMBER:
        snprintf(text, size, "a number from %g to %.0f", param->min, param->max);
        if (param->max != floor(param->max))
            snprintf(text, size, "a number from %g to %g", param->min, param->max);
        break;
    }
    if (param->unit) {
        append(text, size, " (");
        append(text, size, param->unit);
        append(text, size, ")");
    }
    if (param->choices) {
        append(text, size, ", or ");
        append_choices(param, text, size);
    }
}

static bool take_choice(const struct param *param, const char *text, struct value *value)
{
    for (const char *const *choice = param->choices; choice && *choice; choice++)
        if (!strcmp(*choice, text)) {
            value->word = *choice;
            return true;
        }
    return false;
}

static bool parse_count(const char *text, struct value *value)
{
    /* strtoull takes signs, blanks and wraps negatives around: only digits may pass. */
    if (!isdigit((unsigned char)*text) || text[strspn(text, "0123456789")])
        return false;
    errno = 0;
    value->count = strtoull(text, NULL, 10);
    value->number = (double)value->count;
    return errno == 0;
}

static bool parse_number(const char *text, struct value *value)
{
    /* strtod takes nan, inf, hexadecimals and blanks. */
    if (!*text || text[strspn(text, "0123456789.eE+-")])
        return false;
    char *end;
    value->number = strtod(text, &end);
    return *end == '\0' && isfinite(value->number);
}

static bool take_text(const char *text, struct value *value)
{
    size_t length = strlen(text);
    value->word = text;
    return length >= 1 && length <= TEXT_MAX && strspn(text, TEXT_CHARACTERS) == length;
}

static bool parse_value(const struct param *param, const char *text, struct value *value)
{
    *value = (struct value){.set = true};
    if (take_choice(param, text, value))
        return true;
    switch (param->type) {
    case PARAM_CHOICE:
        return false;
    case PARAM_CPU_LIST:
        return cpulist_parse(text, &value->cpus);
    case PARAM_TEXT:
        return take_text(text, value);
    case PARAM_COUNT:
        if (!parse_count(text, value))
            return false;
        break;
    case PARAM_NUMBER:
        if (!parse_number(text, value))
            return false;
        break;
    }
    return value->number >= param->min && value->number <= param->max;
}

static size_t index_of(const struct options *options, const char *param)
{
    for (size_t i = 0; i < options->total; i++)
        if (!strcmp(options->params[i]->name, param))
            return i;
    assert(!"a workload reads a parameter that its table lacks");
    abort();
}

struct value *options_value(struct options *options, const char *param)
{
    return &options->values[index_of(options, param)];
}

const struct value *options_get(const struct options *options, const char *param)
{
    return &options->values[index_of(options, param)];
}

/* Index of the parameter that an argument "--name" or "--name=value" means; count: none. */
static size_t find_option(const struct options *options, const char *argument)
{
    size_t length = strcspn(argument, "="), i = 0;
    for (; i < options->count; i++) {
        char name[64];
        option_name(options->params[i], name, sizeof name);
        if (strlen(name) == length && !strncmp(name, argument, length))
            break;
    }
    return i;
}

static void unknown_option(const struct options *options, const char *argument, char *message,
                           size_t size)
{
    snprintf(message, size, "unknown parameter \"%.100s\"; allowed:", argument);
    for (size_t i = 0; i < options->count; i++) {
        char name[64];
        option_name(options->params[i], name, sizeof name);
        append(message, size, " ");
        append(message, size, name);
    }
}

static bool take_option(struct options *options, size_t i, const char *text, char *message,
                        size_t size)
{
    char name[64], allowed[256];
    option_name(options->params[i], name, sizeof name);
    option_allowed(options->params[i], allowed, sizeof allowed);
    if (!text) {
        snprintf(message, size, "%s needs a value: %s", name, allowed);
        return false;
    }
    cpulist_free(&options->values[i].cpus);
    if (parse_value(options->params[i], text, &options->values[i]))
        return true;
    snprintf(message, size, "%s \"%.100s\": allowed is %s", name, text, allowed);
    return false;
}

/* Whether no two are given that exclude one another. */
static bool compatible(const struct options *options, const bool given[OPTIONS_MAX], char *message,
                       size_t size)
{
    for (size_t i = 0; i < options->count; i++) {
        const char *excludes = options->params[i]->excludes;
        if (!given[i] || !excludes || !given[index_of(options, excludes)])
            continue;
        char name[64], other[64];
        option_name(options->params[i], name, sizeof name);
        option_name(options->params[index_of(options, excludes)], other, sizeof other);
        snprintf(message, size, "%s and %s are both given: give one of them", name, other);
        return false;
    }
    return true;
}

bool options_parse(struct options *options, int argc, char **argv, char *message, size_t size)
{
    bool given[OPTIONS_MAX] = {false};
    for (int a = 0; a < argc; a++) {
        size_t i = find_option(options, argv[a]);
        if (i == options->count) {
            unknown_option(options, argv[a], message, size);
            return false;
        }
        if (given[i]) {
            snprintf(message, size, "%s is given twice: give it once", argv[a]);
            return false;
        }
        given[i] = true;
        const char *equals = strchr(argv[a], '=');
        const char *text = equals ? equals + 1 : a + 1 < argc ? argv[++a] : NULL;
        if (!take_option(options, i, text, message, size))
            return false;
    }
    if (!compatible(options, given, message, size))
        return false;
    size_t duration = index_of(options, "duration_s");
    if (options->values[options->work].set && !given[duration])
        options->values[duration].set = false;
    return true;
}

void options_free(struct options *options)
{
    for (size_t i = 0; i < options->count; i++)
        cpulist_free(&options->values[i].cpus);
}
