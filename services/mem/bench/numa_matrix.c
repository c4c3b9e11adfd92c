#include "numa_matrix.h"

#include "memory.h"
#include "nodes.h"
#include "numa_sizes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    TIMES_KEPT = 512,
    PAGES_QUERIED = 1024, /* at once */
};

static const double STEP_S_MOST = 0.01;
static const double STEP_S_LEAST = 0.004; /* two windows of a rate */
/* Of the time of the run; the rest is that of calling threads and sending them back. */
static const double STEPS_SHARE = 0.8;

/* ---- life ----------------------------------------------------------------------------------- */

int numa_lacks_memory(struct run *run)
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
    size_t bytes = run_count(run, NUMA_SIZE);
    *home = (struct home){
        .node = node->number, .half_bytes = bytes / 2, .chunks = bytes / 2 / NUMA_CHUNK_BYTES};
    home->sums = calloc(home->chunks, sizeof *home->sums);
    if (!home->sums)
        return numa_lacks_memory(run);
    int failure = pages_reserve(run, &home->pages, bytes, page_mode_of(run_choice(run, "pages")));
    if (failure)
        return failure;
    home->pages.node = home->node;
    return nodes_bind(home->pages.base, bytes, home->node) ? cannot_place(run, "mbind()") : EXIT_OK;
}

static void warn_of_those_left_out(const struct run *run, const struct nodes *nodes)
{
    struct cpulist full = {.cpus = calloc(nodes->count + 1, sizeof(int))};
    char names[128], words[MEMORY_WORDS];
    for (size_t i = 0; full.cpus && i < nodes->count; i++)
        if (nodes->nodes[i].has_memory &&
            !numa_has_room(&nodes->nodes[i], (double)run_count(run, NUMA_SIZE), NUMA_USABLE_SHARE))
            full.cpus[full.count++] = nodes->nodes[i].number;
    cpulist_format(&full, names, sizeof names);
    if (full.count > 0)
        run_warning(run, "nodes_full",
                    "the memory of the NUMA nodes %s is left out: %s of each are needed, and less "
                    "is free",
                    names, memory_in_words((double)run_count(run, NUMA_SIZE), words));
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
    double size = (double)run_count(run, NUMA_SIZE);
    int failure = EXIT_OK;
    matrix->sides = calloc(nodes->count, sizeof *matrix->sides);
    matrix->homes = calloc(nodes->count, sizeof *matrix->homes);
    if (!matrix->sides || !matrix->homes)
        return numa_lacks_memory(run);
    for (size_t i = 0; i < nodes->count && !failure; i++) {
        const struct numa_node *node = &nodes->nodes[i];
        if (node->cpus.count > 0)
            failure = open_side(run, &matrix->sides[matrix->side_count++], node);
        if (!failure && numa_has_room(node, size, NUMA_USABLE_SHARE))
            failure = open_home(run, &matrix->homes[matrix->home_count++], node);
    }
    return failure;
}

/* Of a node's memory: its own is the first one. */
static size_t first_home(const struct matrix *matrix, size_t side)
{
    for (size_t i = 0; i < matrix->home_count; i++)
        if (matrix->homes[i].node == matrix->sides[side].node)
            return i;
    return side;
}

static int open_pair(struct pair *pair, const struct side *side, struct home *home)
{
    *pair = (struct pair){.side = side, .home = home};
    for (enum figure which = 0; which < FIGURES; which++) {
        pair->figures[which] = NAN;
        if (reservoir_init(&pair->seen[which], TIMES_KEPT))
            return EXIT_RESOURCE;
    }
    return EXIT_OK;
}

/* At most so many: each node with CPUs with its own memory first, then with as many others as all of
 * them can have, spread over the nodes. */
static int list_pairs(struct matrix *matrix, size_t most)
{
    size_t sides = matrix->side_count, homes = matrix->home_count;
    size_t columns = most >= sides * homes ? homes : most < sides ? 1 : most / sides;
    matrix->pairs = calloc(columns * sides, sizeof *matrix->pairs);
    int failure = matrix->pairs ? EXIT_OK : EXIT_RESOURCE;
    for (size_t column = 0; column < columns; column++)
        for (size_t side = 0; side < sides && matrix->pair_count < most && !failure; side++) {
            size_t home = (first_home(matrix, side) + column * homes / columns) % homes;
            failure = open_pair(&matrix->pairs[matrix->pair_count++], &matrix->sides[side],
                                &matrix->homes[home]);
        }
    return failure;
}

static int open_pairs(struct run *run, struct matrix *matrix)
{
    size_t all = matrix->side_count * matrix->home_count;
    double duration_s = run_number(run, "duration_s");
    double steps_s = STEPS_SHARE * duration_s / NUMA_STEPS;
    if (all < 2) {
        char words[MEMORY_WORDS];
        run_reason(run,
                   "fewer than two pairs of NUMA nodes are left, since %s of a node's memory are "
                   "needed and others have less free: use a smaller --size-bytes",
                   memory_in_words((double)run_count(run, NUMA_SIZE), words));
        return EXIT_RESOURCE;
    }
    if (list_pairs(matrix, (size_t)fmax(steps_s / STEP_S_LEAST, 2)))
        return numa_lacks_memory(run);
    matrix->step_s = fmin(fmax(steps_s / (double)matrix->pair_count, STEP_S_LEAST), STEP_S_MOST);
    if (matrix->pair_count < all)
        run_warning(run, "pairs_sampled",
                    "%zu of the %zu pairs of NUMA nodes are measured, as many as fit into "
                    "--duration-s %g: all of them need %.2g",
                    matrix->pair_count, all, duration_s,
                    (double)all * STEP_S_LEAST * NUMA_STEPS / STEPS_SHARE);
    return EXIT_OK;
}

int numa_matrix_open(struct run *run, struct matrix *matrix)
{
    struct nodes nodes;
    int failure = EXIT_OK;
    if (!numa_nodes_read(run, &nodes))
        failure = numa_lacks_memory(run);
    if (!failure)
        failure = open_sides_and_homes(run, matrix, &nodes);
    if (!failure)
        warn_of_those_left_out(run, &nodes);
    nodes_free(&nodes);
    return failure ? failure : open_pairs(run, matrix);
}

void numa_matrix_close(struct matrix *matrix)
{
    for (size_t i = 0; i < matrix->pair_count; i++)
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

/* ---- memory --------------------------------------------------------------------------------- */

unsigned char *numa_chunk(const struct home *home, uint64_t chunk)
{
    return (unsigned char *)home->pages.base + home->half_bytes + chunk * NUMA_CHUNK_BYTES;
}

/* A word that is read twice or not at all changes the sum of its chunk. */
static void fill_chunks(struct home *home)
{
    for (uint64_t chunk = 0; chunk < home->chunks; chunk++) {
        uint64_t *words = (uint64_t *)numa_chunk(home, chunk), sum = 0;
        for (uint64_t i = 0; i < NUMA_CHUNK_BYTES / sizeof *words; i++) {
            words[i] = (chunk * NUMA_CHUNK_BYTES + i + 1) * 0x9E3779B97F4A7C15u;
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

static int fill(const struct thread *thread, struct home *home)
{
    int failure = pages_touch(thread->run, &home->pages, home->pages.base, 2 * home->half_bytes);
    if (failure || run_stopping(thread->run))
        return failure;
    chase_begin(&home->chase, home->pages.base, home->half_bytes, sizeof(struct node), 1,
                (uint32_t)home->node);
    fill_chunks(home);
    return check_pages(thread, home);
}

int numa_matrix_fill(const struct thread *thread, struct matrix *matrix)
{
    int failure = EXIT_OK;
    for (size_t i = 0; i < matrix->home_count && !failure; i++)
        if (is_mine(thread, matrix, i))
            failure = fill(thread, &matrix->homes[i]);
    return failure;
}

int numa_matrix_verify(const struct thread *thread, const struct matrix *matrix)
{
    int failure = EXIT_OK;
    for (size_t i = 0; i < matrix->home_count && !failure; i++) {
        const struct home *home = &matrix->homes[i];
        if (!is_mine(thread, matrix, i))
            continue;
        failure = check_pages(thread, home);
        if (!failure)
            failure = chase_verify(thread, &home->chase, home->units);
    }
    return failure;
}
