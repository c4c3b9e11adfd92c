/* Preloaded into a process: files whose paths begin with one of those in HOSTBENCH_TEST_HIDDEN,
 * separated by colons, are not there, as on a kernel or in a sandbox that does not have them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_hidden(const char *path)
{
    const char *prefix = getenv("HOSTBENCH_TEST_HIDDEN");
    while (prefix && *prefix) {
        size_t length = strcspn(prefix, ":");
        if (length && !strncmp(path, prefix, length)) {
            errno = ENOENT;
            return true;
        }
        prefix += length + (prefix[length] == ':');
    }
    return false;
}

typedef int opener(const char *, int, ...);

static int open_unless_hidden(const char *name, const char *path, int flags, va_list more)
{
    /* O_TMPFILE has more bits than the one that asks for a mode. */
    bool makes = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
    mode_t mode = makes ? va_arg(more, mode_t) : 0;
    if (is_hidden(path))
        return -1;
    return ((opener *)dlsym(RTLD_NEXT, name))(path, flags, mode);
}

#define OPEN(NAME)                                                    \
    int NAME(const char *path, int flags, ...)                        \
    {                                                                 \
        va_list more;                                                 \
        va_start(more, flags);                                        \
        int opened = open_unless_hidden(#NAME, path, flags, more);    \
        va_end(more);                                                 \
        return opened;                                                \
    }
OPEN(open)
OPEN(open64)

#define FOPEN(NAME)                                                   \
    FILE *NAME(const char *restrict path, const char *restrict mode)  \
    {                                                                 \
        if (is_hidden(path))                                          \
            return NULL;                                              \
        return ((FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, #NAME))(path, mode); \
    }
FOPEN(fopen)
FOPEN(fopen64)
