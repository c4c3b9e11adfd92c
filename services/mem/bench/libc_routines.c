#define _GNU_SOURCE
#include "libc_routines.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    double threshold_bytes;
    char path[512], detail[256];
    struct library library;
} state;

/* ---- the threshold -------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define TUNABLE "glibc.cpu.x86_non_temporal_threshold: "

static int find_linker(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_INTERP && !info->dlpi_name[0])
            *(const char **)found = (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return 0;
}

/* Starts the dynamic linker, which lists what it has tuned; a descriptor to read from, or -1. */
static int list_tunables(const char *linker, pid_t *child)
{
    char *const arguments[] = {(char *)linker, (char *)"--list-tunables", NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];
    if (pipe(ends))
        return -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", 1 /* O_WRONLY */, 0);
    int error = posix_spawn(child, linker, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (!error)
        return ends[0];
    close(ends[0]);
    return -1;
}

/* No other way leads to it: glibc exports neither the variable nor the tunable, whose number
 * changes from version to version. It takes a millisecond, once. 0: unknown. */
static double nt_threshold_bytes(void)
{
    const char *linker = NULL;
    char line[256];
    double bytes = 0;
    pid_t child;
    dl_iterate_phdr(find_linker, &linker);
    int end = linker ? list_tunables(linker, &child) : -1;
    if (end < 0)
        return 0;
    FILE *stream = fdopen(end, "r");
    while (stream && fgets(line, sizeof line, stream))
        if (!strncmp(line, TUNABLE, strlen(TUNABLE)))
            bytes = strtod(line + strlen(TUNABLE), NULL);
    if (stream)
        fclose(stream);
    waitpid(child, NULL, 0);
    return bytes;
}
#else
static double nt_threshold_bytes(void)
{
    return 0;
}
#endif

/* ---- the library ---------------------------------------------------------------------------- */

/* The file that memcpy() comes from; of a static program the program itself. */
static void find_path(void)
{
    void *(*routine)(void *, const void *, size_t) = memcpy;
    void *address;
    Dl_info info;
    memcpy(&address, &routine, sizeof address);
    char *real = dladdr(address, &info) ? realpath(info.dli_fname, NULL) : NULL;
    snprintf(state.path, sizeof state.path, "%s", real ? real : "libc.so.6");
    free(real);
}

const struct library *libc_routines(void)
{
    if (state.library.name)
        return &state.library;
    state.threshold_bytes = nt_threshold_bytes();
    find_path();
    if (state.threshold_bytes > 0)
        snprintf(state.detail, sizeof state.detail,
                 "memcpy() and memset() bypass the caches from %.0f bytes on "
                 "(x86_non_temporal_threshold)",
                 state.threshold_bytes);
    else
        snprintf(state.detail, sizeof state.detail,
                 "memcpy() and memset(); it does not tell from which size on they bypass the "
                 "caches");
    state.library = (struct library){"glibc", gnu_get_libc_version(), state.path, state.detail};
    return &state.library;
}

double libc_nt_threshold(void)
{
    return libc_routines() ? state.threshold_bytes : 0;
}
