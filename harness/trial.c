#define _GNU_SOURCE
#include "trial.h"

#include "events.h"
#include "loop.h"
#include "memory.h"
#include "reporter.h"
#include "sentinel.h"
#include "slices.h"
#include "team.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    BARRIER_SPINS = 20000, /* some 200 µs: the others arrive within a slice at most */
    EMPTY_LOOP_REPEATS = 5,
    STACK_BYTES = 256 * 1024, /* where the workload asks for no more */
};

static const double MUCH_EMPTY_LOOP = 0.2;

/* ---- workers -------------------------------------------------------------------------------- */

static int pin(struct run *run, int cpu)
{
    cpu_set_t set[CPULIST_MAX / CPU_SETSIZE];
    CPU_ZERO_S(sizeof set, set);
    CPU_SET_S((size_t)cpu, sizeof set, set);
    if (sched_setaffinity(0, sizeof set, set) == 0)
        return EXIT_OK;
    run_reason(run, "pinning a thread to CPU %d: %s; did the cpuset change during the trial?", cpu,
               strerror(errno));
    return EXIT_RESOURCE;
}

static int prepare(struct worker *worker)
{
    struct run *run = worker->thread.run;
    worker->tid = (int)syscall(SYS_gettid);
    worker->schedstat = thread_usage_open();
    worker->counters = counters_open();
    int failure = pin(run, worker->thread.cpu);
    if (failure)
        return failure;
    if (run->workload->loop ? loop_allocate(worker) : slices_allocate(worker)) {
        run_reason(run, "not enough memory for the records of %u threads: use fewer threads",
                   run->threads);
        return EXIT_RESOURCE;
    }
    return run->workload->setup(&worker->thread);
}

static double reporter_cpu_s(const struct trial *trial)
{
    clockid_t id;
    return pthread_getcpuclockid(trial->reporter, &id) ? NAN : seconds_of(id);
}

/* What the share of the empty loop is of: a time's figure itself, as it stands in the result;
 * beside a rate, what the first thread does when nothing interrupts it. */
static double rate_beside_empty_loop(const struct worker *worker)
{
    const struct run *run = worker->thread.run;
    if (run->workload->rate.time)
        return run_rate(run) / worker->trial->measured;
    return worker->rates.kept ? median(worker->rates.values, worker->rates.kept) : NAN;
}

static void measure_empty_loop(struct worker *worker)
{
    struct trial *trial = worker->trial;
    const struct run *run = trial->run;
    double best_s = INFINITY;
    if (!run->workload->empty_loop)
        return;
    for (int i = 0; i < EMPTY_LOOP_REPEATS; i++) {
        double start_s = now_s();
        run->workload->empty_loop(&worker->thread, worker->batch);
        best_s = fmin(best_s, now_s() - start_s - run->clock.read_s);
    }
    trial->empty_loop_s = fmax(best_s, 0) / (double)(worker->batch * run->unit_operations);
    trial->empty_loop_ratio = trial->empty_loop_s * rate_beside_empty_loop(worker);
}

/* Of a time, or of bytes moved in blocks, the empty loop is part of the figure; beside operations
 * on registers it only tells how much it may weigh. */
static void warn_of_empty_loop(const struct trial *trial)
{
    const struct rate *rate = &trial->run->workload->rate;
    bool part = rate->time || rate_in_bytes(rate);
    if (!part || !(trial->empty_loop_ratio > MUCH_EMPTY_LOOP))
        return;
    run_warning(trial->run, "empty_loop",
                "the empty loop takes %.0f %% of the time, more than %.0f %%: the access itself is "
                "too short to be measured next to it",
                100 * trial->empty_loop_ratio, 100 * MUCH_EMPTY_LOOP);
}

static void wake_reporter(struct trial *trial)
{
    uint64_t one = 1;
    ssize_t written = write(trial->wake_fd, &one, sizeof one);
    (void)written; /* an eventfd refuses only at 2^64 - 1 */
}

/* Thread 0 brackets the timed region with the counters of the host. */
static void before_region(struct worker *worker)
{
    struct trial *trial = worker->trial;
    if (worker->thread.index > 0)
        return;
    trial->host_before = host_usage_read(&trial->run->placement.cpus, &trial->run->cgroup);
    trial->energy_before = energy_read("/sys");
    trial->reporter_cpu_s = reporter_cpu_s(trial);
    trial->process_cpu_s = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

/* By the first thread that leaves the barrier: where threads share a CPU, others follow late. */
static void region_begins(struct trial *trial)
{
    if (atomic_exchange(&trial->begun, true))
        return;
    trial->start_s = now_s();
    atomic_store(&trial->timed, true);
    wake_reporter(trial);
}

static void after_region(struct worker *worker)
{
    struct trial *trial = worker->trial;
    struct run *run = trial->run;
    if (worker->thread.index > 0)
        return;
    trial->host_after = host_usage_read(&run->placement.cpus, &run->cgroup);
    trial->energy_after = energy_read("/sys");
    trial->reporter_cpu_s = reporter_cpu_s(trial) - trial->reporter_cpu_s;
}

static void work_out(struct worker *worker)
{
    const struct workload *workload = worker->thread.run->workload;
    worker->figures = workload->loop ? loop_figures(worker) : slices_figures(worker);
}

/* On the first thread, when all have worked out their figures. */
static void finish(struct worker *worker)
{
    const struct workload *workload = worker->thread.run->workload;
    if (worker->thread.index > 0)
        return;
    measure_empty_loop(worker);
    warn_of_empty_loop(worker->trial);
    if (workload->finish)
        workload->finish(&worker->thread);
}

/* The reporter prints the start event, and the warm-up waits for that: it may take a while. */
static void announce(struct worker *worker)
{
    struct trial *trial = worker->trial;
    if (worker->thread.index > 0)
        return;
    atomic_store(&trial->ready, true);
    wake_reporter(trial);
    word_wait(&trial->announced, 0, 0, &trial->run->stopping);
}

static int warm_up(struct worker *worker)
{
    if (worker->thread.run->workload->loop)
        return loop_ramp(worker);
    return worker->thread.run->workload->team ? team_warm_up(worker) : slices_warm_up(worker);
}

/* Between the ramp of a loop and its timed region, when the last operation of all is done. */
static void settle(struct worker *worker)
{
    struct run *run = worker->thread.run;
    if (!run->workload->loop)
        return;
    barrier_wait(&worker->trial->barrier);
    if (!run_stopping(run) && run->workload->prepare)
        run_fail(run, run->workload->prepare(&worker->thread));
    barrier_wait(&worker->trial->barrier);
}

static int run_timed(struct worker *worker)
{
    if (worker->thread.run->workload->loop)
        return loop_run(worker);
    return worker->thread.run->workload->team ? team_run(worker) : slices_run(worker);
}

static int measure(struct worker *worker)
{
    struct trial *trial = worker->trial;
    if (worker->background)
        return slices_run_background(worker);
    int failure = run_timed(worker);
    if (atomic_fetch_sub(&trial->measuring, 1) == 1)
        trial->process_cpu_s = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - trial->process_cpu_s;
    return failure;
}

/* Teams have checked every step. */
static int verify(struct worker *worker)
{
    const struct workload *workload = worker->thread.run->workload;
    if (!workload->verify || workload->team)
        return EXIT_OK;
    return workload->verify(&worker->thread, worker->requested);
}

/* Every worker passes every barrier, whatever has failed: a worker that left early would keep the
 * others waiting. */
static void *work(void *argument)
{
    struct worker *worker = argument;
    struct trial *trial = worker->trial;
    struct run *run = trial->run;
    int unprepared = prepare(worker);
    run_fail(run, unprepared);
    barrier_wait(&trial->barrier);
    if (!run_stopping(run) && run->workload->calibrate)
        run_fail(run, run->workload->calibrate(&worker->thread));
    barrier_wait(&trial->barrier);
    if (!run_stopping(run))
        announce(worker);
    barrier_wait(&trial->barrier);
    sentinel_watch(worker, &trial->sentinel_before);
    if (!run_stopping(run))
        run_fail(run, warm_up(worker));
    settle(worker);
    before_region(worker);
    barrier_wait(&trial->barrier);
    region_begins(trial);
    if (!run_stopping(run))
        run_fail(run, measure(worker));
    barrier_wait(&trial->barrier);
    if (!run_stopping(run))
        run_fail(run, reporter_check_place(worker));
    if (!run_stopping(run))
        after_region(worker);
    barrier_wait(&trial->barrier);
    sentinel_watch(worker, &trial->sentinel_after);
    if (!run_stopping(run))
        run_fail(run, verify(worker));
    if (!run_stopping(run))
        work_out(worker);
    barrier_wait(&trial->barrier);
    if (!run_stopping(run))
        finish(worker);
    barrier_wait(&trial->barrier); /* finish() may look at what other threads hold */
    if (!unprepared && run->workload->teardown)
        run->workload->teardown(&worker->thread);
    if (worker->schedstat >= 0)
        close(worker->schedstat);
    counters_close(&worker->counters);
    if (atomic_fetch_sub(&trial->at_work, 1) == 1)
        wake_reporter(trial);
    return NULL;
}

/* ---- the trial ------------------------------------------------------------------------------ */

static size_t stack_bytes(const struct run *run)
{
    return run->workload->stack_bytes ? run->workload->stack_bytes : STACK_BYTES;
}

double run_thread_bytes(const struct run *run)
{
    size_t records = run->workload->loop ? loop_bytes(run) : slices_bytes(run);
    return run->threads * (stack_bytes(run) + sizeof(struct worker) + records);
}

static void describe_workers(struct trial *trial)
{
    struct run *run = trial->run;
    for (unsigned i = 0; i < run->threads; i++) {
        struct worker *worker = &trial->workers[i];
        worker->thread =
            (struct thread){.run = run, .index = i, .cpu = run->placement.cpus.cpus[i]};
        worker->trial = trial;
        worker->background =
            i > 0 && run->workload->background && run->workload->background(&worker->thread);
        worker->rank = worker->background ? i - trial->measured : trial->measured++;
        pthread_mutex_init(&worker->lock, NULL);
    }
    atomic_store(&trial->at_work, run->threads);
    atomic_store(&trial->measuring, trial->measured);
}

static bool start_workers(struct trial *trial)
{
    struct run *run = trial->run;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_bytes(run));
    int error = 0;
    for (unsigned i = 0; i < run->threads && !error; i++) {
        struct worker *worker = &trial->workers[i];
        error = pthread_create(&worker->handle, &attributes, work, worker);
        if (error)
            run_reason(run,
                       "%u threads: the system started only %u (%s): use fewer threads or raise "
                       "the limit (ulimit -u, the pids cgroup, memory)",
                       run->threads, i, strerror(error));
    }
    pthread_attr_destroy(&attributes);
    return !error;
}

/* Each worker holds three descriptors; the usual soft limit of 1024 is below what may be requested. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int trial_allocate(struct trial *trial, struct reporter *reporter)
{
    struct run *run = trial->run;
    size_t bytes = run->threads * sizeof(struct worker);
    trial->wake_fd = eventfd(0, EFD_CLOEXEC);
    if (trial->wake_fd < 0) {
        run_reason(run, "no file descriptor for an eventfd (%s): close some or raise ulimit -n",
                   strerror(errno));
        return EXIT_RESOURCE;
    }
    trial->workers = aligned_alloc(_Alignof(struct worker), bytes);
    if (trial->workers)
        memset(trial->workers, 0, bytes);
    if (reporter_allocate(reporter, run) || !trial->workers) {
        run_reason(run, "not enough memory for %u threads: use fewer threads", run->threads);
        return EXIT_RESOURCE;
    }
    return EXIT_OK;
}

/* When the run is to end, no thread is waited for: the kernel may hold one that has left, until
 * a device has done its request. */
bool trial_ended(const struct trial *trial)
{
    return atomic_load(&trial->at_work) == 0 && !trial->run->ending.why;
}

void trial_execute(struct trial *trial, struct run *run)
{
    struct reporter reporter = {0};
    *trial = (struct trial){.run = run,
                            .wake_fd = -1,
                            .empty_loop_s = NAN,
                            .empty_loop_ratio = NAN,
                            .sentinel_before = {NAN, NAN, 0},
                            .sentinel_after = {NAN, NAN, 0}};
    run->trial = trial;
    raise_descriptor_limit();
    run_fail(run, trial_allocate(trial, &reporter));
    if (run->exit_code == EXIT_OK && run->workload->open)
        run_fail(run, run->workload->open(run));
    if (run->exit_code == EXIT_OK) {
        barrier_init(&trial->barrier, run->threads,
                     run->placement.oversubscribed ? 0 : BARRIER_SPINS);
        barrier_init(&trial->team.barrier, run->threads, run_spins(run));
        trial->reporter = pthread_self();
        describe_workers(trial);
        if (start_workers(trial))
            reporter_run(&reporter, trial);
        else /* those that did start wait at the barrier for ever and end with the process */
            run_fail(run, EXIT_RESOURCE);
    }
    if (trial_ended(trial) && trial->workers) {
        for (unsigned i = 0; i < run->threads && trial->workers[i].trial; i++)
            pthread_join(trial->workers[i].handle, NULL);
        if (!run_stopping(run))
            reporter_finish(&reporter, trial);
    }
    reporter_free(&reporter);
}

void trial_free(struct trial *trial)
{
    for (unsigned i = 0; trial->workers && i < trial->run->threads; i++) {
        slices_free(&trial->workers[i]);
        loop_free(&trial->workers[i]);
        pthread_mutex_destroy(&trial->workers[i].lock);
    }
    free(trial->workers);
    if (trial->run->workload->close)
        trial->run->workload->close(trial->run);
    if (trial->wake_fd >= 0)
        close(trial->wake_fd);
}
