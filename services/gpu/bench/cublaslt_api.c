#define _GNU_SOURCE
#include "cublaslt_api.h"

#include "shared_library.h"

#include <stdio.h>
#include <stdlib.h>

/* The newest first. */
static struct shared_library libraries[] = {
    {.file = "libcublasLt.so.13"},
    {.file = "libcublasLt.so.12"},
    {.file = "libcublasLt.so.11"},
};

enum { LIBRARIES = sizeof libraries / sizeof *libraries };

static const struct library_symbol symbols[] = {
#define CUBLASLT_SYMBOL(result, name, parameters)                                                  \
    {#name, offsetof(struct cublaslt_api, name), false},
    CUBLASLT_ENTRY_POINTS(CUBLASLT_SYMBOL)
#undef CUBLASLT_SYMBOL
};

static struct {
    struct cublaslt_api api;
    char version[32], path[512], why[1200];
} state;

#if defined(STATIC_PROGRAM)
static void find_path(void)
{
}
#else
#include <dlfcn.h>

static void find_path(void)
{
    Dl_info info;
    char *real =
        dladdr((void *)state.api.cublasLtCreate, &info) ? realpath(info.dli_fname, NULL) : NULL;
    snprintf(state.path, sizeof state.path, "%s", real ? real : "");
    free(real);
}
#endif

static const struct cublaslt_api *report_versions(void)
{
    size_t version = state.api.cublasLtGetVersion();
    snprintf(state.version, sizeof state.version, "%zu.%zu.%zu", version / 10000,
             version / 100 % 100, version % 100);
    find_path();
    return &state.api;
}

const struct cublaslt_api *cublaslt_load(const char **why)
{
    *why = state.why;
    if (state.version[0])
        return &state.api;
    size_t used = 0;
    for (int i = 0; i < LIBRARIES; i++) {
        if (shared_library_load(&libraries[i], symbols, sizeof symbols / sizeof *symbols,
                                &state.api))
            return report_versions();
        used += (size_t)snprintf(state.why + used, sizeof state.why - used, "%s%s",
                                 i ? "; " : "no cuBLASLt: ", libraries[i].why);
    }
    snprintf(state.why + used, sizeof state.why - used,
             "; install cuBLAS 11, 12 or 13, or name its directory in LD_LIBRARY_PATH");
    return NULL;
}

const char *cublaslt_version(void)
{
    return state.version;
}

const char *cublaslt_path(void)
{
    return state.path;
}

const char *cublaslt_status_name(int status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
        return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH:
        return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
        return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "CUBLAS_STATUS_NOT_SUPPORTED";
    }
    return NULL;
}
