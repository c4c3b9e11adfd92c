#define _GNU_SOURCE
#include "numa.h"

#include "cpulist.h"
#include "memory.h"
#include "textfile.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    MPOL_BIND_MODE = 2, /* numaif.h */
    NODES_MAX = 1024,
    BITS = 8 * sizeof(unsigned long),
    PAGES_QUERIED = 64, /* of each thread's part */
};

/* What is used of libnuma. */
struct libnuma {
    int (*available)(void);
    long (*mbind)(void *, unsigned long, int, const unsigned long *, unsigned long, unsigned);
    long (*move_pages)(int, unsigned long, void **, const int *, int *, int);
};

static bool is_local(const struct run *run)
{
    return run_choice(run, "memory_node") != NULL;
}

static unsigned node_of(const struct run *run)
{
    return (unsigned)run_count(run, "memory_node");
}

/* ---- libnuma -------------------------------------------------------------------------------- */

#if defined(STATIC_PROGRAM)
static bool load(struct libnuma *numa)
{
    (void)numa;
    return false;
}
#else
static bool find(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

/* Never unloaded. */
static bool load(struct libnuma *numa)
{
    void *library = dlopen("libnuma.so.1", RTLD_NOW);
    return library && find(library, "numa_available", &numa->available) &&
           find(library, "mbind", &numa->mbind) && find(library, "move_pages", &numa->move_pages) &&
           numa->available() >= 0;
}
#endif

/* ---- nodes ---------------------------------------------------------------------------------- */

int numa_check(struct run *run)
{
    struct cpulist nodes;
    char allowed[256] = "0";
    if (is_local(run))
        return EXIT_OK;
    bool known = memory_nodes_allowed(&nodes, "/proc"), found = !known;
    if (known) {
        cpulist_format(&nodes, allowed, sizeof allowed);
        found = cpulist_contains(&nodes, (int)node_of(run));
        cpulist_free(&nodes);
    }
    if (found)
        return EXIT_OK;
    run_reason(run,
               "--memory-node %u: this process may use memory of the NUMA nodes %s: take one "
               "of them, or local",
               node_of(run), allowed);
    return EXIT_USAGE;
}

static bool is_on(int cpu, int node)
{
    char path[96];
    struct stat status;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/node%d", cpu, node);
    return stat(path, &status) == 0;
}

/* Where a thread's part is to be; -1: unknown. */
static int node_wanted(const struct run *run, unsigned thread)
{
    if (!is_local(run))
        return (int)node_of(run);
    for (int node = 0; node < NODES_MAX; node++)
        if (is_on(run_cpu(run, thread), node))
            return node;
    return -1;
}

static bool are_several(void)
{
    char text[256];
    struct cpulist nodes;
    if (!textfile_read("/sys/devices/system/node/has_memory", text, sizeof text) ||
        !cpulist_parse(text, &nodes))
        return false;
    bool several = nodes.count > 1;
    cpulist_free(&nodes);
    return several;
}

/* ---- binding -------------------------------------------------------------------------------- */

static int cannot_bind(const struct thread *thread, const char *why)
{
    unsigned node = node_of(thread->run);
    /* First touch by a thread that is there puts the pages there, too. */
    if (!is_on(thread->cpu, (int)node)) {
        run_reason(thread->run,
                   "--memory-node %u: the arrays cannot be bound to it (%s), and CPU %d is not on "
                   "it: in a container add CAP_SYS_NICE, install libnuma1, or use --memory-node "
                   "local",
                   node, why, thread->cpu);
        return EXIT_RESOURCE;
    }
    if (thread->index == 0)
        run_warning(thread->run, "first_touch_only",
                    "the arrays could not be bound to NUMA node %u (%s): they lie there by first "
                    "touch, since the threads are on it",
                    node, why);
    return EXIT_OK;
}

int numa_bind(const struct thread *thread, void *at, size_t bytes)
{
    struct libnuma numa;
    unsigned long mask[NODES_MAX / BITS] = {0};
    if (is_local(thread->run))
        return EXIT_OK;
    if (!load(&numa))
        return cannot_bind(thread, "there is no libnuma.so.1, or it finds no NUMA in this kernel");
    unsigned node = node_of(thread->run);
    mask[node / BITS] = 1UL << node % BITS;
    if (numa.mbind(at, bytes, MPOL_BIND_MODE, mask, NODES_MAX + 1, 0) == 0)
        return EXIT_OK;
    return cannot_bind(thread, strerror(errno));
}

/* ---- where the pages are -------------------------------------------------------------------- */

struct findings {
    unsigned known, elsewhere; /* pages */
};

/* Pages at equal distances of a thread's part. */
static void look_up(const struct libnuma *numa, const char *part, size_t bytes, int wanted,
                    struct findings *found)
{
    void *pages[PAGES_QUERIED];
    int nodes[PAGES_QUERIED];
    for (unsigned i = 0; i < PAGES_QUERIED; i++)
        pages[i] = (void *)(part + bytes / PAGES_QUERIED * i);
    if (wanted < 0 || numa->move_pages(0, PAGES_QUERIED, pages, NULL, nodes, 0))
        return;
    for (unsigned i = 0; i < PAGES_QUERIED; i++)
        if (nodes[i] >= 0) {
            found->known++;
            found->elsewhere += nodes[i] != wanted;
        }
}

static void warn_of_pages_elsewhere(const struct run *run, const struct findings *found)
{
    char wanted[64] = "the node of the thread that works on them";
    if (!is_local(run))
        snprintf(wanted, sizeof wanted, "NUMA node %u", node_of(run));
    run_warning(
        run, "memory_elsewhere",
        "%u of %u pages that were looked up are not on %s, where they were to be: that node "
        "had too little memory, or the cpuset allows none of it",
        found->elsewhere, found->known, wanted);
}

void numa_inspect(struct run *run, const void *base, size_t step, size_t bytes)
{
    struct libnuma numa;
    struct findings found = {0};
    bool loaded = load(&numa);
    for (unsigned thread = 0; loaded && thread < run_threads(run); thread++)
        look_up(&numa, (const char *)base + thread * step, bytes, node_wanted(run, thread), &found);
    if (found.elsewhere)
        warn_of_pages_elsewhere(run, &found);
    else if (found.known == 0 && are_several())
        run_warning(run, "nodes_unknown",
                    "it is unknown on which NUMA nodes the arrays lie: install libnuma1, and in a "
                    "container add CAP_SYS_NICE");
}
