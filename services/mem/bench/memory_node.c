#include "memory_node.h"

#include "cpulist.h"
#include "memory.h"
#include "nodes.h"
#include "textfile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { PAGES_QUERIED = 64 }; /* of each thread's part */

static bool is_local(const struct run *run)
{
    return run_choice(run, "memory_node") != NULL;
}

static unsigned node_of(const struct run *run)
{
    return (unsigned)run_count(run, "memory_node");
}

/* ---- nodes ---------------------------------------------------------------------------------- */

int memory_node_check(struct run *run)
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
                   "it: in a container add CAP_SYS_NICE, or use --memory-node local",
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

int memory_node_bind(const struct thread *thread, void *at, size_t bytes)
{
    if (is_local(thread->run) || nodes_bind(at, bytes, (int)node_of(thread->run)) == 0)
        return EXIT_OK;
    return cannot_bind(thread, strerror(errno));
}

/* ---- where the pages are -------------------------------------------------------------------- */

struct findings {
    unsigned known, elsewhere; /* pages */
};

/* Pages at equal distances of a thread's part. */
static void look_up(const char *part, size_t bytes, int wanted, struct findings *found)
{
    void *pages[PAGES_QUERIED];
    int nodes[PAGES_QUERIED];
    for (unsigned i = 0; i < PAGES_QUERIED; i++)
        pages[i] = (void *)(part + bytes / PAGES_QUERIED * i);
    if (wanted < 0 || nodes_of_pages(pages, PAGES_QUERIED, nodes))
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

void memory_node_inspect(struct run *run, const void *base, size_t step, size_t bytes)
{
    struct findings found = {0};
    for (unsigned thread = 0; thread < run_threads(run); thread++)
        look_up((const char *)base + thread * step, bytes, node_wanted(run, thread), &found);
    if (found.elsewhere)
        warn_of_pages_elsewhere(run, &found);
    else if (found.known == 0 && are_several())
        run_warning(run, "nodes_unknown",
                    "it is unknown on which NUMA nodes the arrays lie: in a container "
                    "add CAP_SYS_NICE");
}
