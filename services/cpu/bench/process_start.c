/* process_start: the time that it takes to start a process and to see it end. */
#define _GNU_SOURCE
#include "monotonic.h"
#include "partner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const how_words[] = {"fork", "exec", NULL};
static char program[] = "/bin/true";

struct starter {
    bool executes;
    uint64_t started;
};

static const char *unsupported(const struct run *run)
{
    bool executes = !strcmp(run_choice(run, "how"), "exec");
    return executes && access(program, X_OK) ? "there is no /bin/true to execute here" : NULL;
}

static int setup(struct thread *thread)
{
    struct starter *starter = calloc(1, sizeof *starter);
    thread->state = starter;
    if (!starter)
        return partner_lacks(thread->run, "memory");
    starter->executes = !strcmp(run_choice(thread->run, "how"), "exec");
    run_set_unit(thread->run, 1, 1);
    run_share_cpus(
        thread->run); /* the new process runs on the CPU of its parent, as it is pinned */
    return EXIT_OK;
}

/* The end of a process, or that it cannot be known. */
static int refuse_end(struct run *run, pid_t child, bool is_known, int status)
{
    if (!is_known)
        run_reason(run, "the end of process %d cannot be waited for (%s): is SIGCHLD ignored?",
                   child, strerror(errno));
    else if (WIFSIGNALED(status))
        run_reason(run, "process %d was killed by signal %d: does something kill processes?", child,
                   WTERMSIG(status));
    else
        run_reason(run, "process %d has ended with exit code %d: can %s be executed here?", child,
                   WEXITSTATUS(status), program);
    return EXIT_FAILED;
}

static int start_and_wait(struct run *run, const struct starter *starter)
{
    int status = 0;
    pid_t child = fork();
    if (child < 0)
        return partner_lacks(run, "new process");
    if (child == 0) {
        if (starter->executes)
            execv(program, (char *[]){program, NULL});
        _exit(starter->executes);
    }
    bool is_known = waitpid(child, &status, 0) == child;
    if (is_known && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return EXIT_OK;
    return refuse_end(run, child, is_known, status);
}

static int loop(struct thread *thread)
{
    struct starter *starter = thread->state;
    uint64_t start_ns = now_ns();
    int failure = EXIT_OK;
    starter->started = 0;
    while (!failure && !run_loop_over(thread, starter->started, (double)start_ns * 1e-9)) {
        failure = start_and_wait(thread->run, starter);
        uint64_t end_ns = now_ns();
        if (failure)
            break;
        run_loop_done(thread, 0, end_ns - start_ns);
        starter->started++;
        start_ns = end_ns;
    }
    return failure;
}

static int verify(struct thread *thread, uint64_t units)
{
    const struct starter *starter = thread->state;
    (void)units;
    return run_check_units(thread, run_loop_operations(thread->run, 0), starter->started);
}

static void teardown(struct thread *thread)
{
    free(thread->state);
}

static const struct param params[] = {
    {.name = "how",
     .type = PARAM_CHOICE,
     .initial = "fork",
     .choices = how_words,
     .roles = ROLE_AXIS | ROLE_TAG,
     .title = "way to start",
     .help = "fork: the new process is a copy of the benchmark program and exits at once; exec: "
             "the copy executes /bin/true."},
    {.name = NULL},
};

static const char *const excludes[] = {"threads", NULL};

WORKLOAD(process_start) = {
    .name = "process_start",
    .description = "Starts processes one after another on one CPU and waits for each to exit.",
    .rate = {.name = "start_time_s",
             .unit = "s",
             .description = "Median time from the call of fork() until the parent knows that the "
                            "new process has exited.",
             .combine = COMBINE_MEDIAN,
             .time = true},
    .params = params,
    .excludes = excludes,
    .threads = partner_one_thread,
    .unsupported = unsupported,
    .setup = setup,
    .loop = loop,
    .verify = verify,
    .teardown = teardown,
};
