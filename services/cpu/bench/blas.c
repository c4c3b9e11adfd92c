#define _GNU_SOURCE
#include "blas.h"

#include "cpu_features.h"
#include "loops.h"
#include "monotonic.h"
#include "textfile.h"
#include "vector_kernel.h"
#include "workload.h"

#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CALLERS_LEAST = 50,      /* NUM_BUFFERS of OpenBLAS's memory.c is never less … */
    CALLERS_PER_THREAD = 2,  /* … and else twice the threads it was built for */
    WARM_UP_ORDER = 192,     /* 0.2 ms a multiplication */
    CLOCK_ITERATIONS = 1200, /* 96,000 cycles, 30 µs: long against one clock reading */
    REARM_ITERATIONS = 170,  /* 65,536 instructions of 24 accumulators: 10 to 20 µs */
};

/* What a task must have of the CPU time of a thread of the run to count as another. */
static const double WORKED_RATIO = 0.25, WORKED_LEAST_S = 0.05;

static struct {
    bool tried;
    bool usable;
    bool thread_safe;
    unsigned callers_max;
    struct blas blas;
    char reason[1024]; /* why not usable */
    char version[32], path[512], detail[512];
    const char *core;
} state;

/* ---- loading -------------------------------------------------------------------------------- */

#if defined(STATIC_PROGRAM)
static void load(void)
{
    snprintf(state.reason, sizeof state.reason,
             "this build of the program is static and cannot load OpenBLAS: use the release build");
}
#else
struct symbol {
    const char *name;
    void *function; /* where its address goes */
};

static bool find_symbols(void *library)
{
    struct blas *blas = &state.blas;
    const struct symbol symbols[] = {
        {"cblas_dgemm", &blas->dgemm}, {"cblas_sgemm", &blas->sgemm},
        {"cblas_dtrsm", &blas->dtrsm}, {"cblas_dtrsv", &blas->dtrsv},
        {"cblas_dgemv", &blas->dgemv}, {"cblas_dger", &blas->dger},
        {"cblas_dscal", &blas->dscal}, {"cblas_idamax", &blas->idamax},
        {"dlaswp_", &blas->dlaswp},    {"dgetrf_", &blas->dgetrf},
    };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *address = dlsym(library, symbols[i].name);
        memcpy(symbols[i].function, &address, sizeof address);
        if (address)
            continue;
        snprintf(state.reason, sizeof state.reason,
                 "%s has no %s: install the Debian package libopenblas0-pthread", state.path,
                 symbols[i].name);
        return false;
    }
    return true;
}

/* "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY SkylakeX MAX_THREADS=64" */
static void describe(const char *config, const char *core)
{
    const char *chosen = getenv("OPENBLAS_CORETYPE"), *max = strstr(config, "MAX_THREADS=");
    unsigned built_for = max ? (unsigned)strtoul(max + strlen("MAX_THREADS="), NULL, 10) : 1;
    sscanf(config, "OpenBLAS %31s", state.version);
    snprintf(state.detail, sizeof state.detail, "%s kernels%s%s; %s", core,
             chosen && *chosen ? " chosen by OPENBLAS_CORETYPE=" : "",
             chosen && *chosen ? chosen : "", config);
    state.core = core;
    state.callers_max = CALLERS_PER_THREAD * built_for;
    if (state.callers_max < CALLERS_LEAST)
        state.callers_max = CALLERS_LEAST;
    state.thread_safe = !strstr(config, "SINGLE_THREADED") || strstr(config, "USE_LOCKING");
}

static void resolve_path(void *symbol)
{
    Dl_info info;
    char *real = dladdr(symbol, &info) ? realpath(info.dli_fname, NULL) : NULL;
    snprintf(state.path, sizeof state.path, "%s", real ? real : "libopenblas.so.0");
    free(real);
}

static bool identify(void *library)
{
    char *(*config)(void) = (char *(*)(void))dlsym(library, "openblas_get_config");
    char *(*core)(void) = (char *(*)(void))dlsym(library, "openblas_get_corename");
    void (*set_threads)(int) = (void (*)(int))dlsym(library, "openblas_set_num_threads");
    int (*get_threads)(void) = (int (*)(void))dlsym(library, "openblas_get_num_threads");
    if (!config || !core || !set_threads || !get_threads) {
        snprintf(state.reason, sizeof state.reason,
                 "libopenblas.so.0 is not OpenBLAS: install the Debian package "
                 "libopenblas0-pthread");
        return false;
    }
    resolve_path((void *)config);
    set_threads(1);
    describe(config(), core());
    if (get_threads() != 1 || strstr(config(), "USE64BITINT")) {
        snprintf(state.reason, sizeof state.reason,
                 "%s %s: install the Debian package libopenblas0-pthread", state.path,
                 get_threads() != 1 ? "cannot be set to leave the threads to us"
                                    : "takes 64-bit integers");
        return false;
    }
    return true;
}

/* Told before it is loaded, so that it starts no threads: they are the harness's affair. */
static void load(void)
{
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    setenv("OMP_NUM_THREADS", "1", 1); /* its OpenMP builds ask for this one in every thread */
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        library = dlopen("libopenblas.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(state.reason, sizeof state.reason,
                 "OpenBLAS (libopenblas.so.0) cannot be loaded: install the Debian package "
                 "libopenblas0-pthread");
        return;
    }
    state.usable = identify(library) && find_symbols(library);
}
#endif

const struct blas *blas_loaded(void)
{
    if (!state.tried)
        load();
    state.tried = true;
    return state.usable ? &state.blas : NULL;
}

void blas_resolve(struct run *run)
{
    if (!blas_loaded())
        return;
    run_library(run, &(struct library){"OpenBLAS", state.version, state.path, state.detail});
}

const char *blas_unsupported(const struct run *run)
{
    (void)run;
    return blas_loaded() ? NULL : state.reason;
}

/* ---- threads -------------------------------------------------------------------------------- */

static bool runs_narrow_kernels(void)
{
    static const char *const wide[] = {"SkylakeX", "Cooperlake", "SapphireRapids", NULL};
    for (const char *const *core = wide; *core; core++)
        if (!strcmp(*core, state.core))
            return false;
    return !features_missing(FEATURE_AVX512F);
}

int blas_open(struct run *run)
{
    unsigned threads = run_threads(run);
    if (threads > state.callers_max) {
        run_reason(run,
                   "%u threads: OpenBLAS %s (%s) can be called by at most %u at once: use fewer "
                   "threads, or an OpenBLAS built for more",
                   threads, state.version, state.path, state.callers_max);
        return EXIT_RESOURCE;
    }
    if (threads > 1 && !state.thread_safe) {
        run_reason(run,
                   "%u threads: OpenBLAS %s (%s) is built for one thread only: use --threads 1, or "
                   "install libopenblas0-pthread",
                   threads, state.version, state.path);
        return EXIT_RESOURCE;
    }
    if (runs_narrow_kernels())
        run_warning(run, "blas_kernels",
                    "OpenBLAS %s runs its %s kernels, which leave this CPU's AVX-512 unused: a "
                    "newer OpenBLAS, or OPENBLAS_CORETYPE=SKYLAKEX in the environment, may be "
                    "faster",
                    state.version, state.core);
    return EXIT_OK;
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
               "%u threads were requested and %u have worked: OpenBLAS %s (%s) runs threads of its "
               "own: install libopenblas0-pthread",
               requested, worked, state.version, state.path);
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
        run_reason(thread->run, "no memory for the warm-up of thread %u: use fewer threads",
                   thread->index);
        return EXIT_RESOURCE;
    }
    do
        state.blas.dgemm(COLUMN_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, n, n, n, 1, operands, n,
                         operands + elements, n, 1, operands + 2 * elements, n);
    while (now_s() < until_s && !run_stopping(thread->run));
    free(operands);
    return EXIT_OK;
}
