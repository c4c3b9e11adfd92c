#include "caches.h"

#include "run.h"
#include "textfile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INDEXES_MAX = 16, SHARED_MAX = 1024 };

/* One index of a CPU's cache directory. */
struct cache {
    int level;
    double bytes;
    bool data; /* or of both kinds */
    char shared[SHARED_MAX];
};

static bool cache_file(const char *directory, const char *name, char *text, size_t size)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return textfile_read(path, text, size);
}

/* "32768K", "32M", "1G". */
static double size_of(const char *text)
{
    char *end;
    double bytes = strtod(text, &end);
    switch (*end) {
    case 'K':
        return bytes * 0x1p10;
    case 'M':
        return bytes * 0x1p20;
    case 'G':
        return bytes * 0x1p30;
    default:
        return bytes;
    }
}

static bool cache_read(struct cache *cache, const char *sys, int cpu, int index)
{
    char directory[300], text[64];
    snprintf(directory, sizeof directory, "%s/devices/system/cpu/cpu%d/cache/index%d", sys, cpu,
             index);
    if (!cache_file(directory, "level", text, sizeof text))
        return false;
    cache->level = atoi(text);
    cache->data =
        cache_file(directory, "type", text, sizeof text) && strcmp(text, "Instruction") != 0;
    cache->bytes = cache_file(directory, "size", text, sizeof text) ? size_of(text) : 0;
    if (!cache_file(directory, "shared_cpu_list", cache->shared, sizeof cache->shared))
        snprintf(cache->shared, sizeof cache->shared, "%d", cpu);
    return true;
}

/* The data cache of a CPU at a level, 0: the last one. */
static bool cache_of(struct cache *found, const char *sys, int cpu, int level)
{
    struct cache cache;
    bool any = false;
    for (int index = 0; index < INDEXES_MAX && cache_read(&cache, sys, cpu, index); index++) {
        if (!cache.data || (level && cache.level != level) || (any && cache.level < found->level))
            continue;
        *found = cache;
        any = true;
    }
    return any;
}

/* Whether this CPU is the first of the list that shares the cache. */
static bool counts_for(const struct cache *cache, const struct cpulist *cpus, size_t which)
{
    struct cpulist sharing;
    if (!cpulist_parse(cache->shared, &sharing))
        return true;
    bool first = true;
    for (size_t i = 0; i < which; i++)
        first &= !cpulist_contains(&sharing, cpus->cpus[i]);
    cpulist_free(&sharing);
    return first;
}

static double sum_of_last(const struct cpulist *cpus, const char *sys)
{
    struct cache cache;
    double sum = 0;
    for (size_t i = 0; i < cpus->count; i++)
        if (cache_of(&cache, sys, cpus->cpus[i], 0) && counts_for(&cache, cpus, i))
            sum += cache.bytes;
    return sum;
}

/* Larger of what the C library knows of two names; it says 0 or -1 where it knows nothing. */
static double believed(int name, int other)
{
    return fmax(fmax((double)sysconf(name), (double)sysconf(other)), 0);
}

static double of_core(const struct cpulist *cpus, const char *sys, int level, int name)
{
    struct cache cache;
    if (cpus->count && cache_of(&cache, sys, cpus->cpus[0], level) && cache.bytes > 0)
        return cache.bytes;
    return believed(name, name);
}

void caches_read(struct caches *caches, const struct cpulist *cpus, unsigned sockets,
                 const char *sys)
{
    double last = believed(_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL4_CACHE_SIZE);
    if (last == 0)
        last = believed(_SC_LEVEL2_CACHE_SIZE, _SC_LEVEL2_CACHE_SIZE);
    *caches = (struct caches){
        .llc_sysfs = sum_of_last(cpus, sys),
        .llc_getconf = last * sockets,
        .l1d = of_core(cpus, sys, 1, _SC_LEVEL1_DCACHE_SIZE),
        .l2 = of_core(cpus, sys, 2, _SC_LEVEL2_CACHE_SIZE),
    };
    caches->llc = fmax(caches->llc_sysfs, caches->llc_getconf);
}

void run_caches(const struct run *run, struct caches *caches)
{
    /* Threads go round the CPUs: the first turn has them all. */
    const struct cpulist cpus = {.cpus = run->placement.cpus.cpus, .count = run->cpus};
    caches_read(caches, &cpus, run->placement.sockets, "/sys");
}
