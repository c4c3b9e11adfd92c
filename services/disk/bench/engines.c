#include "engines.h"

#include <stdio.h>
#include <string.h>

static const struct engine *const engines[] = {
    &uring_engine, &uring_fixed_engine, &libaio_engine, &psync_engine, &mmap_engine, NULL,
};

/* What `auto` tries, the one that costs least a request first. Registered buffers are no part of it:
 * they cut a large block into more pieces than plain ones. */
static const struct engine *const ladder[] = {&uring_engine, &libaio_engine, &psync_engine, NULL};

static const struct engine *engine_named(const char *name)
{
    size_t i = 0;
    while (strcmp(engines[i]->name, name) != 0)
        i++;
    return engines[i];
}

/* The first of the ladder that works here; `why` tells what is wrong with the very first. */
static const struct engine *first_that_works(const struct disk_job *job, char *why, size_t why_size)
{
    for (size_t i = 0; ladder[i]; i++) {
        const char *reason = ladder[i]->unsupported(job);
        if (!reason)
            return ladder[i];
        if (i == 0)
            snprintf(why, why_size, "%s", reason);
    }
    return &psync_engine;
}

static int choose_auto(struct run *run, struct disk_job *job)
{
    char why[256];
    job->engine = first_that_works(job, why, sizeof why);
    run_set_choice(run, "engine", job->engine->name);
    if (job->engine != ladder[0])
        run_warning(run, "engine_fallback",
                    "engine %s instead of %s, which is not available here: %s", job->engine->name,
                    ladder[0]->name, why);
    return EXIT_OK;
}

/* engine_why_not() has checked before whether this host has it. */
static int choose_named(struct run *run, struct disk_job *job, const char *name)
{
    job->engine = engine_named(name);
    if (!job->direct || job->engine != &mmap_engine)
        return EXIT_OK;
    run_reason(run, "--engine mmap: a mapping is the page cache, so there is no cache mode direct "
                    "of it; use --cache-mode buffered, or --engine psync");
    return EXIT_USAGE;
}

static int check_depth(struct run *run, const struct disk_job *job)
{
    if (job->depth == 1 || job->engine->queues)
        return EXIT_OK;
    run_reason(run,
               "--queue-depth %u: engine %s has one request at a time; use a depth of 1 and more "
               "--threads, or engine io_uring, io_uring_fixed or libaio",
               job->depth, job->engine->name);
    return EXIT_USAGE;
}

int engine_choose(struct run *run, struct disk_job *job)
{
    if (job->commit) {
        job->engine = &commit_engine;
        return EXIT_OK;
    }
    const char *name = run_choice(run, "engine");
    int failure = strcmp(name, "auto") != 0 ? choose_named(run, job, name) : choose_auto(run, job);
    return failure ? failure : check_depth(run, job);
}

const char *engine_why_not(const char *name, const struct disk_job *job)
{
    static _Thread_local char text[300];
    if (!strcmp(name, "auto"))
        return NULL;
    const char *reason = engine_named(name)->unsupported(job);
    if (!reason)
        return NULL;
    snprintf(text, sizeof text, "engine %s: %s", name, reason);
    return text;
}
