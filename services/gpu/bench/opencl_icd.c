#define _GNU_SOURCE
#include "opencl_icd.h"

#include "textfile.h"

#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(STATIC_PROGRAM)
void opencl_icd_describe(bool none, char *text, size_t size)
{
    (void)none, (void)size;
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

static void __attribute__((format(printf, 3, 4))) say(char *text, size_t size, const char *format,
                                                      ...)
{
    size_t used = strlen(text);
    va_list arguments;
    if (used)
        used += (size_t)snprintf(text + used, size - used, "%s", used + 3 < size ? "; " : "");
    va_start(arguments, format);
    vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

/* "file names library, which …"; nothing of one that gave a platform or may have. */
static void describe_file(const char *path, bool none, char *text, size_t size)
{
    char driver[256] = "";
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    if (!textfile_read(path, driver, sizeof driver)) {
        say(text, size, "%s cannot be read", name);
        return;
    }
    driver[strcspn(driver, "\r\n")] = '\0';
    void *library = dlopen(driver, RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        const char *error = dlerror();
        say(text, size, "%s names a driver that cannot be loaded (%s)", name,
            error ? error : driver);
        return;
    }
    if (!dlsym(library, "clGetExtensionFunctionAddress"))
        say(text, size, "%s names %s, which is not an OpenCL driver", name, driver);
    else if (none)
        say(text, size, "%s names %s, which finds no device", name, driver);
    dlclose(library);
}

/* Whether there was a file. */
static bool describe_directory(const char *directory, bool none, char *text, size_t size)
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
        describe_file(path, none, text, size);
    }
    closedir(stream);
    return any;
}

void opencl_icd_describe(bool none, char *text, size_t size)
{
    const char *vendors = vendors_directory();
    text[0] = '\0';
    if (ends_in_icd(vendors))
        describe_file(vendors, none, text, size);
    else if (!describe_directory(vendors, none, text, size))
        snprintf(text, size, "%s has no .icd file", vendors);
}
#endif
