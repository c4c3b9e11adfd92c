/* CPU lists as the kernel writes them: "0,2-5". */
#ifndef HOSTBENCH_CPULIST_H
#define HOSTBENCH_CPULIST_H

#include <stdbool.h>
#include <stddef.h>

enum { CPULIST_MAX = 8192 };

struct cpulist {
    int *cpus;
    size_t count;
};

/* In the order given; false when the text is no CPU list or a CPU stands twice. */
bool cpulist_parse(const char *text, struct cpulist *list);
bool cpulist_contains(const struct cpulist *list, int cpu);
/* Writes ascending lists with ranges; cut short with "..." when `size` is too small. */
void cpulist_format(const struct cpulist *list, char *text, size_t size);
void cpulist_free(struct cpulist *list);

#endif
