#define _GNU_SOURCE
#include "blas.h"

#include "blas_probe.h"
#include "cpu_features.h"
#include "loops.h"
#include "monotonic.h"
#include "textfile.h"
#include "vector_kernel.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WARM_UP_ORDER = 192,     /* 0.2 ms a multiplication */
    CLOCK_ITERATIONS = 1200, /* 96,000 cycles, 30 µs: long against one clock reading */
    REARM_ITERATIONS = 170,  /* 65,536 instructions of 24 accumulators: 10 to 20 µs */
    TRIES = 2,               /* of each library, in turn */
};

static const char CORE_TYPE[] = "OPENBLAS_CORETYPE";
/* One that is less faster than this does not displace the one before it. */
static const double WORTH_A_CHANGE = 1.02;
/* What a task must have of the CPU time of a thread of the run to count as another. */
static const double WORKED_RATIO = 0.25, WORKED_LEAST_S = 0.05;

const char *const blas_choices[] = {"best", "pinned", "system", "blis", NULL};

struct candidate {
    struct probe probe;
    const char *core_type; /* what it needs as OPENBLAS_CORETYPE; NULL: nothing */
    char own_core[32];     /* what it took this CPU for without that */
};

static struct {
    struct candidate candidates[LIBRARIES];
    int chosen; /* -1: none is fine */
    bool compared;
    bool broken;       /* one crashes or computes wrongly */
    char reason[2560]; /* what is wrong with those that are broken, else with those missing */
    struct blas_library library;
    char detail[512];
    struct blas *loaded; /* the library and its copies */
    unsigned callers;    /* threads in each of them */
} state = {.chosen = -1};

/* ---- choice --------------------------------------------------------------------------------- */

static const char *users_core_type(void)
{
    const char *core_type = getenv(CORE_TYPE);
    return core_type && *core_type ? core_type : NULL;
}

/* As the candidate is to be loaded: with the kernels that suit the CPU. */
static struct probe probe_with(unsigned which, const char *core_type, const struct blas_need *need,
                               bool timed, int cpu)
{
    struct probe probe;
    if (core_type)
        setenv(CORE_TYPE, core_type, 1);
    blas_probe(which, need, timed, cpu, &probe);
    if (core_type)
        unsetenv(CORE_TYPE);
    return probe;
}

static void examine(unsigned which, const struct blas_need *need, bool timed, int cpu)
{
    struct candidate *candidate = &state.candidates[which];
    candidate->probe = probe_with(which, NULL, need, timed, cpu);
    if (candidate->probe.state != PROBE_FINE || users_core_type())
        return;
    const char *wider = blas_library_wider_core(which, candidate->probe.core);
    if (!wider)
        return;
    struct probe mended = probe_with(which, wider, need, timed, cpu);
    if (mended.state != PROBE_FINE || blas_library_wider_core(which, mended.core))
        return;
    memcpy(candidate->own_core, candidate->probe.core, sizeof candidate->own_core);
    candidate->core_type = wider;
    candidate->probe = mended;
}

static bool is_wanted(unsigned which, const char *word)
{
    return !strcmp(word, "best") || !strcmp(word, blas_library_word(which));
}

static void examine_all(const struct run *run, const struct blas_need *need, const char *word)
{
    bool run_follows = run_threads(run) > 0; /* for the table there are no threads */
    bool best = !strcmp(word, "best"), timed = run_follows && (best || need->rate);
    int cpu = run_follows ? run_cpu(run, 0) : 0;
    for (unsigned i = 0; i < LIBRARIES; i++)
        if (is_wanted(i, word) && (timed || state.candidates[i].probe.state == PROBE_NONE))
            examine(i, need, timed, cpu);
    state.compared = timed && best;
    for (int again = 1; state.compared && again < TRIES; again++)
        for (unsigned i = 0; i < LIBRARIES; i++) {
            struct candidate *candidate = &state.candidates[i];
            if (candidate->probe.state != PROBE_FINE)
                continue;
            struct probe probe = probe_with(i, candidate->core_type, need, timed, cpu);
            candidate->probe.rate = fmax(candidate->probe.rate, probe.rate);
        }
}

/* The reasons of all that are in this state, in one line. */
static void collect_reasons(const char *word, enum probe_state of)
{
    size_t length = 0;
    state.reason[0] = '\0';
    for (unsigned i = 0; i < LIBRARIES; i++) {
        const struct probe *probe = &state.candidates[i].probe;
        if (!is_wanted(i, word) || probe->state != of)
            continue;
        snprintf(state.reason + length, sizeof state.reason - length, "%s%s",
                 length > 0 ? "; " : "", probe->reason);
        length = strlen(state.reason);
    }
}

static void choose(const char *word)
{
    state.chosen = -1;
    state.broken = false;
    for (unsigned i = 0; i < LIBRARIES; i++) {
        const struct probe *probe = &state.candidates[i].probe;
        if (!is_wanted(i, word))
            continue;
        state.broken = state.broken || probe->state == PROBE_BROKEN;
        if (probe->state == PROBE_FINE &&
            (state.chosen < 0 ||
             probe->rate > state.candidates[state.chosen].probe.rate * WORTH_A_CHANGE))
            state.chosen = (int)i;
    }
    collect_reasons(word, state.broken ? PROBE_BROKEN : PROBE_MISSING);
}

static void describe(const struct candidate *candidate)
{
    const char *users = users_core_type(), *core_type = candidate->core_type;
    const struct blas_library *library = &state.library;
    if (state.chosen == LIBRARY_BLIS || (!core_type && !users))
        snprintf(state.detail, sizeof state.detail, "%s kernels; %s", library->core,
                 library->config);
    else
        snprintf(state.detail, sizeof state.detail, "%s kernels chosen by %s=%s%s%s; %s",
                 library->core, CORE_TYPE, core_type ? core_type : users,
                 core_type ? " instead of its own choice, " : "", candidate->own_core,
                 library->config);
}

void blas_resolve(struct run *run, const struct blas_need *need)
{
    const char *word = run_choice(run, "library");
    examine_all(run, need, word);
    choose(word);
    if (state.chosen < 0 || run_threads(run) == 0)
        return;
    unsigned chosen = (unsigned)state.chosen;
    const struct candidate *candidate = &state.candidates[chosen];
    if (candidate->core_type)
        setenv(CORE_TYPE, candidate->core_type, 1);
    if (!blas_library_load(chosen, &state.library, state.reason, sizeof state.reason)) {
        state.chosen = -1;
        return;
    }
    describe(candidate);
    run_set_choice(run, "library", blas_library_word(chosen));
    run_library(run, &(struct library){blas_library_name(chosen), state.library.version,
                                       state.library.path, state.detail});
}

const char *blas_unsupported(const struct run *run)
{
    (void)run;
    return state.chosen < 0 && !state.broken ? state.reason : NULL;
}

int blas_check(struct run *run)
{
    if (state.chosen >= 0)
        return EXIT_OK;
    run_reason(run, "%s: do not trust its figures, use another --library%s%s", state.reason,
               users_core_type() ? " or another OPENBLAS_CORETYPE than " : "",
               users_core_type() ? users_core_type() : "");
    return EXIT_WRONG;
}

double blas_rate(void)
{
    return state.chosen < 0 ? 0 : state.candidates[state.chosen].probe.rate;
}

static const char *why_no_rate(const struct candidate *candidate)
{
    if (!state.compared)
        return "the library was given, so none was compared";
    return candidate->probe.state == PROBE_BROKEN ? "it crashes or computes incorrectly here"
                                                  : "it is not installed";
}

void blas_report(struct run *run)
{
    static const char *const metrics[LIBRARIES] = {"operations_per_second_pinned",
                                                   "operations_per_second_system",
                                                   "operations_per_second_blis"};
    for (unsigned i = 0; i < LIBRARIES; i++) {
        const struct candidate *candidate = &state.candidates[i];
        if (state.compared && candidate->probe.state == PROBE_FINE)
            run_metric(run, metrics[i], candidate->probe.rate);
        else
            run_no_metric(run, metrics[i], why_no_rate(candidate));
    }
}

/* ---- threads -------------------------------------------------------------------------------- */

static int load_copies(struct run *run)
{
    unsigned threads = run_threads(run), callers = state.library.callers_max;
    state.callers = callers > 0 ? callers : threads;
    unsigned needed = (threads + state.callers - 1) / state.callers;
    state.loaded = calloc(needed, sizeof *state.loaded);
    if (!state.loaded) {
        run_reason(run, "not enough memory for %u threads: use fewer", threads);
        return EXIT_RESOURCE;
    }
    state.loaded[0] = state.library.functions;
    for (unsigned i = 1; i < needed; i++)
        if (!blas_library_load_copy((unsigned)state.chosen, &state.library, &state.loaded[i])) {
            run_reason(run,
                       "%u threads: %s %s (%s) can be called by at most %u at once and cannot be "
                       "loaded again: use fewer threads, or a library built for more",
                       threads, blas_library_name((unsigned)state.chosen), state.library.version,
                       state.library.path, callers);
            return EXIT_RESOURCE;
        }
    return EXIT_OK;
}

static void warn_of_kernels(const struct run *run)
{
    const struct candidate *candidate = &state.candidates[state.chosen];
    const char *wider = blas_library_wider_core((unsigned)state.chosen, state.library.core);
    if (candidate->core_type)
        run_warning(run, "blas_kernels",
                    "OpenBLAS %s took this CPU for a %s, whose kernels leave its widest registers "
                    "unused: it was loaded with OPENBLAS_CORETYPE=%s",
                    state.library.version, candidate->own_core, candidate->core_type);
    else if (wider && !users_core_type())
        run_warning(run, "blas_kernels",
                    "OpenBLAS %s runs its %s kernels, which leave this CPU's widest registers "
                    "unused, and has no others: a newer OpenBLAS may be faster",
                    state.library.version, state.library.core);
}

int blas_open(struct run *run)
{
    unsigned threads = run_threads(run);
    if (threads > 1 && !state.library.thread_safe) {
        run_reason(run,
                   "%u threads: OpenBLAS %s (%s) is built for one thread only: use --threads 1, or "
                   "install libopenblas0-pthread",
                   threads, state.library.version, state.library.path);
        return EXIT_RESOURCE;
    }
    warn_of_kernels(run);
    if (state.broken)
        run_warning(run, "blas_broken", "passed over: %s", state.reason);
    return load_copies(run);
}

void blas_close(void)
{
    free(state.loaded);
}

const struct blas *blas_of(unsigned thread)
{
    return &state.loaded[thread / state.callers];
}

/* CPU time of a task of this process; 0 when unknown. */
static double task_cpu_s(const char *task)
{
    char path[300], text[96];
    snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", task);
    return textfile_read(path, text, sizeof text) ? strtod(text, NULL) * 1e-9 : 0;
}

/* Tasks beside the main thread that have worked about as much as the calling one, which counts. */
static unsigned count_workers(void)
{
    double worked_s = fmax(WORKED_RATIO * seconds_of(CLOCK_THREAD_CPUTIME_ID), WORKED_LEAST_S);
    unsigned count = 0;
    DIR *directory = opendir("/proc/self/task");
    if (!directory)
        return 0;
    for (const struct dirent *task; (task = readdir(directory));)
        if (task->d_name[0] != '.')
            count += atoi(task->d_name) != getpid() && task_cpu_s(task->d_name) >= worked_s;
    closedir(directory);
    return count;
}

int blas_check_threads(struct thread *thread)
{
    unsigned requested = run_threads(thread->run), worked = count_workers();
    if (worked <= requested)
        return EXIT_OK;
    run_reason(thread->run,
               "%u threads were requested and %u have worked: %s %s (%s) runs threads of its own: "
               "install libopenblas0-pthread",
               requested, worked, blas_library_name((unsigned)state.chosen), state.library.version,
               state.library.path);
    return EXIT_FAILED;
}

size_t blas_buffer_bytes(size_t n)
{
    /* Seen to be touched: a block of B of GEMM_Q (at most 512) x n, and one of A. */
    const size_t most = 128u << 20, columns = 512 * sizeof(double), fixed = 4u << 20;
    return n < (most - fixed) / columns ? n * columns + fixed : most;
}

/* ---- clock and warm-up ---------------------------------------------------------------------- */

/* The last row of a dtype is its widest; NULL without any fused multiply-add. */
static const struct kernel *widest_fma(const char *dtype)
{
    const struct kernel *widest = NULL;
    for (const struct kernel *kernel = fma_kernels; kernel->dtype; kernel++)
        if (!strcmp(kernel->dtype, dtype) && !features_missing(kernel->features))
            widest = kernel;
    return widest;
}

double blas_clock_hertz(struct thread *thread, const char *dtype)
{
    static _Thread_local _Alignas(REGISTER_BYTES) unsigned char zeros[ACCUMULATOR_BYTES];
    const struct kernel *kernel = widest_fma(dtype);
    /* What came after the last multiplication may have cost the core its vector licence. */
    if (kernel)
        kernel->loop(REARM_ITERATIONS, zeros, zeros);
    double start_s = now_s();
    if (kernel)
        kernel->chain(CLOCK_ITERATIONS);
    else
        loop_add_chain(CLOCK_ITERATIONS);
    double taken_s = now_s() - start_s - run_clock_read_s(thread->run);
    return CLOCK_ITERATIONS * CHAIN_CYCLES / taken_s;
}

int blas_warm_up(struct thread *thread, double until_s)
{
    const int n = WARM_UP_ORDER;
    const size_t elements = (size_t)n * (size_t)n;
    double *operands = calloc(3 * elements, sizeof *operands);
    if (!operands) {
        run_reason(thread->run, "not enough memory for the warm-up of thread %u: use fewer threads",
                   thread->index);
        return EXIT_RESOURCE;
    }
    const struct blas *blas = blas_of(thread->index);
    do
        blas->dgemm(COLUMN_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, n, n, n, 1, operands, n,
                    operands + elements, n, 1, operands + 2 * elements, n);
    while (now_s() < until_s && !run_stopping(thread->run));
    free(operands);
    return EXIT_OK;
}
