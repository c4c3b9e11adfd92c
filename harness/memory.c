#define _GNU_SOURCE
#include "memory.h"

#include "cgroup.h"
#include "run.h"
#include "textfile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const double KIB = 1024;

const char *memory_in_words(double bytes, char text[MEMORY_WORDS])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    for (; bytes >= KIB && unit + 1 < sizeof units / sizeof *units; unit++)
        bytes /= KIB;
    snprintf(text, MEMORY_WORDS, "%.4g %s", bytes, units[unit]);
    return text;
}

/* The text behind "key" at the start of a line of a file; false without one. */
static bool line_behind(const char *path, const char *key, char *text, size_t size)
{
    char line[512];
    bool found = false;
    FILE *stream = fopen(path, "re");
    while (stream && !found && fgets(line, sizeof line, stream)) {
        found = !strncmp(line, key, strlen(key));
        if (found)
            snprintf(text, size, "%s", line + strlen(key));
    }
    if (stream)
        fclose(stream);
    return found;
}

/* A line "key  1234 kB", in bytes; NaN without one. */
static double kilobytes(const char *path, const char *key)
{
    char text[64];
    return line_behind(path, key, text, sizeof text) ? strtod(text, NULL) * KIB : NAN;
}

static void lower_to(struct memory_budget *budget, double bytes, const char *format,
                     const char *where)
{
    if (isnan(bytes) || bytes >= budget->bytes)
        return;
    budget->bytes = fmax(bytes, 0);
    snprintf(budget->limit, sizeof budget->limit, format, where);
}

/* ---- what can be filled --------------------------------------------------------------------- */

/* MemAvailable: what can be had without swapping, page cache that gives way included (proc(5)). */
static void lower_to_available(struct memory_budget *left, const char *proc)
{
    char path[300];
    snprintf(path, sizeof path, "%s/meminfo", proc);
    lower_to(left, kilobytes(path, "MemAvailable:"), "%s", "MemAvailable of /proc/meminfo");
}

bool memory_nodes_allowed(struct cpulist *nodes, const char *proc)
{
    char path[300], list[512];
    snprintf(path, sizeof path, "%s/self/status", proc);
    if (!line_behind(path, "Mems_allowed_list:", list, sizeof list))
        return false;
    char *text = list + strspn(list, " \t");
    text[strcspn(text, "\n")] = '\0';
    return cpulist_parse(text, nodes);
}

double memory_node_left(int node, const char *sys)
{
    static const char *const kinds[] = {"MemFree:", "Inactive(file):", "SReclaimable:"};
    char path[300], key[64];
    double bytes = 0;
    snprintf(path, sizeof path, "%s/devices/system/node/node%d/meminfo", sys, node);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        snprintf(key, sizeof key, "Node %d %s", node, kinds[i]);
        bytes += kilobytes(path, key);
    }
    return bytes;
}

void memory_budget_bind(struct memory_budget *budget, int node, const char *sys)
{
    char name[16];
    snprintf(name, sizeof name, "%d", node);
    lower_to(budget, memory_node_left(node, sys), "free memory of NUMA node %s", name);
}

/* Whether the cpuset leaves nodes out; without that, MemAvailable says all there is to say. */
static bool nodes_are_missing(const struct cpulist *allowed, const char *sys)
{
    char path[300], text[512];
    struct cpulist present;
    snprintf(path, sizeof path, "%s/devices/system/node/has_memory", sys);
    if (!textfile_read(path, text, sizeof text) || !cpulist_parse(text, &present))
        return false;
    bool missing = false;
    for (size_t i = 0; i < present.count; i++)
        missing |= !cpulist_contains(allowed, present.cpus[i]);
    cpulist_free(&present);
    return missing;
}

static void lower_to_nodes(struct memory_budget *left, const char *proc, const char *sys)
{
    struct cpulist allowed;
    char names[64];
    double bytes = 0;
    if (!memory_nodes_allowed(&allowed, proc))
        return;
    if (nodes_are_missing(&allowed, sys)) {
        for (size_t i = 0; i < allowed.count; i++)
            bytes += memory_node_left(allowed.cpus[i], sys);
        cpulist_format(&allowed, names, sizeof names);
        lower_to(left, bytes, "free memory of NUMA node %s, all that the cpuset allows", names);
    }
    cpulist_free(&allowed);
}

bool memory_left_read(struct memory_budget *left, const char *proc, const char *sys)
{
    char self[300], source[sizeof left->limit];
    double bytes;
    *left = (struct memory_budget){.bytes = INFINITY};
    lower_to_available(left, proc);
    lower_to_nodes(left, proc, sys);
    snprintf(self, sizeof self, "%s/self", proc);
    if (cgroup_memory_left(self, &bytes, source, sizeof source))
        lower_to(left, bytes, "%s", source);
    return isfinite(left->bytes);
}

/* ---- what can be reserved ------------------------------------------------------------------- */

static void lower_to_rlimit(struct memory_budget *budget, int resource, const char *used_key,
                            const char *proc, const char *name)
{
    char path[300];
    struct rlimit limit;
    snprintf(path, sizeof path, "%s/self/status", proc);
    if (getrlimit((__rlimit_resource_t)resource, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return;
    lower_to(budget, (double)limit.rlim_cur - kilobytes(path, used_key), "%s", name);
}

/* vm.overcommit_memory 2: what is reserved counts, whether or not it is touched. */
static void lower_to_commit_limit(struct memory_budget *budget, const char *proc)
{
    char path[300];
    double mode;
    snprintf(path, sizeof path, "%s/sys/vm/overcommit_memory", proc);
    if (!textfile_number(path, &mode) || mode != 2)
        return;
    snprintf(path, sizeof path, "%s/meminfo", proc);
    lower_to(budget, kilobytes(path, "CommitLimit:") - kilobytes(path, "Committed_AS:"), "%s",
             "CommitLimit of /proc/meminfo, vm.overcommit_memory is 2");
}

bool memory_budget_read(struct memory_budget *budget, const char *proc, const char *sys)
{
    memory_left_read(budget, proc, sys);
    lower_to_rlimit(budget, RLIMIT_AS, "VmSize:", proc, "RLIMIT_AS (ulimit -v)");
    lower_to_rlimit(budget, RLIMIT_DATA, "VmData:", proc, "RLIMIT_DATA (ulimit -d)");
    lower_to_commit_limit(budget, proc);
    return isfinite(budget->bytes);
}

bool run_memory_budget(const struct run *run, struct memory_budget *budget)
{
    (void)run; /* there is one in a process */
    return memory_budget_read(budget, "/proc", "/sys");
}
