#define _GNU_SOURCE
#include "placement.h"

#include "textfile.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

struct site {
    int cpu;
    int core;   /* lowest CPU number of its SMT siblings: unique on the host */
    int socket; /* physical package */
    unsigned sibling_rank;
    double capacity; /* relative speed where the kernel tells (hybrid CPUs); else 0 */
};

bool placement_affinity(struct cpulist *affinity)
{
    cpu_set_t *set = CPU_ALLOC(CPULIST_MAX);
    size_t size = CPU_ALLOC_SIZE(CPULIST_MAX);
    affinity->count = 0;
    affinity->cpus = malloc(CPULIST_MAX * sizeof *affinity->cpus);
    bool known = set && affinity->cpus && sched_getaffinity(0, size, set) == 0;
    for (int cpu = 0; known && cpu < CPULIST_MAX; cpu++)
        if (CPU_ISSET_S((size_t)cpu, size, set))
            affinity->cpus[affinity->count++] = cpu;
    CPU_FREE(set);
    if (!known)
        cpulist_free(affinity);
    return known;
}

bool placement_keeps(int thread, int cpu)
{
    cpu_set_t set[CPULIST_MAX / CPU_SETSIZE];
    if (sched_getaffinity(thread, sizeof set, set))
        return true;
    return CPU_COUNT_S(sizeof set, set) == 1 && CPU_ISSET_S((size_t)cpu, sizeof set, set);
}

static int topology_first(const char *sysfs, int cpu, const char *file, int otherwise)
{
    char path[160];
    double value;
    snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/%s", sysfs, cpu, file);
    return textfile_number(path, &value) && value >= 0 ? (int)value : otherwise;
}

static struct site site_of(const char *sysfs, int cpu)
{
    return (struct site){
        .cpu = cpu,
        .core = topology_first(sysfs, cpu, "topology/thread_siblings_list", cpu),
        .socket = topology_first(sysfs, cpu, "topology/physical_package_id", 0),
        .capacity = topology_first(sysfs, cpu, "cpu_capacity", 0),
    };
}

/* Intel's hybrid CPUs name their slow cores in a list instead of giving a capacity. */
static void mark_efficiency_cores(const char *sysfs, struct site *sites, size_t count)
{
    char path[160], text[512];
    struct cpulist slow;
    snprintf(path, sizeof path, "%s/devices/cpu_atom/cpus", sysfs);
    if (!textfile_read(path, text, sizeof text) || !cpulist_parse(text, &slow))
        return;
    for (size_t i = 0; i < count; i++)
        if (cpulist_contains(&slow, sites[i].cpu))
            sites[i].capacity = -1;
    cpulist_free(&slow);
}

static int by_preference(const void *a, const void *b)
{
    const struct site *x = a, *y = b;
    if (x->sibling_rank != y->sibling_rank)
        return x->sibling_rank < y->sibling_rank ? -1 : 1;
    if (x->capacity != y->capacity)
        return x->capacity > y->capacity ? -1 : 1;
    return x->cpu - y->cpu;
}

static struct site *sites_of(const struct cpulist *cpus, const char *sysfs)
{
    struct site *sites = calloc(cpus->count, sizeof *sites);
    if (!sites)
        return NULL;
    for (size_t i = 0; i < cpus->count; i++) {
        sites[i] = site_of(sysfs, cpus->cpus[i]);
        for (size_t j = 0; j < i; j++)
            if (sites[j].core == sites[i].core)
                sites[i].sibling_rank++;
    }
    mark_efficiency_cores(sysfs, sites, cpus->count);
    return sites;
}

static void describe(struct placement *placement, const struct site *used, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bool new_core = true, new_socket = true;
        for (size_t j = 0; j < i; j++) {
            new_core &= used[j].core != used[i].core;
            new_socket &= used[j].socket != used[i].socket;
        }
        placement->cores += new_core;
        placement->sockets += new_socket;
        placement->smt_shared |= !new_core;
    }
}

bool placement_choose(struct placement *placement, unsigned threads, const struct cpulist *given,
                      const char *sysfs)
{
    const struct cpulist *from = given ? given : &placement->affinity;
    struct site *sites = sites_of(from, sysfs);
    placement->cpus.cpus = malloc(threads * sizeof *placement->cpus.cpus);
    if (!sites || !placement->cpus.cpus) {
        free(sites);
        return false;
    }
    if (!given)
        qsort(sites, from->count, sizeof *sites, by_preference);
    for (unsigned i = 0; i < threads; i++)
        placement->cpus.cpus[i] = sites[i % from->count].cpu;
    placement->cpus.count = threads;
    placement->given = given != NULL;
    placement->oversubscribed = threads > from->count;
    describe(placement, sites, threads < from->count ? threads : from->count);
    free(sites);
    return true;
}

struct cpulist placement_left(const struct placement *placement, const char *sysfs)
{
    struct site *sites = sites_of(&placement->affinity, sysfs);
    struct cpulist left = {.cpus = malloc(placement->affinity.count * sizeof *left.cpus)};
    if (!sites || !left.cpus) {
        free(sites);
        cpulist_free(&left);
        return (struct cpulist){0};
    }
    qsort(sites, placement->affinity.count, sizeof *sites, by_preference);
    for (size_t i = 0; i < placement->affinity.count; i++)
        if (!cpulist_contains(&placement->cpus, sites[i].cpu))
            left.cpus[left.count++] = sites[i].cpu;
    free(sites);
    return left;
}

bool placement_siblings(int one, int other, const char *sysfs)
{
    return one != other && site_of(sysfs, one).core == site_of(sysfs, other).core;
}

bool placement_has_siblings(const struct cpulist *cpus, const char *sysfs)
{
    struct site *sites = sites_of(cpus, sysfs);
    bool found = false;
    for (size_t i = 0; sites && i < cpus->count; i++)
        found |= sites[i].sibling_rank > 0;
    free(sites);
    return found;
}

void placement_free(struct placement *placement)
{
    cpulist_free(&placement->affinity);
    cpulist_free(&placement->cpus);
}
