/* numa: for each pair of NUMA nodes, one with CPUs and one with memory: the time of an access, idle
 * and under load, and the bandwidth. */
#include "caches.h"
#include "chase.h"
#include "crew.h"
#include "isa.h"
#include "mem_workloads.h"
#include "memory.h"
#include "monotonic.h"
#include "nodes.h"
#include "placement.h"
#include "store.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    HALF_GRANULE = HUGE_PAGE_BYTES,
    GRANULE = 2 * HALF_GRANULE,
    CHUNK_BYTES = 1 << 18, /* read between two looks at the clock: some 10 to 100 µs */
    PASS_UNITS = 16,       /* of the chain: some 100 µs */
    PASS_HOPS = PASS_UNITS * CHASE_UNROLLED,
    TIMES_KEPT = 512,
    PAGES_QUERIED = 1024, /* at once */
};

static const double GB = 1e9;
static const double STEP_S = 0.01;
static const double WINDOW_S = 0.002; /* of a rate: many chunks of each thread */
/* Long enough for a thread that was called to get its CPU. */
static const double PATIENCE_S = 0.1;
/* As of the other workloads: times the last-level caches of one node's CPUs, and where these are
 * unknown. Of the half that pointers lead through, and of the half that is read. */
static const double AUTO_CACHES = 4, AUTO_HALF_BYTES = 320e6;
static const double AUTO_SHARE = 0.6, USABLE_SHARE = 0.95; /* of the memory that is free */
static const double AUTO_LEAST_BYTES = 64 << 20;           /* a node with less room is left out */

static const char SIZE[] = "size_bytes";

enum figure { IDLE_TIME, LOADED_TIME, BANDWIDTH, LOAD, FIGURES };

static const char *const figure_names[FIGURES] = {
    [IDLE_TIME] = "access_time_s",
    [LOADED_TIME] = "loaded_access_time_s",
    [BANDWIDTH] = "bytes_per_second",
    [LOAD] = "load_bytes_per_second",
};

/* The CPUs of a node; the first thread leads what they do. */
struct side {
    int node;
    unsigned *threads;
    unsigned count;
};

/* The memory of a node: pointers lead through its first half, the second one is read. */
struct home {
    int node;
    struct pages pages;
    size_t half_bytes;
    struct chase chase;
    uint64_t units; /* of the chase */
    uint64_t chunks;
    uint64_t *sums; /* what each chunk adds up to */
};

struct pair {
    const struct side *side;
    struct home *home;
    struct reservoir seen[FIGURES];
    double figures[FIGURES]; /* medians; NaN: none */
};

struct matrix {
    struct side *sides;
    struct home *homes;
    struct pair *pairs;
    size_t side_count, home_count, pair_count;
    kernel_function *read;
    uint64_t step;       /* which of the steps of a round over all pairs, and how many there were */
    uint64_t first_step; /* of the timed region */
};

/* One thread that reads. */
struct reader {
    _Atomic uint64_t chunks;
    uint64_t noted; /* of them, when it was called */
};

/* ---- nodes and sizes ------------------------------------------------------------------------ */

/* Those of this run; to be freed. */
static bool read_nodes(const struct run *run, struct nodes *nodes)
{
    struct cpulist cpus = {.cpus = calloc(run_threads(run), sizeof(int))};
    for (unsigned i = 0; cpus.cpus && i < run_threads(run); i++)
        cpus.cpus[cpus.count++] = run_cpu(run, i);
    bool found = nodes_read(nodes, &cpus, "/proc", "/sys");
    cpulist_free(&cpus);
    return found;
}

/* Whether this much of the node's memory can be taken. */
static bool has_room(const struct numa_node *node, double bytes, double share)
{
    double left = memory_node_left(node->number, "/sys");
    return node->has_memory && (isnan(left) || share * left >= bytes);
}

static size_t count_sides(const struct nodes *nodes)
{
    size_t count = 0;
    for (size_t i = 0; i < nodes->count; i++)
        count += nodes->nodes[i].cpus.count > 0;
    return count;
}

static size_t count_homes(const struct nodes *nodes, double bytes, double share)
{
    size_t count = 0;
    for (size_t i = 0; i < nodes->count; i++)
        count += has_room(&nodes->nodes[i], bytes, share);
    return count;
}

static const char ONE_PAIR[] = "this process may use CPUs of one NUMA node and memory of one NUMA "
                               "node: pointer_chase, loaded_latency and read measure those";

static bool are_several_pairs(const struct nodes *nodes)
{
    return count_sides(nodes) * count_homes(nodes, 0, 1) > 1;
}

/* Whatever CPUs a trial may choose. */
static bool are_several_pairs_here(void)
{
    struct cpulist affinity;
    struct nodes nodes;
    if (!placement_affinity(&affinity))
        return false;
    bool found = nodes_read(&nodes, &affinity, "/proc", "/sys") && are_several_pairs(&nodes);
    nodes_free(&nodes);
    cpulist_free(&affinity);
    return found;
}

static const char *unsupported(const struct run *run)
{
    const char *reason = isa_unsupported(run);
    return reason || are_several_pairs_here() ? reason : ONE_PAIR;
}

/* The largest last-level caches that the CPUs of one node have. */
static double caches_of_a_node(const struct nodes *nodes)
{
    double most = 0;
    for (size_t i = 0; i < nodes->count; i++) {
        struct caches caches;
        if (nodes->nodes[i].cpus.count == 0)
            continue;
        caches_read(&caches, &nodes->nodes[i].cpus, 1, "/sys");
        most = fmax(most, caches.llc);
    }
    return most;
}

/* What each node with room can give at least. A nearly full node is left out, rather than that its
 * size makes the figures of all nodes those of caches. */
static double automatic_size(const struct nodes *nodes, double caches, double budget_bytes)
{
    double size = 2 * fmax(AUTO_CACHES * caches, AUTO_HALF_BYTES);
    bool enough = count_sides(nodes) * count_homes(nodes, size, AUTO_SHARE) > 1;
    double least = enough ? size : AUTO_LEAST_BYTES;
    size_t homes = count_homes(nodes, least, AUTO_SHARE);
    size = fmin(size, AUTO_SHARE * budget_bytes / (double)(homes ? homes : 1));
    for (size_t i = 0; i < nodes->count; i++) {
        double left = memory_node_left(nodes->nodes[i].number, "/sys");
        if (has_room(&nodes->nodes[i], least, AUTO_SHARE) && !isnan(left))
            size = fmin(size, AUTO_SHARE * left);
    }
    return floor(size / GRANULE) * GRANULE;
}

static int check_given_size(struct run *run)
{
    if (run_choice(run, SIZE))
        return EXIT_OK;
    uint64_t size = run_count(run, SIZE);
    if (size % GRANULE == 0)
        return EXIT_OK;
    run_reason(run,
               "--size-bytes %" PRIu64 ": it is divided into two parts of whole huge pages: take "
               "%" PRIu64 " or %" PRIu64,
               size, size / GRANULE * GRANULE, (size / GRANULE + 1) * GRANULE);
    return EXIT_USAGE;
}

static int check_memory(struct run *run, const struct nodes *nodes)
{
    struct memory_budget budget;
    double caches = caches_of_a_node(nodes);
    bool given = !run_choice(run, SIZE);
    if (!run_memory_budget(run, &budget))
        budget.bytes = INFINITY;
    double size =
        given ? (double)run_count(run, SIZE) : automatic_size(nodes, caches, budget.bytes);
    double all = size * (double)count_homes(nodes, size, USABLE_SHARE);
    if (size < GRANULE || all > USABLE_SHARE * budget.bytes) {
        run_reason(run,
                   "%.3f GB of each NUMA node's memory are needed, and %.3f GB may be taken "
                   "altogether (95 %% of %s): use a smaller --size-bytes",
                   fmax(size, GRANULE) / GB, USABLE_SHARE * budget.bytes / GB, budget.limit);
        return EXIT_RESOURCE;
    }
    if (!given)
        run_set_count(run, SIZE, (uint64_t)size);
    if (size / 2 < AUTO_CACHES * caches)
        run_warning(run, "cache_influenced",
                    "half of the %.3g GB on each node is less than 4 times the last-level caches "
                    "of a node's CPUs (%.3g GB): part of it stays in them",
                    size / GB, caches / GB);
    return EXIT_OK;
}

static int check(struct run *run)
{
    struct nodes nodes;
    if (run_oversubscribed(run)) {
        run_reason(run, "%u threads share %u CPUs: take one thread a CPU", run_threads(run),
                   run_cpus(run));
        return EXIT_UNSUPPORTED;
    }
    int failure = check_given_size(run);
    if (failure)
        return failure;
    if (read_nodes(run, &nodes) && are_several_pairs(&nodes)) {
        failure = check_memory(run, &nodes);
    } else { /* with the CPUs that were chosen */
        run_reason(run, "%s", ONE_PAIR);
        failure = EXIT_UNSUPPORTED;
    }
    nodes_free(&nodes);
    return failure;
}

/* ---- life ----------------------------------------------------------------------------------- */

static int lacks_memory(struct run *run)
{
    run_reason(run, "no memory for %u threads: use fewer", run_threads(run));
    return EXIT_RESOURCE;
}

static int open_side(const struct run *run, struct side *side, const struct numa_node *node)
{
    *side = (struct side){.node = node->number,
                          .threads = calloc(run_threads(run), sizeof *side->threads)};
    for (unsigned i = 0; side->threads && i < run_threads(run); i++)
        if (cpulist_contains(&node->cpus, run_cpu(run, i)))
            side->threads[side->count++] = i;
    return side->threads ? EXIT_OK : EXIT_RESOURCE;
}

static int cannot_place(struct run *run, const char *call)
{
    bool refused = errno == EPERM || errno == ENOSYS;
    run_reason(run,
               "%s failed (%s), so memory cannot be put on a NUMA node and found there: in a "
               "container add CAP_SYS_NICE",
               call, strerror(errno));
    return refused ? EXIT_UNSUPPORTED : EXIT_RESOURCE;
}

static int open_home(struct run *run, struct home *home, const struct numa_node *node)
{
    size_t bytes = run_count(run, SIZE);
    *home = (struct home){
        .node = node->number, .half_bytes = bytes / 2, .chunks = bytes / 2 / CHUNK_BYTES};
    home->sums = calloc(home->chunks, sizeof *home->sums);
    if (!home->sums)
        return lacks_memory(run);
    int failure = pages_reserve(run, &home->pages, bytes, page_mode_of(run_choice(run, "pages")));
    if (failure)
        return failure;
    return nodes_bind(home->pages.base, bytes, home->node) ? cannot_place(run, "mbind()") : EXIT_OK;
}

static void warn_of_those_left_out(const struct run *run, const struct nodes *nodes)
{
    struct cpulist full = {.cpus = calloc(nodes->count + 1, sizeof(int))};
    char names[128];
    for (size_t i = 0; full.cpus && i < nodes->count; i++)
        if (nodes->nodes[i].has_memory &&
            !has_room(&nodes->nodes[i], (double)run_count(run, SIZE), USABLE_SHARE))
            full.cpus[full.count++] = nodes->nodes[i].number;
    cpulist_format(&full, names, sizeof names);
    if (full.count > 0)
        run_warning(run, "nodes_full",
                    "the memory of the NUMA nodes %s is left out: %.3g GB of each are needed, and "
                    "less is free",
                    names, (double)run_count(run, SIZE) / GB);
    cpulist_free(&full);
    cpulist_format(&nodes->barred, names, sizeof names);
    if (nodes->barred.count > 0)
        run_warning(run, "nodes_barred",
                    "the memory of the NUMA nodes %s is left out: the cpuset of this process "
                    "allows none of it",
                    names);
}

static int open_sides_and_homes(struct run *run, struct matrix *matrix, const struct nodes *nodes)
{
    double size = (double)run_count(run, SIZE);
    int failure = EXIT_OK;
    matrix->sides = calloc(nodes->count, sizeof *matrix->sides);
    matrix->homes = calloc(nodes->count, sizeof *matrix->homes);
    if (!matrix->sides || !matrix->homes)
        return lacks_memory(run);
    for (size_t i = 0; i < nodes->count && !failure; i++) {
        const struct numa_node *node = &nodes->nodes[i];
        if (node->cpus.count > 0)
            failure = open_side(run, &matrix->sides[matrix->side_count++], node);
        if (!failure && has_room(node, size, USABLE_SHARE))
            failure = open_home(run, &matrix->homes[matrix->home_count++], node);
    }
    return failure;
}

static int open_pairs(struct run *run, struct matrix *matrix)
{
    matrix->pair_count = matrix->side_count * matrix->home_count;
    if (matrix->pair_count < 2) {
        run_reason(run,
                   "fewer than two pairs of NUMA nodes are left, since %.3g GB of a node's memory "
                   "are needed and others have less free: use a smaller --size-bytes",
                   (double)run_count(run, SIZE) / GB);
        return EXIT_RESOURCE;
    }
    matrix->pairs = calloc(matrix->pair_count, sizeof *matrix->pairs);
    if (!matrix->pairs)
        return lacks_memory(run);
    for (size_t i = 0; i < matrix->pair_count; i++) {
        struct pair *pair = &matrix->pairs[i];
        pair->side = &matrix->sides[i / matrix->home_count];
        pair->home = &matrix->homes[i % matrix->home_count];
        for (enum figure which = 0; which < FIGURES; which++)
            if (reservoir_init(&pair->seen[which], TIMES_KEPT))
                return lacks_memory(run);
    }
    return EXIT_OK;
}

/* As loaded_latency's load. */
static int find_kernel(struct run *run, struct matrix *matrix)
{
    struct candidates candidates;
    struct ground ground = {.operation = OPERATION_READ};
    struct wish wish = {.operation = OPERATION_READ,
                        .isa = run_choice(run, "isa"),
                        .store = "plain",
                        .streams = "8",
                        .prefetch = "none"};
    ground_divide(&ground, CHUNK_BYTES, 0);
    if (!candidates_find(&candidates, &wish, &ground)) {
        wish.streams = "1";
        if (!candidates_find(&candidates, &wish, &ground))
            return lacks_memory(run);
    }
    matrix->read = candidates.kernels[0]->function;
    return EXIT_OK;
}

static int open_matrix(struct run *run)
{
    struct nodes nodes;
    int failure = crew_open(run, sizeof(struct matrix), sizeof(struct reader));
    struct matrix *matrix = crew_state(run);
    if (failure)
        return failure;
    if (!read_nodes(run, &nodes))
        failure = lacks_memory(run);
    if (!failure)
        failure = open_sides_and_homes(run, matrix, &nodes);
    if (!failure)
        warn_of_those_left_out(run, &nodes);
    nodes_free(&nodes);
    if (!failure)
        failure = open_pairs(run, matrix);
    return failure ? failure : find_kernel(run, matrix);
}

static void close_matrix(struct run *run)
{
    struct matrix *matrix = crew_state(run);
    if (matrix) {
        for (size_t i = 0; matrix->pairs && i < matrix->pair_count; i++)
            for (enum figure which = 0; which < FIGURES; which++)
                reservoir_free(&matrix->pairs[i].seen[which]);
        for (size_t i = 0; i < matrix->side_count; i++)
            free(matrix->sides[i].threads);
        for (size_t i = 0; i < matrix->home_count; i++) {
            pages_release(&matrix->homes[i].pages);
            free(matrix->homes[i].sums);
        }
        free(matrix->pairs);
        free(matrix->sides);
        free(matrix->homes);
    }
    crew_close(run);
}

/* ---- memory --------------------------------------------------------------------------------- */

static unsigned char *chunk_of(const struct home *home, uint64_t chunk)
{
    return (unsigned char *)home->pages.base + home->half_bytes + chunk * CHUNK_BYTES;
}

/* A word that is read twice or not at all changes the sum of its chunk. */
static void fill_chunks(struct home *home)
{
    for (uint64_t chunk = 0; chunk < home->chunks; chunk++) {
        uint64_t *words = (uint64_t *)chunk_of(home, chunk), sum = 0;
        for (uint64_t i = 0; i < CHUNK_BYTES / sizeof *words; i++) {
            words[i] = (chunk * CHUNK_BYTES + i + 1) * 0x9E3779B97F4A7C15u;
            sum += words[i];
        }
        home->sums[chunk] = sum;
    }
}

/* Every page, so that no figure is that of another node. */
static int check_pages(const struct thread *thread, const struct home *home)
{
    void *pages[PAGES_QUERIED];
    int nodes[PAGES_QUERIED];
    char *at = home->pages.base, *end = at + 2 * home->half_bytes;
    while (at < end) {
        size_t count = 0;
        for (; count < PAGES_QUERIED && at < end; at += PAGE_BYTES)
            pages[count++] = at;
        if (nodes_of_pages(pages, count, nodes))
            return cannot_place(thread->run, "move_pages()");
        for (size_t i = 0; i < count; i++) {
            if (nodes[i] == home->node)
                continue;
            run_reason(thread->run,
                       "a page that belongs on NUMA node %d is on node %d (negative: on none, an "
                       "error number), so there is no figure: free memory of that node, and keep "
                       "other programs from moving pages",
                       home->node, nodes[i]);
            return EXIT_RESOURCE;
        }
    }
    return EXIT_OK;
}

/* By a thread that is near it, if there is one. */
static bool is_mine(const struct thread *thread, const struct matrix *matrix, size_t which)
{
    for (size_t i = 0; i < matrix->side_count; i++)
        if (matrix->sides[i].node == matrix->homes[which].node)
            return matrix->sides[i].threads[0] == thread->index;
    return thread->index == which % run_threads(thread->run);
}

static int fill(struct thread *thread, struct home *home)
{
    int failure = pages_touch(thread->run, &home->pages, home->pages.base, 2 * home->half_bytes);
    if (failure || run_stopping(thread->run))
        return failure;
    chase_begin(&home->chase, home->pages.base, home->half_bytes, sizeof(struct node), 1,
                (uint32_t)home->node);
    fill_chunks(home);
    return check_pages(thread, home);
}

static int setup(struct thread *thread)
{
    struct matrix *matrix = crew_state(thread->run);
    int failure = EXIT_OK;
    if (thread->index == 0)
        run_set_unit(thread->run, 1, 1);
    for (size_t i = 0; i < matrix->home_count && !failure; i++)
        if (is_mine(thread, matrix, i))
            failure = fill(thread, &matrix->homes[i]);
    return failure;
}

/* ---- work ----------------------------------------------------------------------------------- */

static struct reader *reader_of(const struct run *run, unsigned thread)
{
    return crew_member(run, thread);
}

/* Each thread of a side goes round through a part of its own, and in each step on from where it was:
 * what it reads again has left the caches. */
static uint64_t next_chunk(const struct thread *thread, const struct pair *pair, uint64_t done)
{
    uint64_t rank = 0, count = pair->side->count, chunks = pair->home->chunks;
    while (pair->side->threads[rank] != thread->index)
        rank++;
    uint64_t first = chunks * rank / count, end = chunks * (rank + 1) / count;
    return first + (end > first ? done % (end - first) : 0);
}

static int read_chunk(const struct thread *thread, const struct matrix *matrix,
                      const struct pair *pair)
{
    struct reader *reader = reader_of(thread->run, thread->index);
    const struct home *home = pair->home;
    uint64_t done = atomic_load_explicit(&reader->chunks, memory_order_relaxed);
    uint64_t next = next_chunk(thread, pair, done);
    unsigned char *chunk = chunk_of(home, next);
    uint64_t sum = matrix->read(chunk, chunk, chunk, CHUNK_BYTES, 0);
    if (sum != home->sums[next]) {
        run_reason(thread->run,
                   "thread %u, CPU %d, has read wrong values from NUMA node %d: this CPU, its "
                   "memory or this build works wrongly, do not trust its figures",
                   thread->index, thread->cpu, home->node);
        return EXIT_WRONG;
    }
    atomic_store_explicit(&reader->chunks, done + 1, memory_order_relaxed);
    return EXIT_OK;
}

static int read_while_wanted(const struct thread *thread, const struct matrix *matrix,
                             const struct pair *pair)
{
    int failure = EXIT_OK;
    while (!failure && crew_wanted(thread))
        failure = read_chunk(thread, matrix, pair);
    return failure;
}

/* The time of one access. */
static double chase(struct home *home)
{
    double start_s = now_s();
    chase_units(&home->chase, PASS_UNITS);
    home->units += PASS_UNITS;
    return (now_s() - start_s) / PASS_HOPS;
}

/* ---- a step: one kind of figure of one pair ------------------------------------------------- */

static void note(const struct thread *thread, struct pair *pair, enum figure which, double value)
{
    if (run_loop_timed(thread))
        reservoir_add(&pair->seen[which], value);
}

static uint64_t chunks_read(const struct run *run, const struct side *side)
{
    uint64_t chunks = 0;
    for (unsigned i = 0; i < side->count; i++)
        chunks +=
            atomic_load_explicit(&reader_of(run, side->threads[i])->chunks, memory_order_relaxed);
    return chunks;
}

static void call_others(const struct run *run, const struct side *side)
{
    for (unsigned i = 1; i < side->count; i++) {
        struct reader *reader = reader_of(run, side->threads[i]);
        reader->noted = atomic_load(&reader->chunks);
        crew_call(run, side->threads[i]);
    }
}

static bool are_at_work(const struct run *run, const struct side *side)
{
    for (unsigned i = 1; i < side->count; i++) {
        const struct reader *reader = reader_of(run, side->threads[i]);
        if (atomic_load_explicit(&reader->chunks, memory_order_relaxed) == reader->noted)
            return false;
    }
    return true;
}

/* Until they sleep: then nothing reads while the next figure is taken. */
static void dismiss_others(const struct run *run, const struct side *side)
{
    for (unsigned i = 1; i < side->count; i++)
        crew_dismiss(run, side->threads[i]);
    for (unsigned i = 1; i < side->count; i++)
        crew_join(run, side->threads[i]);
}

static bool goes_on(const struct run *run, double until_s)
{
    return now_s() < until_s && !run_stopping(run);
}

static int measure_idle(struct thread *thread, struct matrix *matrix, struct pair *pair)
{
    double start_s = now_s();
    uint64_t hops = 0;
    (void)matrix;
    for (; goes_on(thread->run, start_s + STEP_S); hops += PASS_HOPS)
        note(thread, pair, IDLE_TIME, chase(pair->home));
    if (run_loop_timed(thread))
        crew_note(thread->run, hops, now_s() - start_s);
    return EXIT_OK;
}

/* Notes the rate of each window; a thread that had no CPU in one takes from that one alone. */
static int measure_bandwidth(struct thread *thread, struct matrix *matrix, struct pair *pair)
{
    const struct run *run = thread->run;
    const struct side *side = pair->side;
    double until_s = now_s() + PATIENCE_S;
    int failure = EXIT_OK;
    call_others(run, side);
    while (!failure && !are_at_work(run, side) && goes_on(run, until_s))
        failure = read_chunk(thread, matrix, pair);
    if (!failure && are_at_work(run, side)) {
        uint64_t chunks = chunks_read(run, side);
        double start_s = now_s();
        until_s = start_s + STEP_S;
        while (!failure && goes_on(run, until_s)) {
            failure = read_chunk(thread, matrix, pair);
            double window_s = now_s() - start_s;
            if (window_s < WINDOW_S)
                continue;
            uint64_t more = chunks_read(run, side) - chunks;
            note(thread, pair, BANDWIDTH, (double)(more * CHUNK_BYTES) / window_s);
            chunks += more;
            start_s += window_s;
        }
    }
    dismiss_others(run, side);
    return failure;
}

static int measure_loaded(struct thread *thread, struct matrix *matrix, struct pair *pair)
{
    const struct run *run = thread->run;
    const struct side *side = pair->side;
    double until_s = now_s() + PATIENCE_S;
    (void)matrix;
    if (side->count < 2)
        return EXIT_OK;
    call_others(run, side);
    while (!are_at_work(run, side) && goes_on(run, until_s))
        chase(pair->home);
    if (are_at_work(run, side)) {
        uint64_t chunks = chunks_read(run, side);
        double start_s = now_s();
        while (goes_on(run, start_s + STEP_S))
            note(thread, pair, LOADED_TIME, chase(pair->home));
        chunks = chunks_read(run, side) - chunks;
        note(thread, pair, LOAD, (double)(chunks * CHUNK_BYTES) / (now_s() - start_s));
    }
    dismiss_others(run, side);
    return EXIT_OK;
}

static int (*const kinds[])(struct thread *, struct matrix *,
                            struct pair *) = {measure_idle, measure_bandwidth, measure_loaded};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- rounds --------------------------------------------------------------------------------- */

static struct pair *pair_of_step(const struct matrix *matrix)
{
    return &matrix->pairs[matrix->step / KINDS % matrix->pair_count];
}

static void call_leader(const struct run *run, const struct matrix *matrix)
{
    crew_call(run, pair_of_step(matrix)->side->threads[0]);
}

/* A round that has begun is finished, so that each pair has its figures. */
static bool is_over(const struct thread *thread, const struct matrix *matrix)
{
    uint64_t done = matrix->step - matrix->first_step;
    bool whole = !run_loop_timed(thread) || done % (KINDS * matrix->pair_count) == 0;
    return whole && run_loop_over(thread, 0, now_s());
}

static int lead(struct thread *thread, struct matrix *matrix)
{
    int failure = kinds[matrix->step % KINDS](thread, matrix, pair_of_step(matrix));
    matrix->step++;
    if (failure || is_over(thread, matrix))
        crew_end(thread->run);
    else
        call_leader(thread->run, matrix);
    return failure;
}

static int loop(struct thread *thread)
{
    struct matrix *matrix = crew_state(thread->run);
    int failure = EXIT_OK;
    if (thread->index == 0)
        call_leader(thread->run, matrix);
    while (!failure && crew_wait(thread)) {
        const struct pair *pair = pair_of_step(matrix);
        failure = thread->index == pair->side->threads[0] ? lead(thread, matrix)
                                                          : read_while_wanted(thread, matrix, pair);
    }
    return failure;
}

static int prepare(struct thread *thread)
{
    struct matrix *matrix = crew_state(thread->run);
    if (thread->index == 0)
        matrix->first_step = matrix->step;
    return crew_prepare(thread);
}

/* ---- figures -------------------------------------------------------------------------------- */

static double median_of(const struct reservoir *seen)
{
    return seen->kept > 0 ? median(seen->values, seen->kept) : NAN;
}

/* The medians of the pairs that this thread leads, as its own rate. */
static void work_out_own(struct thread *thread, struct matrix *matrix)
{
    double *times_s = calloc(matrix->pair_count, sizeof *times_s);
    size_t count = 0;
    uint64_t passes = 0;
    for (size_t i = 0; i < matrix->pair_count; i++) {
        struct pair *pair = &matrix->pairs[i];
        if (pair->side->threads[0] != thread->index)
            continue;
        for (enum figure which = 0; which < FIGURES; which++)
            pair->figures[which] = median_of(&pair->seen[which]);
        passes += pair->seen[IDLE_TIME].seen;
        if (times_s && isfinite(pair->figures[IDLE_TIME]))
            times_s[count++] = pair->figures[IDLE_TIME];
    }
    if (count > 0)
        run_bulk_done(thread, passes * PASS_HOPS, 1 / median(times_s, count));
    else
        run_bulk_none(thread, 0, "this thread only reads beside the first one of its node");
    free(times_s);
}

static int verify(struct thread *thread, uint64_t units)
{
    struct matrix *matrix = crew_state(thread->run);
    int failure = EXIT_OK;
    (void)units;
    for (size_t i = 0; i < matrix->home_count && !failure; i++) {
        const struct home *home = &matrix->homes[i];
        if (!is_mine(thread, matrix, i))
            continue;
        failure = check_pages(thread, home);
        if (!failure)
            failure = chase_verify(thread, &home->chase, home->units);
    }
    work_out_own(thread, matrix);
    return failure;
}

static void report_pairs(struct run *run, const struct matrix *matrix)
{
    for (size_t i = 0; i < matrix->pair_count; i++) {
        const struct pair *pair = &matrix->pairs[i];
        int from = pair->side->node, to = pair->home->node;
        double distance = nodes_distance(from, to, "/sys");
        for (enum figure which = 0; which < FIGURES; which++)
            if (isfinite(pair->figures[which]))
                run_node_figure(run, from, to, figure_names[which], pair->figures[which]);
        if (isfinite(distance))
            run_node_figure(run, from, to, "distance", distance);
    }
}

/* All that there are of one figure, in order; how many. */
static size_t collect(const struct matrix *matrix, enum figure which, double *values)
{
    size_t count = 0;
    for (size_t i = 0; i < matrix->pair_count; i++)
        if (isfinite(matrix->pairs[i].figures[which]))
            values[count++] = matrix->pairs[i].figures[which];
    if (count > 0)
        median(values, count);
    return count;
}

static void report_extremes(struct run *run, const char *lowest, const char *highest,
                            const double *values, size_t count)
{
    run_metric(run, lowest, count > 0 ? values[0] : NAN);
    run_metric(run, highest, count > 0 ? values[count - 1] : NAN);
}

static void report_loaded(struct run *run, double *values, size_t count)
{
    if (count > 0)
        run_metric(run, "loaded_access_time_s", median(values, count));
    else
        run_no_metric(run, "loaded_access_time_s",
                      "no node has a second CPU of this process that got to make load");
}

static double huge_page_ratio(const struct matrix *matrix)
{
    double sum = 0;
    for (size_t i = 0; i < matrix->home_count; i++)
        sum += pages_huge_ratio(&matrix->homes[i].pages);
    return sum / (double)matrix->home_count;
}

static void warn_of_small_pages(const struct run *run, const struct matrix *matrix)
{
    for (size_t i = 0; i < matrix->home_count; i++) {
        const struct home *home = &matrix->homes[i];
        double ratio = pages_huge_ratio(&home->pages);
        if (home->pages.mode == PAGES_HUGE && ratio < ENOUGH_HUGE_PAGES)
            run_warning(run, "huge_pages_missing",
                        "only %.0f %% of the memory on NUMA node %d lies in huge pages: its times "
                        "include the translation of addresses",
                        100 * ratio, home->node);
    }
}

static void finish(struct thread *thread)
{
    struct run *run = thread->run;
    struct matrix *matrix = crew_state(run);
    double *values = calloc(matrix->pair_count, sizeof *values);
    if (!values)
        abort();
    report_pairs(run, matrix);
    size_t count = collect(matrix, IDLE_TIME, values);
    run_bulk_rate(run, count > 0 ? median(values, count) : NAN);
    report_extremes(run, "access_time_s_nearest", "access_time_s_farthest", values, count);
    count = collect(matrix, LOADED_TIME, values);
    report_loaded(run, values, count);
    count = collect(matrix, BANDWIDTH, values);
    report_extremes(run, "bytes_per_second_lowest", "bytes_per_second_highest", values, count);
    run_metric(run, "node_pairs_measured", (double)matrix->pair_count);
    run_metric(run, "huge_page_ratio", huge_page_ratio(matrix));
    warn_of_small_pages(run, matrix);
    free(values);
}

/* ---- table ---------------------------------------------------------------------------------- */

/* No hugetlb: the pool is the host's, and a node's part of it is not what is free there. */
static const char *const modes[] = {"4k", "huge", NULL};

static const struct param params[] = {
    PARAM_ISA,
    {.name = "pages",
     .type = PARAM_CHOICE,
     .initial = "huge",
     .choices = modes,
     .roles = ROLE_TAG,
     .title = "page mode",
     .help = "Page size of the memory. huge: requests transparent huge pages of 2 MiB "
             "(huge_page_ratio reports the share obtained)."},
    {.name = SIZE,
     .type = PARAM_COUNT,
     .unit = "byte",
     .initial = "auto",
     .min = GRANULE,
     .max = 0x1p39, /* what a chase leads through */
     .choices = size_words,
     .roles = ROLE_AXIS,
     .title = "memory of each node",
     .help = "Memory of each node, in whole 4 MiB: pointers lead through one half, the other one "
             "is read; auto: 8 times the last-level caches of a node's CPUs, at least 640 MB, at "
             "most 60 % of the memory there is."},
    {.name = NULL}};

static const struct metric metrics[] = {
    {"access_time_s_nearest", "s", LOWER_IS_BETTER, "The same of the fastest pair of nodes."},
    {"access_time_s_farthest", "s", LOWER_IS_BETTER, "The same of the slowest pair of nodes."},
    {"loaded_access_time_s", "s", LOWER_IS_BETTER,
     "Time of such an access while all other threads on the node read from the same memory: median "
     "over the pairs of nodes."},
    {"bytes_per_second_lowest", "byte/s", HIGHER_IS_BETTER,
     "What all threads on a node read together from the memory of one node: the slowest pair."},
    {"bytes_per_second_highest", "byte/s", HIGHER_IS_BETTER, "The same of the fastest pair."},
    {"node_pairs_measured", "pair", HIGHER_IS_BETTER,
     "Pairs of a node with threads of this trial and a node with enough free memory."},
    METRIC_HUGE_PAGE_RATIO,
    {.name = NULL}};

static const char *const excludes[] = {"work", NULL};

const struct workload numa_workload = {
    .name = "numa",
    .description = "Follows pointers through the memory of each NUMA node from the CPUs of each "
                   "node, idle and under load, and reads it with all of them. Each pair of nodes "
                   "takes at least 30 ms, whatever duration_s is.",
    .rate = {.name = "access_time_s",
             .unit = "s",
             .description = "Time of one access that depends on the one before, with nothing "
                            "beside it: median over the pairs of nodes of the median of some "
                            "1000 accesses in a row.",
             .combine = COMBINE_MEDIAN,
             .time = true},
    .excludes = excludes,
    .params = params,
    .metrics = metrics,
    .setup_s = 1,
    .setup_s_per_byte = 1e-9,
    .resolve = isa_resolve,
    .unsupported = unsupported,
    .unconfirmed = isa_unconfirmed,
    .check = check,
    .open = open_matrix,
    .close = close_matrix,
    .setup = setup,
    .loop = loop,
    .prepare = prepare,
    .moved = crew_moved,
    .verify = verify,
    .finish = finish,
};
