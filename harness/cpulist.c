#include "cpulist.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool append(struct cpulist *list, long cpu)
{
    if (cpu >= CPULIST_MAX || cpulist_contains(list, (int)cpu))
        return false;
    list->cpus[list->count++] = (int)cpu;
    return true;
}

static bool parse_cpu(const char **at, long *cpu)
{
    if (!isdigit((unsigned char)**at))
        return false;
    char *end;
    *cpu = strtol(*at, &end, 10);
    *at = end;
    return *cpu < CPULIST_MAX;
}

static bool parse_ranges(const char *at, struct cpulist *list)
{
    for (;; at++) {
        long first, last;
        if (!parse_cpu(&at, &first))
            return false;
        last = first;
        if (*at == '-') {
            at++;
            if (!parse_cpu(&at, &last) || last < first)
                return false;
        }
        for (long cpu = first; cpu <= last; cpu++)
            if (!append(list, cpu))
                return false;
        if (*at == '\0')
            return true;
        if (*at != ',')
            return false;
    }
}

bool cpulist_parse(const char *text, struct cpulist *list)
{
    list->count = 0;
    list->cpus = malloc(CPULIST_MAX * sizeof *list->cpus);
    if (list->cpus && parse_ranges(text, list))
        return true;
    cpulist_free(list);
    return false;
}

bool cpulist_contains(const struct cpulist *list, int cpu)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->cpus[i] == cpu)
            return true;
    return false;
}

void cpulist_format(const struct cpulist *list, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0, last; i < list->count; i = last + 1) {
        for (last = i; last + 1 < list->count && list->cpus[last + 1] == list->cpus[last] + 1;)
            last++;
        char range[32];
        if (last == i)
            snprintf(range, sizeof range, "%s%d", i ? "," : "", list->cpus[i]);
        else
            snprintf(range, sizeof range, "%s%d-%d", i ? "," : "", list->cpus[i], list->cpus[last]);
        size_t length = strlen(range);
        if (used + length + sizeof "..." > size) {
            strcpy(text + used, "...");
            return;
        }
        memcpy(text + used, range, length + 1);
        used += length;
    }
}

void cpulist_free(struct cpulist *list)
{
    free(list->cpus);
    *list = (struct cpulist){0};
}
