/* wakeup: the time from waking a sleeping thread until it runs. */
#define _GNU_SOURCE
#include "cpulist.h"
#include "monotonic.h"
#include "partner.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    REST_NS = 50 * 1000, /* between two, in which the sleeper goes to sleep */
    LOOK_SPINS = 1 << 14,
    PERIOD_NS = 1000 * 1000, /* of the timer: cyclictest's own default */
    SECOND_NS = 1000 * 1000 * 1000,
};

static const char *const by_words[] = {"futex", "eventfd", "timer", NULL};
static const char *const on_words[] = {"same_cpu", "other_cpu", NULL};

struct sleeper {
    struct run *run;
    int cpu, eventfd;
    bool by_futex;
    pthread_t handle;
    atomic_bool over;
    _Alignas(128) atomic_uint rung; /* wakings so far */
    _Alignas(128) atomic_uint answered;
    uint64_t woken_ns;      /* when the last one was answered */
    uint64_t switches;      /* of the sleeper, as of then */
    uint64_t wakings, used; /* of this phase, and what its switches were */
};

/* ---- the sleeper --------------------------------------------------------------------------------- */

static void sleep_until_rung(struct sleeper *sleeper, unsigned answered)
{
    uint64_t count;
    if (sleeper->by_futex)
        while (atomic_load(&sleeper->rung) == answered && !atomic_load(&sleeper->over))
            partner_sleep(&sleeper->rung, answered);
    else if (read(sleeper->eventfd, &count, sizeof count) < 0)
        atomic_store(&sleeper->over, true);
}

static void *sleep_and_answer(void *argument)
{
    struct sleeper *sleeper = argument;
    for (unsigned answered = 0; !atomic_load(&sleeper->over);) {
        sleep_until_rung(sleeper, answered);
        sleeper->woken_ns = now_ns();
        sleeper->switches = partner_switches();
        atomic_store(&sleeper->answered, ++answered);
    }
    return NULL;
}

static int start_sleeper(struct run *run, struct sleeper *sleeper)
{
    cpu_set_t set[CPULIST_MAX / CPU_SETSIZE];
    pthread_attr_t attributes;
    CPU_ZERO_S(sizeof set, set);
    CPU_SET_S((size_t)sleeper->cpu, sizeof set, set);
    pthread_attr_init(&attributes);
    pthread_attr_setaffinity_np(&attributes, sizeof set, set);
    int error = pthread_create(&sleeper->handle, &attributes, sleep_and_answer, sleeper);
    pthread_attr_destroy(&attributes);
    errno = error;
    return error ? partner_lacks(run, "second thread") : EXIT_OK;
}

/* ---- life ---------------------------------------------------------------------------------------- */

static bool on_other_cpu(const struct run *run)
{
    return !strcmp(run_choice(run, "on"), "other_cpu");
}

static bool by_timer(const struct run *run)
{
    return !strcmp(run_choice(run, "by"), "timer");
}

static int check(struct run *run)
{
    struct cpulist left = run_cpus_left(run);
    size_t others = left.count;
    cpulist_free(&left);
    if (!on_other_cpu(run) || (others > 0 && !by_timer(run)))
        return EXIT_OK;
    run_reason(run, by_timer(run) ? "a timer wakes a thread on the CPU where it set the timer: "
                                    "use --on same_cpu"
                                  : "one thread wakes another on a second CPU: this process may "
                                    "use one CPU alone");
    return EXIT_UNSUPPORTED;
}

/* By default the kernel may put a timer of an ordinary thread off by 50 µs, to combine it with
 * others: that would hide how late it is. */
static int forbid_slack(struct run *run)
{
    if (prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0) == 0)
        return EXIT_OK;
    run_reason(run,
               "the kernel refuses a timer slack of 1 ns (%s): the figure would be what it may put "
               "timers off by",
               strerror(errno));
    return EXIT_UNSUPPORTED;
}

static int choose_cpu(struct thread *thread, struct sleeper *sleeper)
{
    char text[16];
    sleeper->cpu = thread->cpu;
    if (on_other_cpu(thread->run)) {
        struct cpulist left = run_cpus_left(thread->run);
        if (left.count > 0)
            sleeper->cpu = left.cpus[0];
        cpulist_free(&left);
    } else {
        run_share_cpus(thread->run);
    }
    snprintf(text, sizeof text, "%d", sleeper->cpu);
    run_fact(thread->run, "sleeper_cpu", text);
    return EXIT_OK;
}

static int setup(struct thread *thread)
{
    struct run *run = thread->run;
    struct sleeper *sleeper = aligned_alloc(128, sizeof *sleeper);
    thread->state = sleeper;
    if (!sleeper)
        return partner_lacks(run, "memory");
    memset(sleeper, 0, sizeof *sleeper);
    sleeper->run = run;
    run_set_unit(run, 1, 1);
    if (by_timer(run))
        return forbid_slack(run);
    sleeper->by_futex = !strcmp(run_choice(run, "by"), "futex");
    sleeper->eventfd = eventfd(0, EFD_CLOEXEC);
    if (sleeper->eventfd < 0)
        return partner_lacks(run, "eventfd");
    choose_cpu(thread, sleeper);
    return start_sleeper(run, sleeper);
}

static void ring(struct sleeper *sleeper)
{
    const uint64_t one = 1;
    atomic_fetch_add(&sleeper->rung, 1);
    if (sleeper->by_futex)
        partner_wake(&sleeper->rung);
    else if (write(sleeper->eventfd, &one, sizeof one) < 0)
        abort(); /* an eventfd refuses only at 2^64 - 1 */
}

static void teardown(struct thread *thread)
{
    struct sleeper *sleeper = thread->state;
    if (!by_timer(thread->run)) {
        atomic_store(&sleeper->over, true);
        ring(sleeper);
        pthread_join(sleeper->handle, NULL);
        close(sleeper->eventfd);
    }
    free(sleeper);
}

/* ---- waking -------------------------------------------------------------------------------------- */

static void rest(void)
{
    nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
}

/* On the same CPU the sleeper runs while this thread rests, on another one while it looks. */
static void wait_for_answer(struct sleeper *sleeper, bool resting)
{
    unsigned rung = atomic_load(&sleeper->rung);
    for (unsigned i = 1; atomic_load(&sleeper->answered) != rung; i++) {
        if (run_stopping(sleeper->run))
            return;
        if (resting || i % LOOK_SPINS == 0)
            rest();
    }
}

static int wake(struct thread *thread, struct sleeper *sleeper, bool resting)
{
    rest();
    uint64_t start_ns = now_ns();
    ring(sleeper);
    wait_for_answer(sleeper, resting);
    if (run_stopping(thread->run))
        return EXIT_OK;
    if (sleeper->woken_ns < start_ns) {
        run_reason(thread->run,
                   "the thread on CPU %d woke up before it was woken: the clocks of the CPUs "
                   "differ; do not trust its figures",
                   sleeper->cpu);
        return EXIT_FAILED;
    }
    run_loop_done(thread, 0, sleeper->woken_ns - start_ns);
    return EXIT_OK;
}

static int wake_again_and_again(struct thread *thread, struct sleeper *sleeper)
{
    bool resting = sleeper->cpu == thread->cpu;
    uint64_t before = sleeper->switches, begun = 0;
    int failure = EXIT_OK;
    while (!failure && !run_loop_over(thread, begun, now_s())) {
        failure = wake(thread, sleeper, resting);
        begun++;
    }
    sleeper->wakings = begun;
    sleeper->used = sleeper->switches - before;
    return failure;
}

/* ---- by a timer ---------------------------------------------------------------------------------- */

static int wait_for_timer(struct thread *thread, uint64_t due_ns, uint64_t *woken_ns)
{
    const struct timespec due = {.tv_sec = (time_t)(due_ns / SECOND_NS),
                                 .tv_nsec = (long)(due_ns % SECOND_NS)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
    *woken_ns = now_ns();
    if (*woken_ns >= due_ns) {
        run_loop_done(thread, 0, *woken_ns - due_ns);
        return EXIT_OK;
    }
    run_reason(thread->run,
               "the thread on CPU %d was awake %" PRIu64
               " ns before its timer was due: the kernel does not keep time, or it forbids "
               "clock_nanosleep(); do not trust its figures",
               thread->cpu, due_ns - *woken_ns);
    return EXIT_FAILED;
}

/* As in cyclictest, timers are due at equal distances, whenever the thread really woke up, and those
 * that passed meanwhile are left out. */
static int wait_for_timers(struct thread *thread, struct sleeper *sleeper)
{
    uint64_t due_ns = now_ns() + PERIOD_NS, woken_ns = 0, before = partner_switches(), begun = 0;
    int failure = EXIT_OK;
    for (; !failure && !run_loop_over(thread, begun, now_s()); begun++) {
        failure = wait_for_timer(thread, due_ns, &woken_ns);
        if (woken_ns >= due_ns)
            due_ns += ((woken_ns - due_ns) / PERIOD_NS + 1) * PERIOD_NS;
    }
    sleeper->wakings = begun;
    sleeper->used = partner_switches() - before;
    return failure;
}

/* ---- both ---------------------------------------------------------------------------------------- */

static int loop(struct thread *thread)
{
    return by_timer(thread->run) ? wait_for_timers(thread, thread->state)
                                 : wake_again_and_again(thread, thread->state);
}

static int verify(struct thread *thread, uint64_t units)
{
    const struct sleeper *sleeper = thread->state;
    (void)units;
    return partner_check_switches(thread->run, sleeper->wakings, sleeper->used);
}

/* ---- table --------------------------------------------------------------------------------------- */

static const struct param params[] = {
    {.name = "by",
     .type = PARAM_CHOICE,
     .initial = "futex",
     .choices = by_words,
     .roles = ROLE_AXIS | ROLE_TAG,
     .title = "mechanism",
     .help = "What the thread sleeps on. futex: as the locks of threads do; eventfd: a read() of "
             "an eventfd, as event loops do; timer: no thread wakes it, but a timer of the kernel, "
             "as one does that sleeps until a given time (clock_nanosleep)."},
    {.name = "on",
     .type = PARAM_CHOICE,
     .initial = "same_cpu",
     .choices = on_words,
     .roles = ROLE_TAG,
     .title = "place",
     .help =
         "Where the second thread sleeps. same_cpu: on the CPU of the thread that wakes it, which "
         "then goes to sleep itself; other_cpu: on another CPU, which is idle until then. A timer "
         "has same_cpu alone."},
    {.name = NULL},
};

static const char *const excludes[] = {"threads", NULL};

WORKLOAD(wakeup) = {
    .name = "wakeup",
    .description = "One thread wakes another that sleeps, about ten thousand times a second; or a "
                   "timer wakes it, a thousand times a second.",
    .rate = {.name = "wakeup_time_s",
             .unit = "s",
             .description = "Median time from just before the system call that wakes the thread "
                            "(timer: from the time that it waits for) until that thread has read "
                            "the clock.",
             .combine = COMBINE_MEDIAN,
             .time = true},
    .params = params,
    .excludes = excludes,
    .threads = partner_one_thread,
    .check = check,
    .setup = setup,
    .loop = loop,
    .verify = verify,
    .teardown = teardown,
};
