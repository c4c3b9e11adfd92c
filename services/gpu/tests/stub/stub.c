#define _GNU_SOURCE
#include "stub.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 128 };

struct counted {
    const char *name;
    long count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct counted calls[NAMES_MAX], kept[NAMES_MAX], largest[NAMES_MAX];

static struct counted *entry(struct counted *all, const char *name)
{
    for (int i = 0; i < NAMES_MAX; i++) {
        if (!all[i].name)
            all[i].name = name;
        if (!strcmp(all[i].name, name))
            return &all[i];
    }
    abort();
}

long stub_number(const char *variable, long otherwise)
{
    const char *value = getenv(variable);
    return value && *value ? strtol(value, NULL, 0) : otherwise;
}

static int failure_of(const char *name, long nth)
{
    const char *at = getenv("STUB_FAIL");
    size_t length = strlen(name);
    for (; at && *at; at = strchr(at, ','), at = at ? at + 1 : NULL) {
        long from, code;
        char plus[2] = "";
        if (strncmp(at, name, length) || at[length] != ':')
            continue;
        if (sscanf(at + length, ":%ld%1[+]:%ld", &from, plus, &code) == 3) {
            if (nth >= from)
                return (int)code;
        } else if (sscanf(at + length, ":%ld:%ld", &from, &code) == 2 && nth == from) {
            return (int)code;
        }
    }
    return 0;
}

int stub_call(const char *name)
{
    pthread_mutex_lock(&lock);
    long nth = ++entry(calls, name)->count;
    pthread_mutex_unlock(&lock);
    return failure_of(name, nth);
}

bool stub_named(const char *variable, const char *name, long *argument, long *nth)
{
    const char *value = getenv(variable);
    size_t length = strlen(name);
    if (!value || strncmp(value, name, length) || value[length] != ':')
        return false;
    if (sscanf(value + length, ":%ld:%ld", argument, nth) == 2)
        return true;
    *argument = 0;
    return sscanf(value + length, ":%ld", nth) == 1;
}

void stub_keep(const char *kind, int change)
{
    pthread_mutex_lock(&lock);
    entry(kept, kind)->count += change;
    pthread_mutex_unlock(&lock);
}

/* Names of kernels go with their modules, and the report comes last. */
void stub_most(const char *named, long bytes)
{
    pthread_mutex_lock(&lock);
    char *name = strdup(named);
    struct counted *found = entry(largest, name);
    if (found->name != name)
        free(name);
    if (bytes > found->count)
        found->count = bytes;
    pthread_mutex_unlock(&lock);
}

void stub_pci(int card, char *text, int size)
{
    snprintf(text, (size_t)size, "0000:%02X:00.0", 0x5a + card);
}

static void __attribute__((destructor)) report(void)
{
    const char *name = getenv("STUB_REPORT");
    FILE *file = name ? fopen(name, "ae") : NULL;
    if (!file)
        return;
    for (int i = 0; i < NAMES_MAX && calls[i].name; i++)
        fprintf(file, "call %s %ld\n", calls[i].name, calls[i].count);
    for (int i = 0; i < NAMES_MAX && kept[i].name; i++)
        fprintf(file, "left %s %ld\n", kept[i].name, kept[i].count);
    for (int i = 0; i < NAMES_MAX && largest[i].name; i++)
        fprintf(file, "most %s %ld\n", largest[i].name, largest[i].count);
    fclose(file);
}
