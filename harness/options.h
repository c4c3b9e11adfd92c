/* The parameters of one trial: those every workload has and the workload's own. */
#ifndef HOSTBENCH_OPTIONS_H
#define HOSTBENCH_OPTIONS_H

#include "cpulist.h"
#include "workload.h"

enum { OPTIONS_MAX = 32, THREADS_MAX = 4096 };

struct value {
    bool set;
    const char *word; /* the choice taken, or the text; NULL when a number was given */
    uint64_t count;
    double number;
    struct cpulist cpus;
};

/* Those that may be given, and behind them those that the workload excludes: they keep their
 * defaults, without a warning. */
struct options {
    size_t count;
    size_t total;
    size_t work; /* index of the one that fixes or bounds the work */
    const struct param *params[OPTIONS_MAX];
    struct value values[OPTIONS_MAX];
};

/* All parameters of the workload with their defaults: its own, and the common ones that it neither
 * replaces nor excludes. */
void options_init(struct options *options, const struct workload *workload);
/* Takes argv after the workload's name. On failure writes one line into `message`: the value, what
 * is allowed, the remedy. */
bool options_parse(struct options *options, int argc, char **argv, char *message, size_t size);
/* The value of a parameter that exists; a missing one is a programming error. */
struct value *options_value(struct options *options, const char *param);
const struct value *options_get(const struct options *options, const char *param);
/* "--duration-s" of "duration_s". */
void option_name(const struct param *param, char *name, size_t size);
/* "1 to 4096, or \"all\"". */
void option_allowed(const struct param *param, char *text, size_t size);
void options_free(struct options *options);

#endif
