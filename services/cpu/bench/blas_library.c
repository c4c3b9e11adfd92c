#define _GNU_SOURCE
#include "blas_library.h"

#include "cpu_features.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CALLERS_LEAST = 50,     /* NUM_BUFFERS of OpenBLAS's memory.c is never less … */
    CALLERS_PER_THREAD = 2, /* … and else twice the threads it was built for */
    CALLERS_SPARE = 8,      /* with as many callers as buffers, it warned now and then */
};

struct source {
    const char *word, *name, *prefix; /* of its functions */
    const char *files[3];
    const char *remedy;
};

static const struct source sources[LIBRARIES] = {
    /* requirements/openblas.txt, where scripts/openblas.sh and the image put it, and pip beside a
     * wheel of hostbench. */
    [LIBRARY_PINNED] = {"pinned",
                        "OpenBLAS",
                        "scipy_",
                        {"$ORIGIN/../openblas/scipy_openblas32/lib/libscipy_openblas.so",
                         "$ORIGIN/../../scipy_openblas32/lib/libscipy_openblas.so"},
                        "run make programs where its wheel is available, or install it with pip "
                        "where hostbench was"},
    [LIBRARY_SYSTEM] = {"system",
                        "OpenBLAS",
                        "",
                        {"libopenblas.so.0", "libopenblas.so"},
                        "install the Debian package libopenblas0-pthread"},
    [LIBRARY_BLIS] =
        {"blis", "BLIS", "", {"libblis.so.4"}, "install the Debian package libblis4-pthread"},
};

const char *blas_library_word(unsigned which)
{
    return sources[which].word;
}

const char *blas_library_name(unsigned which)
{
    return sources[which].name;
}

#if defined(STATIC_PROGRAM)
bool blas_library_load(unsigned which, struct blas_library *library, char *reason, size_t size)
{
    (void)library;
    snprintf(reason, size,
             "this build of the program is static and cannot load %s: use the release build",
             sources[which].name);
    return false;
}

bool blas_library_load_copy(unsigned which, const struct blas_library *library, struct blas *copy)
{
    (void)which, (void)library, (void)copy;
    return false;
}
#else

/* ---- functions ------------------------------------------------------------------------------ */

static void *find(const struct source *source, void *handle, const char *name)
{
    char symbol[64];
    snprintf(symbol, sizeof symbol, "%s%s", source->prefix, name);
    return dlsym(handle, symbol);
}

/* The first one that is missing; NULL: none is. */
static const char *find_functions(unsigned which, void *handle, struct blas *blas)
{
    const struct {
        const char *name;
        void *function; /* where its address goes */
    } symbols[] = {
        {"cblas_dgemm", &blas->dgemm}, {"cblas_sgemm", &blas->sgemm},
        {"cblas_dtrsm", &blas->dtrsm}, {"cblas_dtrsv", &blas->dtrsv},
        {"cblas_dgemv", &blas->dgemv}, {"cblas_dger", &blas->dger},
        {"cblas_dscal", &blas->dscal}, {"cblas_idamax", &blas->idamax},
    };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *address = find(&sources[which], handle, symbols[i].name);
        memcpy(symbols[i].function, &address, sizeof address);
        if (!address)
            return symbols[i].name;
    }
    return NULL;
}

/* ---- what it is ----------------------------------------------------------------------------- */

static void resolve_path(struct blas_library *library)
{
    Dl_info info;
    char *real =
        dladdr((void *)library->functions.dgemm, &info) ? realpath(info.dli_fname, NULL) : NULL;
    snprintf(library->path, sizeof library->path, "%s", real ? real : "a file without a name");
    free(real);
}

/* "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY SkylakeX MAX_THREADS=64". NULL, or what is
 * wrong with it. */
static const char *identify_openblas(const struct source *source, void *handle,
                                     struct blas_library *library)
{
    char *(*config)(void) = (char *(*)(void))find(source, handle, "openblas_get_config");
    char *(*core)(void) = (char *(*)(void))find(source, handle, "openblas_get_corename");
    void (*set_threads)(int) = (void (*)(int))find(source, handle, "openblas_set_num_threads");
    int (*get_threads)(void) = (int (*)(void))find(source, handle, "openblas_get_num_threads");
    if (!config || !core || !set_threads || !get_threads)
        return "is not OpenBLAS";
    set_threads(1);
    snprintf(library->config, sizeof library->config, "%s", config());
    snprintf(library->core, sizeof library->core, "%s", core());
    sscanf(library->config, "OpenBLAS %31s", library->version);
    const char *max = strstr(library->config, "MAX_THREADS=");
    unsigned built_for = max ? (unsigned)strtoul(max + strlen("MAX_THREADS="), NULL, 10) : 1;
    library->callers_max = CALLERS_PER_THREAD * built_for;
    if (library->callers_max < CALLERS_LEAST)
        library->callers_max = CALLERS_LEAST;
    library->callers_max -= CALLERS_SPARE;
    library->thread_safe =
        !strstr(library->config, "SINGLE_THREADED") || strstr(library->config, "USE_LOCKING");
    if (get_threads() != 1)
        return "cannot be set to leave the threads to us";
    return strstr(library->config, "USE64BITINT") ? "takes 64-bit integers" : NULL;
}

static const char *identify_blis(void *handle, struct blas_library *library)
{
    char *(*version)(void) = (char *(*)(void))dlsym(handle, "bli_info_get_version_str");
    int (*arch)(void) = (int (*)(void))dlsym(handle, "bli_arch_query_id");
    char *(*arch_name)(int) = (char *(*)(int))dlsym(handle, "bli_arch_string");
    long (*integer_bits)(void) = (long (*)(void))dlsym(handle, "bli_info_get_blas_int_type_size");
    if (!version || !arch || !arch_name || !integer_bits)
        return "is not BLIS";
    snprintf(library->version, sizeof library->version, "%s", version());
    snprintf(library->core, sizeof library->core, "%s", arch_name(arch()));
    snprintf(library->config, sizeof library->config, "BLIS %s", library->version);
    library->callers_max = 0; /* its pools of buffers grow */
    library->thread_safe = true;
    return integer_bits() == 32 ? NULL : "takes 64-bit integers";
}

/* ---- loading -------------------------------------------------------------------------------- */

/* Set before they are loaded, so that they start no threads: the harness starts threads. */
static void *load_file(const char *file)
{
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    setenv("BLIS_NUM_THREADS", "1", 1);
    setenv("OMP_NUM_THREADS", "1", 1); /* OpenMP builds ask for this one in every thread */
    return dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

bool blas_library_load(unsigned which, struct blas_library *library, char *reason, size_t size)
{
    const struct source *source = &sources[which];
    void *handle = NULL;
    *library = (struct blas_library){.version = ""};
    for (const char *const *file = source->files; !handle && *file; file++)
        handle = load_file(*file);
    if (!handle) {
        snprintf(reason, size, "%s (%s) cannot be loaded: %s", source->name,
                 strrchr(source->files[0], '/') ? strrchr(source->files[0], '/') + 1
                                                : source->files[0],
                 source->remedy);
        return false;
    }
    const char *missing = find_functions(which, handle, &library->functions);
    resolve_path(library);
    const char *wrong = which == LIBRARY_BLIS ? identify_blis(handle, library)
                                              : identify_openblas(source, handle, library);
    if (!wrong && !missing)
        return true;
    snprintf(reason, size, "%s %s%s: %s", library->path, wrong ? wrong : "has no ",
             wrong ? "" : missing, source->remedy);
    return false;
}

/* A file that is loaded is not loaded again, but a copy of it is. */
static int copy_of(const char *path)
{
    struct stat status;
    int from = open(path, O_RDONLY | O_CLOEXEC), to = memfd_create("blas", MFD_CLOEXEC);
    bool copied = from >= 0 && to >= 0 && fstat(from, &status) == 0;
    for (off_t at = 0; copied && at < status.st_size;)
        copied = sendfile(to, from, &at, (size_t)(status.st_size - at)) > 0;
    if (from >= 0)
        close(from);
    if (copied || to < 0)
        return to;
    close(to);
    return -1;
}

bool blas_library_load_copy(unsigned which, const struct blas_library *library, struct blas *copy)
{
    char path[32];
    int fd = copy_of(library->path);
    if (fd < 0)
        return false;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    void *handle = load_file(path);
    /* Stays open otherwise: by the number of a closed one the next copy would have the same name,
     * and dlopen() would give this one again. */
    if (!handle)
        close(fd);
    return handle && !find_functions(which, handle, copy);
}
#endif

/* ---- kernels -------------------------------------------------------------------------------- */

#if defined(__x86_64__)
static bool is_among(const char *core, const char *const *cores)
{
    while (*cores && strcmp(*cores, core) != 0)
        cores++;
    return *cores;
}

const char *blas_library_wider_core(unsigned which, const char *core)
{
    static const char *const avx512[] = {"SkylakeX", "Cooperlake", "SapphireRapids", NULL};
    static const char *const avx2[] = {"Haswell", "Zen", "Excavator", NULL};
    if (which == LIBRARY_BLIS || is_among(core, avx512))
        return NULL;
    if (!features_missing(FEATURE_AVX512F | FEATURE_AVX512BW | FEATURE_AVX512DQ))
        return "SKYLAKEX";
    if (!is_among(core, avx2) && !features_missing(FEATURE_AVX2 | FEATURE_FMA))
        return "HASWELL";
    return NULL;
}
#else
const char *blas_library_wider_core(unsigned which, const char *core)
{
    (void)which, (void)core;
    return NULL;
}
#endif
