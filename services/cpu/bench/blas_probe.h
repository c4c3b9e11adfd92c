/* What a BLAS does on this CPU, found out in a process of its own: one that crashes takes nothing
 * with it, and none that is not chosen stays in this process. */
#ifndef CPU_BENCH_BLAS_PROBE_H
#define CPU_BENCH_BLAS_PROBE_H

#include "blas_library.h"

#include <stdbool.h>

enum probe_state {
    PROBE_NONE,
    PROBE_MISSING, /* it cannot be loaded, or cannot be used as it was built */
    PROBE_BROKEN,  /* it crashes, hangs or computes wrongly */
    PROBE_FINE,
};

struct probe {
    enum probe_state state;
    char core[32];    /* the CPU whose kernels it runs */
    double rate;      /* operations a second of one thread; 0: not timed */
    char reason[768]; /* why it is not fine */
};

/* Loads the library and multiplies small matrices; `timed`: checks their product, and multiplies
 * larger ones for about a tenth of a second, on `cpu`. */
void blas_probe(unsigned which, const struct blas_need *need, bool timed, int cpu,
                struct probe *probe);

#endif
