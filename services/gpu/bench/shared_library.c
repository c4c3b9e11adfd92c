#define _GNU_SOURCE
#include "shared_library.h"

#include <stdio.h>
#include <string.h>

#if defined(STATIC_PROGRAM)

bool shared_library_load(struct shared_library *library, const struct library_symbol *symbols,
                         size_t count, void *table)
{
    (void)symbols, (void)count, (void)table;
    snprintf(library->why, sizeof library->why,
             "this build of the program is static and cannot load %s: use the release build",
             library->file);
    return false;
}

#else
#include <dlfcn.h>

static bool find_symbols(struct shared_library *library, void *handle,
                         const struct library_symbol *symbols, size_t count, void *table)
{
    for (size_t i = 0; i < count; i++) {
        void *address = dlsym(handle, symbols[i].name);
        memcpy((char *)table + symbols[i].offset, &address, sizeof address);
        if (address || symbols[i].optional)
            continue;
        snprintf(library->why, sizeof library->why,
                 "%s has no %s: it is too old or another library of that name", library->file,
                 symbols[i].name);
        return false;
    }
    return true;
}

/* Of a missing file dlerror() gives the file's name and nothing else of use. */
static void report_failure(struct shared_library *library)
{
    const char *error = dlerror();
    if (!error || strstr(error, "No such file"))
        snprintf(library->why, sizeof library->why, "%s is not installed", library->file);
    else
        snprintf(library->why, sizeof library->why, "%s cannot be loaded (%.200s)", library->file,
                 error);
}

bool shared_library_load(struct shared_library *library, const struct library_symbol *symbols,
                         size_t count, void *table)
{
    if (library->tried)
        return library->loaded;
    library->tried = true;
    void *handle = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);
    if (handle)
        library->loaded = find_symbols(library, handle, symbols, count, table);
    else
        report_failure(library);
    return library->loaded;
}
#endif
