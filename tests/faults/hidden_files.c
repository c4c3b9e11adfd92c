/* Preloaded into a process: files whose paths begin with one of those in HOSTBENCH_TEST_HIDDEN,
 * separated by colons, are not there, as on a kernel or in a sandbox that does not have them. Files
 * below the directory HOSTBENCH_TEST_PLANTED take the place of those of the same path. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* The file that is to be opened in the place of this one: in `room`, or itself. */
static const char *planted(const char *path, char room[PATH_MAX])
{
    const char *root = getenv("HOSTBENCH_TEST_PLANTED");
    if (!root || path[0] != '/' || snprintf(room, PATH_MAX, "%s%s", root, path) >= PATH_MAX)
        return path;
    return access(room, F_OK) == 0 ? room : path;
}

typedef int opener(const char *, int, ...);

static int open_unless_hidden(const char *name, const char *path, int flags, va_list more)
{
    /* O_TMPFILE has more bits than the one that asks for a mode. */
    bool makes = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
    mode_t mode = makes ? va_arg(more, mode_t) : 0;
    char room[PATH_MAX];
    if (is_hidden(path))
        return -1;
    return ((opener *)dlsym(RTLD_NEXT, name))(planted(path, room), flags, mode);
}

#define OPEN(NAME)                                                                                 \
    int NAME(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list more;                                                                              \
        va_start(more, flags);                                                                     \
        int opened = open_unless_hidden(#NAME, path, flags, more);                                 \
        va_end(more);                                                                              \
        return opened;                                                                             \
    }
OPEN(open)
OPEN(open64)

#define FOPEN(NAME)                                                                                \
    FILE *NAME(const char *restrict path, const char *restrict mode)                               \
    {                                                                                              \
        char room[PATH_MAX];                                                                       \
        if (is_hidden(path))                                                                       \
            return NULL;                                                                           \
        return ((FILE * (*)(const char *, const char *))                                           \
                    dlsym(RTLD_NEXT, #NAME))(planted(path, room), mode);                           \
    }
FOPEN(fopen)
FOPEN(fopen64)
