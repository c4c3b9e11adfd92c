#include "memory.h"

#include "cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MemAvailable: what can be had without swapping, page cache that gives way included (proc(5)). */
static bool available_bytes(const char *proc, double *bytes)
{
    char path[300], line[256];
    bool found = false;
    snprintf(path, sizeof path, "%s/meminfo", proc);
    FILE *stream = fopen(path, "re");
    while (stream && !found && fgets(line, sizeof line, stream)) {
        found = !strncmp(line, "MemAvailable:", strlen("MemAvailable:"));
        if (found)
            *bytes = strtod(line + strlen("MemAvailable:"), NULL) * 1024;
    }
    if (stream)
        fclose(stream);
    return found;
}

bool memory_left_read(struct memory_left *left, const char *proc)
{
    char self[300], source[sizeof left->source];
    double group_bytes;
    bool known = available_bytes(proc, &left->bytes);
    snprintf(left->source, sizeof left->source, "MemAvailable of /proc/meminfo");
    snprintf(self, sizeof self, "%s/self", proc);
    if (!cgroup_memory_left(self, &group_bytes, source, sizeof source) ||
        (known && left->bytes <= group_bytes))
        return known;
    left->bytes = group_bytes;
    snprintf(left->source, sizeof left->source, "%s", source);
    return true;
}
