/* toy-bench: steps of a linear congruential generator, each waiting for the one before it. What a
 * program needs that measures something of its own: a workload, a table, and main(). */
#include "workload.h"

#include <stdlib.h>

enum { BATCH_MAX = 1 << 24 };
static const uint64_t MULTIPLIER = 6364136223846793005u;

/* Of one thread. */
struct walk {
    uint64_t value, done;
};

static const char *const increments[] = {"odd", "none", NULL};
static const struct param params[] = {
    {.name = "increment",
     .type = PARAM_CHOICE,
     .initial = "odd",
     .choices = increments,
     .help = "What each step adds after it has multiplied."},
    {.name = NULL},
};

static int setup(struct thread *thread)
{
    if (thread->index == 0)
        run_set_unit(thread->run, 1, BATCH_MAX);
    struct walk *walk = thread->state = calloc(1, sizeof *walk);
    if (!walk) {
        run_reason(thread->run, "no memory for the state of a walk: use fewer threads");
        return EXIT_RESOURCE;
    }
    walk->value = 1;
    return EXIT_OK;
}

static int step(struct thread *thread, uint64_t batch)
{
    struct walk *walk = thread->state;
    uint64_t increment = *run_choice(thread->run, "increment") == 'o';
    for (uint64_t i = 0; i < batch; i++)
        walk->value = walk->value * MULTIPLIER + increment;
    walk->done += batch;
    return EXIT_OK;
}

/* An odd number stays odd when it is multiplied by one; with 1 added it alternates. */
static int verify(struct thread *thread, uint64_t units)
{
    struct walk *walk = thread->state;
    bool adds = *run_choice(thread->run, "increment") == 'o';
    if ((walk->value & 1) != !(adds && (walk->done & 1))) {
        run_reason(thread->run, "the walk took a wrong step: this CPU multiplies wrongly");
        return EXIT_WRONG;
    }
    return run_check_units(thread, walk->done, units);
}

static void teardown(struct thread *thread)
{
    free(thread->state);
}

static const struct workload steps_workload = {
    .name = "steps",
    .description = "Steps of a linear congruential generator.",
    .rate = {.name = "steps_per_second",
             .unit = "step/s",
             .description = "Steps of all threads.",
             .combine = COMBINE_SUM},
    .params = params,
    .setup = setup,
    .step = step,
    .verify = verify,
    .teardown = teardown,
};
static const struct workload *const workloads[] = {&steps_workload, NULL};
static const struct program program = {"toy-bench", "toy", workloads};

int main(int argc, char **argv)
{
    return bench_main(&program, argc, argv);
}
