#define _GNU_SOURCE
#include "opencl_icd.h"

#include "textfile.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(STATIC_PROGRAM)
void opencl_icd_describe(char *text, size_t size)
{
    if (size)
        text[0] = '\0';
}
#else
#include <dlfcn.h>

static bool ends_in_icd(const char *name)
{
    size_t length = strlen(name);
    return length > 4 && !strcmp(name + length - 4, ".icd");
}

/* Where the loaders look: Khronos' and ocl-icd both know the first variable, ocl-icd the second. */
static const char *vendors_directory(void)
{
    static const char *const variables[] = {"OPENCL_VENDOR_PATH", "OCL_ICD_VENDORS"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value && *value)
            return value;
    }
    return "/etc/OpenCL/vendors";
}

/* "file names library, which …", unless the library is there. */
static void describe_file(const char *path, char *text, size_t size)
{
    char content[512] = "";
    size_t used = strlen(text);
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    const char *separator = used ? "; " : "";
    if (!textfile_read(path, content, sizeof content)) {
        snprintf(text + used, size - used, "%s%s cannot be read", separator, name);
        return;
    }
    content[strcspn(content, "\r\n")] = '\0';
    void *library = dlopen(content, RTLD_LAZY | RTLD_LOCAL);
    if (library) {
        dlclose(library);
        return;
    }
    const char *error = dlerror();
    snprintf(text + used, size - used, "%s%s names a driver that cannot be loaded (%s)", separator,
             name, error ? error : content);
}

/* Whether there was a file. */
static bool describe_directory(const char *directory, char *text, size_t size)
{
    bool any = false;
    char path[PATH_MAX];
    DIR *stream = opendir(directory);
    if (!stream)
        return false;
    for (const struct dirent *entry; (entry = readdir(stream));) {
        if (!ends_in_icd(entry->d_name))
            continue;
        any = true;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        describe_file(path, text, size);
    }
    closedir(stream);
    return any;
}

void opencl_icd_describe(char *text, size_t size)
{
    const char *vendors = vendors_directory();
    text[0] = '\0';
    if (ends_in_icd(vendors))
        describe_file(vendors, text, size);
    else if (!describe_directory(vendors, text, size))
        snprintf(text, size, "%s has no .icd file", vendors);
}
#endif
