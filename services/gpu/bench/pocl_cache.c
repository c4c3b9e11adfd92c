#define _GNU_SOURCE
#include "pocl_cache.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static bool missing;

/* Found out by trying: root may write everywhere, but not in /proc. */
static bool takes_files(const char *directory)
{
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/.hostbench-XXXXXX", directory) < (int)sizeof path &&
           mkdtemp(path) && !rmdir(path);
}

/* Whether files can be made and executed in a directory that exists. */
static bool takes_programs(const char *directory)
{
    struct statvfs mount;
    return !statvfs(directory, &mount) && !(mount.f_flag & (ST_RDONLY | ST_NOEXEC)) &&
           takes_files(directory);
}

/* The same of one that may not exist yet: then its nearest parent that does decides. */
static bool usable(const char *path)
{
    char at[PATH_MAX];
    struct stat status;
    if (path[0] != '/' || snprintf(at, sizeof at, "%s", path) >= (int)sizeof at)
        return false;
    for (char *slash; stat(at, &status) && errno == ENOENT; *slash = '\0') {
        slash = strrchr(at, '/');
        if (slash == at)
            return takes_programs("/");
    }
    return takes_programs(at);
}

/* Where PoCL compiles when it is left alone: its own rules. */
static bool usable_as_it_is(void)
{
    const char *own = getenv("POCL_CACHE_DIR"), *cache = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    char path[PATH_MAX];
    if (own)
        return usable(own);
    if (cache && *cache)
        return usable(cache);
    if (!home || !*home)
        return false;
    return snprintf(path, sizeof path, "%s/.cache", home) < (int)sizeof path && usable(path);
}

/* A name that is the same in each trial, so that nothing is compiled twice and nothing piles up.
 * What somebody else made under it is left alone. */
static bool take(const char *parent)
{
    char path[PATH_MAX];
    struct stat status;
    if (!parent || !takes_programs(parent) ||
        snprintf(path, sizeof path, "%s/hostbench-pocl-%u", parent, (unsigned)geteuid()) >=
            (int)sizeof path)
        return false;
    if (mkdir(path, S_IRWXU) && errno != EEXIST)
        return false;
    if (lstat(path, &status) || !S_ISDIR(status.st_mode) || status.st_uid != geteuid() ||
        status.st_mode & (S_IRWXG | S_IRWXO) || !takes_programs(path))
        return false;
    return !setenv("POCL_CACHE_DIR", path, 1);
}

void pocl_cache_prepare(void)
{
    missing = !usable_as_it_is() && !take(getenv("TMPDIR")) && !take("/tmp") && !take("/var/tmp") &&
              !take("/dev/shm");
}

const char *pocl_cache_missing(void)
{
    return missing ? "PoCL has no directory to compile in: set POCL_CACHE_DIR to one that can be "
                     "written to, on a file system that is not mounted noexec"
                   : NULL;
}
