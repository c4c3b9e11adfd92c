#define _GNU_SOURCE
#include "numa.h"

#include "cpulist.h"
#include "memory.h"
#include "working_set.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    MPOL_BIND_MODE = 2, /* numaif.h */
    NODES_MAX = 1024,
    BITS = 8 * sizeof(unsigned long),
    PAGES_ASKED = 64, /* of each thread's part */
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

/* First touch by a thread that is there puts the pages there, too. */
static bool is_on(const struct thread *thread, unsigned node)
{
    char path[96];
    struct stat status;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/node%u", thread->cpu, node);
    return stat(path, &status) == 0;
}

/* ---- binding -------------------------------------------------------------------------------- */

static int cannot_bind(const struct thread *thread, const char *why)
{
    unsigned node = node_of(thread->run);
    if (!is_on(thread, node)) {
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

/* Pages at equal distances of a thread's part: how many the kernel knows, how many are elsewhere. */
static void look_up(const struct libnuma *numa, const struct run *run,
                    const struct working_set *set, unsigned thread, unsigned counts[2])
{
    void *pages[PAGES_ASKED];
    int nodes[PAGES_ASKED];
    size_t bytes = set->arrays * set->array_step;
    for (unsigned i = 0; i < PAGES_ASKED; i++)
        pages[i] = (char *)working_set_array(set, thread, 0) + bytes / PAGES_ASKED * i;
    if (numa->move_pages(0, PAGES_ASKED, pages, NULL, nodes, 0))
        return;
    for (unsigned i = 0; i < PAGES_ASKED; i++)
        if (nodes[i] >= 0) {
            counts[0]++;
            counts[1] += (unsigned)nodes[i] != node_of(run);
        }
}

void numa_inspect(struct run *run, const struct working_set *set)
{
    struct libnuma numa;
    unsigned counts[2] = {0};
    if (is_local(run) || !load(&numa))
        return;
    for (unsigned thread = 0; thread < run_threads(run); thread++)
        look_up(&numa, run, set, thread, counts);
    if (counts[1])
        run_warning(run, "memory_elsewhere",
                    "%u of %u pages that were looked up are not on NUMA node %u, where they were "
                    "to be",
                    counts[1], counts[0], node_of(run));
}
