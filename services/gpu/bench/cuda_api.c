#define _GNU_SOURCE
#include "cuda_api.h"

#include "shared_library.h"

static const struct library_symbol symbols[] = {
#define CUDA_SYMBOL(name, parameters) {#name, offsetof(struct cuda_api, name), false},
#define CUDA_OPTIONAL_SYMBOL(name, parameters) {#name, offsetof(struct cuda_api, name), true},
    CUDA_ENTRY_POINTS(CUDA_SYMBOL) CUDA_OPTIONAL_ENTRY_POINTS(CUDA_OPTIONAL_SYMBOL)
#undef CUDA_SYMBOL
#undef CUDA_OPTIONAL_SYMBOL
};

const struct cuda_api *cuda_api_load(const char **why)
{
    static struct cuda_api api;
    static struct shared_library library = {.file = "libcuda.so.1"};
    bool loaded = shared_library_load(&library, symbols, sizeof symbols / sizeof *symbols, &api);
    *why = library.why;
    return loaded ? &api : NULL;
}
