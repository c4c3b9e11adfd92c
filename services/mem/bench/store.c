#include "store.h"

#include "cpu_features.h"
#include "monotonic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = 5,
    CHUNK_BYTES = 1 << 19, /* of an array, timed at once: some 20 µs and more */
    CHUNKS_MOST = 256,     /* in one window */
};

static const double WINDOW_S = 0.004;
/* About equal ones: always the first, so that all trials of a case choose the same. */
static const double WORTH_A_CHANGE = 1.02;
/* Of the best with the same store, in the first round. Slower ones cost only time. */
static const double WORTH_ANOTHER_ROUND = 0.85;

/* ---- which there are ------------------------------------------------------------------------ */

static bool agrees(const char *wished, const char *given)
{
    return !wished || !given || !strcmp(wished, given);
}

/* Pages side by side need room for them, stores that bypass the caches whole lines. */
static bool suits(const struct kernel *kernel, const struct ground *ground)
{
    size_t streams = strtoul(kernel->streams, NULL, 10);
    bool ahead = !strcmp(kernel->prefetch, "pages");
    if ((streams > 1 || ahead) && ground->block_bytes < 2 * streams * PAGE_BYTES)
        return false;
    return strcmp(kernel->store, "nt") != 0 || ground->block_bytes % LINE_BYTES == 0;
}

/* Single elements were nowhere worth trying: only who asks for them gets them. */
static bool is_tried(const struct kernel *kernel, const struct wish *wish)
{
    return !kernel->isa || wish->isa || strcmp(kernel->isa, "scalar") != 0;
}

/* Behind those of its own isa, before narrower ones: of about equal ones the first is taken. */
static void add(struct candidates *candidates, const struct kernel *kernel)
{
    unsigned at = candidates->count;
    while (kernel->isa && at > 0 && strcmp(candidates->kernels[at - 1]->isa, kernel->isa) != 0)
        at--;
    memmove(candidates->kernels + at + 1, candidates->kernels + at,
            (candidates->count - at) * sizeof *candidates->kernels);
    candidates->kernels[at] = kernel;
    candidates->count++;
}

bool candidates_find(struct candidates *candidates, const struct wish *wish,
                     const struct ground *ground)
{
    candidates->count = 0;
    for (const struct kernel *kernel = kernels; kernel->function; kernel++)
        if (kernel->operation == wish->operation && agrees(wish->isa, kernel->isa) &&
            agrees(wish->store, kernel->store) && agrees(wish->streams, kernel->streams) &&
            agrees(wish->prefetch, kernel->prefetch) && !features_missing(kernel->features) &&
            suits(kernel, ground) && is_tried(kernel, wish))
            add(candidates, kernel);
    return candidates->count > 0;
}

int candidates_prepare(struct candidates *candidates, struct run *run)
{
    if (candidates->count == 1)
        return EXIT_OK;
    candidates->rates =
        calloc((size_t)run_threads(run) * candidates->count, sizeof *candidates->rates);
    if (candidates->rates)
        return EXIT_OK;
    run_reason(run, "not enough memory to compare kernels on %u threads: use fewer",
               run_threads(run));
    return EXIT_RESOURCE;
}

void candidates_free(struct candidates *candidates)
{
    free(candidates->rates);
}

/* ---- trying --------------------------------------------------------------------------------- */

static void take(struct walk *walk, const struct kernel *kernel)
{
    walk->kernel = kernel->function;
    walk->fenced = !strcmp(kernel->store, "nt");
}

static bool is_libc(const struct kernel *kernel)
{
    return !strcmp(kernel->store, "libc");
}

/* What is timed at once; its bytes of an array. Small blocks are timed many together, by whatever
 * they are copied: reading the clock would weigh in. */
static size_t walk_chunk(struct walk *walk, const struct kernel *kernel)
{
    const struct ground *ground = walk->ground;
    if (is_libc(kernel) && !ground->blocks)
        return walk_part(walk);
    size_t chunk_bytes = CHUNK_BYTES;
    if (is_libc(kernel)) /* whole calls */
        chunk_bytes = ground->libc_bytes * (1 + (CHUNK_BYTES - 1) / ground->libc_bytes);
    uint64_t units = chunk_bytes > ground->unit_bytes ? chunk_bytes / ground->unit_bytes : 1;
    walk_units(walk, units);
    return units * ground->unit_bytes;
}

/* To where a chunk may begin: anywhere, unless it is to be one call. */
static void align(struct walk *walk, const struct kernel *kernel)
{
    if (walk->ground->blocks)
        walk_to_block(walk);
    else if (is_libc(kernel))
        walk_to_part(walk);
}

/* The median of small pieces, since an interruption only spoils the one it falls into. */
static double rate_now(struct walk *walk, const struct kernel *kernel, double window_s)
{
    double rates[CHUNKS_MOST];
    size_t count = 0;
    align(walk, kernel);
    take(walk, kernel);
    double start_s = now_s(), last_s = start_s;
    while (count == 0 || (count < CHUNKS_MOST && last_s - start_s < window_s)) {
        size_t bytes = walk_chunk(walk, kernel);
        double now = now_s();
        rates[count++] = (double)bytes / (now - last_s);
        last_s = now;
    }
    return median(rates, count) * walk_arrays(walk->ground->operation);
}

/* The rates of all threads together. */
static void add_up(struct candidates *candidates, unsigned threads)
{
    for (unsigned i = 0; i < candidates->count; i++) {
        candidates->totals[i] = 0;
        for (unsigned t = 0; t < threads; t++)
            candidates->totals[i] += candidates->rates[t * candidates->count + i];
    }
}

static void drop_slow_ones(struct candidates *candidates, unsigned threads)
{
    add_up(candidates, threads);
    for (unsigned i = 0; i < candidates->count; i++) {
        double best = candidates_rate(candidates, candidates->kernels[i]->store);
        candidates->dropped[i] = candidates->totals[i] < best * WORTH_ANOTHER_ROUND;
    }
}

/* False when the run stops. */
static bool agree_on_dropped(struct candidates *candidates, struct thread *thread)
{
    if (!run_meet(thread))
        return false;
    if (thread->index == 0)
        drop_slow_ones(candidates, run_threads(thread->run));
    return run_meet(thread);
}

/* The rates of a thread, each the best of some windows; the first window of all warms up. Threads
 * that share a CPU would have to wait for the windows of many others: one piece each must do. */
static void measure(struct candidates *candidates, struct thread *thread, struct walk *walk,
                    double *rates)
{
    bool crowded = run_oversubscribed(thread->run);
    double window_s = crowded ? 0 : WINDOW_S;
    rate_now(walk, candidates->kernels[0], window_s);
    for (int round = 0; round < (crowded ? 1 : ROUNDS); round++) {
        for (unsigned i = 0; i < candidates->count; i++) {
            if (candidates->dropped[i])
                continue;
            if (!run_meet(thread))
                return;
            rates[i] = fmax(rates[i], rate_now(walk, candidates->kernels[i], window_s));
        }
        if (round == 0 && !agree_on_dropped(candidates, thread))
            return;
    }
}

static void choose(struct candidates *candidates, unsigned threads)
{
    double best = 0;
    add_up(candidates, threads);
    for (unsigned i = 0; i < candidates->count; i++) {
        if (candidates->totals[i] < best * WORTH_A_CHANGE)
            continue;
        best = candidates->totals[i];
        candidates->chosen = candidates->kernels[i];
    }
}

int candidates_try(struct candidates *candidates, struct thread *thread, struct walk *walk)
{
    if (candidates->count == 1) {
        take(walk, candidates->kernels[0]);
        if (thread->index == 0)
            candidates->chosen = candidates->kernels[0];
        return EXIT_OK;
    }
    measure(candidates, thread, walk, candidates->rates + thread->index * candidates->count);
    if (!run_meet(thread))
        return EXIT_OK;
    if (thread->index == 0)
        choose(candidates, run_threads(thread->run));
    if (!run_meet(thread))
        return EXIT_OK;
    align(walk, candidates->chosen);
    take(walk, candidates->chosen);
    return EXIT_OK;
}

double candidates_rate(const struct candidates *candidates, const char *store)
{
    double best = 0;
    for (unsigned i = 0; candidates->rates && i < candidates->count; i++)
        if (!strcmp(candidates->kernels[i]->store, store))
            best = fmax(best, candidates->totals[i]);
    return best;
}
