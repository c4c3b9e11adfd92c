/* Which instruction sets this CPU has and the operating system has enabled. */
#ifndef HOSTBENCH_CPU_FEATURES_H
#define HOSTBENCH_CPU_FEATURES_H

enum feature {
    FEATURE_SSE2 = 1 << 0,
    FEATURE_SSE41 = 1 << 1,
    FEATURE_AVX2 = 1 << 2,
    FEATURE_FMA = 1 << 3, /* FMA3 */
    FEATURE_AVX_VNNI = 1 << 4,
    FEATURE_AVX512F = 1 << 5,
    FEATURE_AVX512BW = 1 << 6,
    FEATURE_AVX512DQ = 1 << 7,
    FEATURE_AVX512_VNNI = 1 << 8,
    FEATURE_AVX512_BF16 = 1 << 9,
    FEATURE_AVX512_FP16 = 1 << 10,
    FEATURE_AMX_INT8 = 1 << 11,
    FEATURE_AMX_BF16 = 1 << 12,
    FEATURE_AMX_FP16 = 1 << 13,
    FEATURE_NEON = 1 << 16,
    FEATURE_FP16 = 1 << 17,    /* FEAT_FP16, with Advanced SIMD */
    FEATURE_DOTPROD = 1 << 18, /* FEAT_DotProd */
    FEATURE_I8MM = 1 << 19,    /* FEAT_I8MM */
    FEATURE_BF16 = 1 << 20,    /* FEAT_BF16 */
    FEATURE_SVE = 1 << 21,
};

/* The set of `enum feature` that may be used here. AMX: the kernel is asked to let this process
 * use tiles. */
unsigned features_available(void);
/* NULL when all of `needed` are available, else why the first missing one is not. */
const char *features_missing(unsigned needed);
/* Bytes of an SVE register; 0: none. */
unsigned sve_bytes(void);
/* Why there is no kernel for an isa parameter. */
const char *isa_foreign(const char *isa);

#endif
