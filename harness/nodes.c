#define _GNU_SOURCE
#include "nodes.h"

#include "memory.h"
#include "textfile.h"

#include <linux/mempolicy.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LIST_BYTES = 1 << 16, BITS = 8 * sizeof(unsigned long) };

/* ---- what there is -------------------------------------------------------------------------- */

/* A list of the directory of nodes; an empty one where the file is empty, missing or no list. */
static struct cpulist list_of(const char *sys, const char *file)
{
    char path[300], *text = malloc(LIST_BYTES);
    struct cpulist list = {0};
    snprintf(path, sizeof path, "%s/devices/system/node/%s", sys, file);
    if (text && textfile_read(path, text, LIST_BYTES))
        cpulist_parse(text, &list);
    free(text);
    return list;
}

/* Leaves those of `list` that are among `others`. */
static void intersect(struct cpulist *list, const struct cpulist *others)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (cpulist_contains(others, list->cpus[i]))
            list->cpus[kept++] = list->cpus[i];
    list->count = kept;
}

static struct numa_node node_of(int number, const struct cpulist *cpus, bool has_memory,
                                const char *sys)
{
    char file[64];
    snprintf(file, sizeof file, "node%d/cpulist", number);
    struct numa_node node = {
        .number = number, .cpus = list_of(sys, file), .has_memory = has_memory};
    intersect(&node.cpus, cpus);
    return node;
}

/* Where the kernel does not say what is allowed, everything is. */
static bool is_allowed(const struct cpulist *allowed, bool known, int node)
{
    return !known || cpulist_contains(allowed, node);
}

bool nodes_read(struct nodes *nodes, const struct cpulist *cpus, const char *proc, const char *sys)
{
    struct cpulist online = list_of(sys, "online"), filled = list_of(sys, "has_memory"), allowed;
    bool known = memory_nodes_allowed(&allowed, proc);
    *nodes = (struct nodes){.nodes = calloc(online.count + 1, sizeof *nodes->nodes),
                            .barred = {.cpus = calloc(online.count + 1, sizeof(int))}};
    bool found = nodes->nodes && nodes->barred.cpus && online.count > 0;
    for (size_t i = 0; found && i < online.count; i++) {
        int number = online.cpus[i];
        bool is_filled = cpulist_contains(&filled, number);
        bool has_memory = is_filled && is_allowed(&allowed, known, number);
        struct numa_node node = node_of(number, cpus, has_memory, sys);
        if (is_filled && !has_memory)
            nodes->barred.cpus[nodes->barred.count++] = number;
        if (has_memory || node.cpus.count > 0)
            nodes->nodes[nodes->count++] = node;
        else
            cpulist_free(&node.cpus);
    }
    cpulist_free(&online);
    cpulist_free(&filled);
    if (known)
        cpulist_free(&allowed);
    return found;
}

void nodes_free(struct nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++)
        cpulist_free(&nodes->nodes[i].cpus);
    free(nodes->nodes);
    cpulist_free(&nodes->barred);
    *nodes = (struct nodes){0};
}

/* A row of the table is in the order of the nodes that are online. */
double nodes_distance(int from, int to, const char *sys)
{
    struct cpulist online = list_of(sys, "online");
    char path[300], text[8192], *at = text;
    double distance = NAN;
    snprintf(path, sizeof path, "%s/devices/system/node/node%d/distance", sys, from);
    if (!textfile_read(path, text, sizeof text))
        online.count = 0;
    for (size_t i = 0; i < online.count; i++) {
        char *behind;
        long value = strtol(at, &behind, 10);
        if (behind == at)
            break;
        at = behind;
        if (online.cpus[i] == to)
            distance = (double)value;
    }
    cpulist_free(&online);
    return distance;
}

/* ---- where memory lies ---------------------------------------------------------------------- */

int nodes_bind(void *at, size_t bytes, int node)
{
    unsigned long mask[NODES_MAX / BITS] = {0};
    mask[(unsigned)node / BITS] = 1UL << (unsigned)node % BITS;
    /* The kernel reads one bit fewer than this number. */
    return (int)syscall(SYS_mbind, at, bytes, MPOL_BIND, mask, (unsigned long)NODES_MAX + 1, 0);
}

int nodes_of_pages(void *const *pages, size_t count, int *nodes)
{
    if (syscall(SYS_move_pages, 0, count, pages, NULL, nodes, 0) == 0)
        return 0;
    /* Docker's seccomp profile never allows that call, and the next one with CAP_SYS_NICE. */
    for (size_t i = 0; i < count; i++)
        if (syscall(SYS_get_mempolicy, &nodes[i], NULL, 0UL, pages[i], MPOL_F_NODE | MPOL_F_ADDR))
            return -1;
    return 0;
}
