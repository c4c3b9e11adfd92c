/* Which instruction sets this CPU has and the operating system has enabled. */
#ifndef CPU_BENCH_CPU_FEATURES_H
#define CPU_BENCH_CPU_FEATURES_H

enum feature {
    FEATURE_SSE2 = 1 << 0,
    FEATURE_AVX2 = 1 << 1,
    FEATURE_FMA = 1 << 2, /* FMA3 */
    FEATURE_AVX512F = 1 << 3,
    FEATURE_AVX512BW = 1 << 4,
    FEATURE_NEON = 1 << 5,
};

/* The set of `enum feature` that may be used here. */
unsigned features_available(void);
/* NULL when all of `needed` are available, else why the first missing one is not. */
const char *features_missing(unsigned needed);

#endif
