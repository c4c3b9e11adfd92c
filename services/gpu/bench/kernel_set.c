#include "kernel_set.h"

#include <string.h>

/* Written by build.py; the last has file NULL. */
extern const struct kernel_image kernel_images[];
extern const char kernel_opencl_text[];
extern const size_t kernel_opencl_bytes;

static bool has(const struct kernel_image *image, const char *kernel)
{
    for (const char *const *name = image->kernels; *name; ++name)
        if (strcmp(*name, kernel) == 0)
            return true;
    return false;
}

static bool runs_on(const struct kernel_image *image, int major, int minor)
{
    if (image->one_only)
        return image->cc_major == major && image->cc_minor == minor;
    if (image->cc_major != major)
        return image->ptx && image->cc_major < major;
    return image->cc_minor <= minor;
}

/* Machine code before PTX, then the nearest capability, then what was made for one alone. */
static int preference(const struct kernel_image *image)
{
    return !image->ptx * 100000 + image->cc_major * 1000 + image->cc_minor * 10 + image->one_only;
}

static const struct kernel_image *best(const char *kernel, int major, int minor, bool ptx_only)
{
    const struct kernel_image *found = NULL;
    for (const struct kernel_image *image = kernel_images; image->file; ++image) {
        if (ptx_only && !image->ptx)
            continue;
        if (!runs_on(image, major, minor) || !has(image, kernel))
            continue;
        if (!found || preference(image) > preference(found))
            found = image;
    }
    return found;
}

const struct kernel_image *kernel_image(const char *kernel, int cc_major, int cc_minor)
{
    return best(kernel, cc_major, cc_minor, false);
}

const struct kernel_image *kernel_ptx(const char *kernel, int cc_major, int cc_minor)
{
    return best(kernel, cc_major, cc_minor, true);
}

bool kernel_exists(const char *kernel)
{
    for (const struct kernel_image *image = kernel_images; image->file; ++image)
        if (has(image, kernel))
            return true;
    return false;
}

const char *kernel_opencl_source(size_t *bytes)
{
    *bytes = kernel_opencl_bytes;
    return kernel_opencl_text;
}
