/* From the command line to the last event: what every benchmark program does. */
#define _GNU_SOURCE
#include "events.h"
#include "output.h"
#include "table.h"
#include "trial.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- before the trial ----------------------------------------------------------------------- */

static const char *code_word(int exit_code)
{
    switch (exit_code) {
    case EXIT_USAGE:
        return "usage";
    case EXIT_RESOURCE:
        return "resource";
    case EXIT_WRONG:
        return "wrong_result";
    default:
        return "failed";
    }
}

static int give_up(const struct program *program, int exit_code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int give_up(const struct program *program, int exit_code, const char *format, ...)
{
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    event_error(program, code_word(exit_code), message, NULL);
    return exit_code;
}

/* For what run_reason() holds. */
static int refuse(const struct run *run, int exit_code)
{
    if (exit_code != EXIT_UNSUPPORTED) {
        event_error(run->program, code_word(exit_code), run->reason,
                    run->wrong.found ? &run->wrong : NULL);
        return exit_code;
    }
    event_skip(run->program, run->reason);
    return exit_code;
}

static const struct workload *find_workload(const struct program *program, const char *name)
{
    for (const struct workload *const *at = program->workloads; *at; at++)
        if (!strcmp((*at)->name, name))
            return *at;
    return NULL;
}

static int unknown_workload(const struct program *program, const char *name)
{
    char names[512] = "";
    for (const struct workload *const *at = program->workloads; *at; at++)
        snprintf(names + strlen(names), sizeof names - strlen(names), " %s", (*at)->name);
    return give_up(program, EXIT_USAGE, "unknown workload \"%.100s\"; allowed:%s", name, names);
}

static const struct cpulist *given_cpus(const struct run *run)
{
    const struct value *cpus = options_get(&run->options, "cpus");
    return cpus->set ? &cpus->cpus : NULL;
}

static int check_cpus(const struct run *run, const struct cpulist *given)
{
    char allowed[256];
    cpulist_format(&run->placement.affinity, allowed, sizeof allowed);
    for (size_t i = 0; given && i < given->count; i++)
        if (!cpulist_contains(&run->placement.affinity, given->cpus[i]))
            return give_up(run->program, EXIT_USAGE,
                           "--cpus: CPU %d is outside the CPUs this process may use: allowed is a "
                           "list out of %s (affinity mask and cpuset)",
                           given->cpus[i], allowed);
    return EXIT_OK;
}

/* Checked before anything of ours is opened: a low number might name that instead. */
static int take_lifeline(struct run *run)
{
    const struct value *lifeline = options_get(&run->options, "lifeline_fd");
    struct stat status;
    if (!lifeline->set)
        return EXIT_OK;
    int fd = (int)lifeline->count;
    if (fstat(fd, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode))) {
        run->ending.lifeline_fd = fd;
        return EXIT_OK;
    }
    return give_up(run->program, EXIT_USAGE,
                   "--lifeline-fd %d is not an open pipe or socket: pass the read end of a pipe",
                   fd);
}

/* Chooses threads and CPUs, and writes them back as resolved parameters. */
static int place(struct run *run)
{
    if (!placement_affinity(&run->placement.affinity))
        return give_up(run->program, EXIT_RESOURCE,
                       "the kernel does not report which CPUs this process may use");
    const struct cpulist *given = given_cpus(run);
    int failure = check_cpus(run, given);
    if (failure)
        return failure;
    struct value *threads = options_value(&run->options, "threads");
    if (run->workload->threads)
        run_set_count(run, "threads", run->workload->threads(run));
    if (threads->word) {
        threads->count = given ? given->count : run->placement.affinity.count;
        threads->word = NULL;
    }
    run->threads = (unsigned)threads->count;
    if (!placement_choose(&run->placement, run->threads, given, "/sys"))
        return give_up(run->program, EXIT_RESOURCE,
                       "not enough memory to place %u threads: use fewer", run->threads);
    size_t available = given ? given->count : run->placement.affinity.count;
    run->cpus = run->threads < available ? run->threads : (unsigned)available;
    return EXIT_OK;
}

static int prepare(struct run *run, int argc, char **argv)
{
    char message[1024];
    options_init(&run->options, run->workload);
    if (!options_parse(&run->options, argc, argv, message, sizeof message))
        return give_up(run->program, EXIT_USAGE, "%s", message);
    int failure = take_lifeline(run);
    if (!failure && !ending_catch_signals(&run->ending))
        failure = give_up(run->program, EXIT_RESOURCE, "no file descriptor for signals (%s)",
                          strerror(errno));
    output_watch(&run->ending);
    if (!failure)
        failure = place(run);
    if (failure)
        return failure;
    if (run->workload->resolve)
        run->workload->resolve(run);
    const char *reason = run->workload->unsupported ? run->workload->unsupported(run) : NULL;
    if (reason) {
        run_reason(run, "%s", reason);
        return refuse(run, EXIT_UNSUPPORTED);
    }
    cgroup_read(&run->cgroup, "/proc/self");
    run->clock = monotonic_check();
    wall_clock_begin(&run->wall_clock);
    failure = run->workload->check ? run->workload->check(run) : EXIT_OK;
    return failure ? refuse(run, failure) : EXIT_OK;
}

/* ---- the trial ------------------------------------------------------------------------------ */

static int output_lost(const struct program *program)
{
    fprintf(stderr,
            "%s: the output cannot be written (%s): connect stdout to a reader or to a file with "
            "free space\n",
            program->name, strerror(errno));
    return EXIT_FAILED;
}

static void warn_if_short(const struct run *run, const struct trial *trial)
{
    double elapsed_s = 0, slice_s = options_get(&run->options, "slice_s")->number;
    if (run->workload->loop)
        return; /* its percentiles say for themselves when there is too little */
    for (unsigned i = 0; i < run->threads; i++)
        elapsed_s = fmax(elapsed_s, trial->workers[i].stop_s - trial->workers[i].start_s);
    if (elapsed_s < slice_s)
        run_warning(run, "too_short",
                    "the work took %.3g s, less than a slice of %.3g s: the figure is mostly "
                    "overhead, use more work",
                    elapsed_s, slice_s);
}

static void warn_if_set(const struct run *run)
{
    double set_s = (double)run->wall_clock.set_us * 1e-6;
    if (set_s != 0)
        run_warning(run, "clock_set",
                    "the wall clock, which this workload reads, was set %s by %.3g s during the "
                    "trial: the figure leaves that out",
                    set_s > 0 ? "forward" : "back", fabs(set_s));
}

static int conclude(struct run *run, const struct trial *trial)
{
    if (run->exit_code != EXIT_OK)
        return refuse(run, run->exit_code);
    if (run->ending.why) {
        char message[256];
        snprintf(message, sizeof message, "%s: no figure; run it again", run->ending.why);
        event_error(run->program, "interrupted", message, NULL);
        return EXIT_FAILED;
    }
    warn_if_short(run, trial);
    warn_if_set(run);
    return event_end(trial) ? EXIT_OK : output_lost(run->program);
}

static int measure(struct run *run)
{
    struct trial trial;
    trial_execute(&trial, run);
    int exit_code = conclude(run, &trial);
    if (!trial_ended(&trial))
        _exit(exit_code); /* workers that were not joined end with the process */
    trial_free(&trial);
    return exit_code;
}

static int run_workload(const struct program *program, const struct workload *workload, int argc,
                        char **argv)
{
    struct run run = {.program = program,
                      .workload = workload,
                      .ending = {.signal_fd = -1, .lifeline_fd = -1},
                      .lock = PTHREAD_MUTEX_INITIALIZER};
    int exit_code = prepare(&run, argc, argv);
    if (exit_code == EXIT_OK)
        exit_code = measure(&run);
    placement_free(&run.placement);
    free(run.pairs);
    free(run.rungs);
    free(run.node_figures);
    options_free(&run.options);
    return exit_code;
}

/* For what is printed through stdio. */
static int printed(const struct program *program)
{
    return fflush(stdout) == 0 && !ferror(stdout) ? EXIT_OK : output_lost(program);
}

int bench_main(const struct program *program, int argc, char **argv)
{
    const char *first = argc > 1 ? argv[1] : "";
    if (!strcmp(first, "--list")) {
        table_print_json(program);
        return printed(program);
    }
    if (!strcmp(first, "--help") || !strcmp(first, "-h")) {
        table_print_help(program);
        return printed(program);
    }
    if (!strcmp(first, "--version")) {
        printf("%s %s\n", program->name, HOSTBENCH_VERSION);
        return printed(program);
    }
    if (argc < 2)
        return give_up(program, EXIT_USAGE, "no workload given; see %s --help", program->name);
    const struct workload *workload = find_workload(program, first);
    if (!workload)
        return unknown_workload(program, first);
    if (argc == 3 && !strcmp(argv[2], "--help")) {
        table_print_workload_help(program, workload);
        return printed(program);
    }
    return run_workload(program, workload, argc - 2, argv + 2);
}
