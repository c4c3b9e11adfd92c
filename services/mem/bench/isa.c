#include "isa.h"

#include "cpu_features.h"
#include "kernels.h"

#include <string.h>

const char *const isas[] = {"best", "scalar", "sse2", "avx2", "avx512", "neon", NULL};

void isa_resolve(struct run *run)
{
    const char *widest = NULL;
    if (strcmp(run_choice(run, "isa"), "best") != 0)
        return;
    for (const struct kernel *kernel = kernels; kernel->function; kernel++)
        if (kernel->isa && !features_missing(kernel->features))
            widest = kernel->isa;
    run_set_choice(run, "isa", widest); /* scalar, if nothing else */
}

const char *isa_unsupported(const struct run *run)
{
    const char *isa = run_choice(run, "isa");
    if (!strcmp(isa, "best"))
        return NULL;
    for (const struct kernel *kernel = kernels; kernel->function; kernel++)
        if (kernel->isa && !strcmp(kernel->isa, isa))
            return features_missing(kernel->features);
    return isa_foreign(isa);
}

const char *isa_unconfirmed(const struct run *run)
{
    (void)run;
#if defined(__aarch64__)
    return "this kernel was not run on hardware before: its evidence is an emulator that executes "
           "it";
#else
    return NULL;
#endif
}
