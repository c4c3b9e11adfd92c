#include "numa_sizes.h"

#include "caches.h"
#include "isa.h"
#include "memory.h"
#include "placement.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

const char NUMA_SIZE[] = "size_bytes";

/* As of the other workloads: times the last-level caches of one node's CPUs, and where these are
 * unknown. Of the half that pointers lead through, and of the half that is read. */
static const double AUTO_CACHES = 4, AUTO_HALF_BYTES = 320e6;
static const double AUTO_SHARE = 0.6; /* of the memory that is free */
const double NUMA_USABLE_SHARE = 0.95;
static const double AUTO_LEAST_BYTES = 64 << 20; /* a node with less room is left out */

bool numa_nodes_read(const struct run *run, struct nodes *nodes)
{
    struct cpulist cpus = {.cpus = calloc(run_threads(run), sizeof(int))};
    for (unsigned i = 0; cpus.cpus && i < run_threads(run); i++)
        cpus.cpus[cpus.count++] = run_cpu(run, i);
    bool found = nodes_read(nodes, &cpus, "/proc", "/sys");
    cpulist_free(&cpus);
    return found;
}

bool numa_has_room(const struct numa_node *node, double bytes, double share)
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
        count += numa_has_room(&nodes->nodes[i], bytes, share);
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

const char *numa_unsupported(const struct run *run)
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
        if (numa_has_room(&nodes->nodes[i], least, AUTO_SHARE) && !isnan(left))
            size = fmin(size, AUTO_SHARE * left);
    }
    return floor(size / NUMA_GRANULE) * NUMA_GRANULE;
}

static int check_given_size(struct run *run)
{
    if (run_choice(run, NUMA_SIZE))
        return EXIT_OK;
    uint64_t size = run_count(run, NUMA_SIZE);
    if (size % NUMA_GRANULE == 0)
        return EXIT_OK;
    run_reason(run,
               "--size-bytes %" PRIu64 ": it is divided into two parts of whole huge pages: take "
               "%" PRIu64 " or %" PRIu64,
               size, size / NUMA_GRANULE * NUMA_GRANULE, (size / NUMA_GRANULE + 1) * NUMA_GRANULE);
    return EXIT_USAGE;
}

static int check_memory(struct run *run, const struct nodes *nodes)
{
    struct memory_budget budget;
    double caches = caches_of_a_node(nodes);
    char set[MEMORY_WORDS], llc[MEMORY_WORDS];
    bool given = !run_choice(run, NUMA_SIZE);
    if (!run_memory_budget(run, &budget))
        budget.bytes = INFINITY;
    double size =
        given ? (double)run_count(run, NUMA_SIZE) : automatic_size(nodes, caches, budget.bytes);
    double all = size * (double)count_homes(nodes, size, NUMA_USABLE_SHARE);
    if (size < NUMA_GRANULE || all > NUMA_USABLE_SHARE * budget.bytes) {
        char needed[MEMORY_WORDS], usable[MEMORY_WORDS];
        run_reason(run,
                   "%s of each NUMA node's memory are needed, and %s may be taken altogether "
                   "(95 %% of %s): use a smaller --size-bytes",
                   memory_in_words(fmax(size, NUMA_GRANULE), needed),
                   memory_in_words(NUMA_USABLE_SHARE * budget.bytes, usable), budget.limit);
        return EXIT_RESOURCE;
    }
    if (!given)
        run_set_count(run, NUMA_SIZE, (uint64_t)size);
    if (size / 2 < AUTO_CACHES * caches)
        run_warning(run, "cache_influenced",
                    "half of the %s on each node is less than 4 times the last-level caches of a "
                    "node's CPUs (%s): part of it stays in them",
                    memory_in_words(size, set), memory_in_words(caches, llc));
    return EXIT_OK;
}

int numa_check(struct run *run)
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
    if (numa_nodes_read(run, &nodes) && are_several_pairs(&nodes)) {
        failure = check_memory(run, &nodes);
    } else { /* with the CPUs that were chosen */
        run_reason(run, "%s", ONE_PAIR);
        failure = EXIT_UNSUPPORTED;
    }
    nodes_free(&nodes);
    return failure;
}
