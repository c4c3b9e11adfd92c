/* Which instruction sets this CPU has and the operating system has enabled. */
#ifndef HOSTBENCH_CPU_FEATURES_H
#define HOSTBENCH_CPU_FEATURES_H

#include <stdbool.h>

/* Laid out by hand: one line is one feature. */
/* clang-format off */

/* F(NAME, name for people, state that the operating system must save, and where CPUID shows it: leaf,
 * subleaf, register as an index into {eax, ebx, ecx, edx}, bit). */
#define X86_FEATURES(F)                                                                            \
    F(SSE2, "sse2", NO_STATE, 1, 0, 3, 26)                                                         \
    F(SSE41, "sse4.1", NO_STATE, 1, 0, 2, 19)                                                      \
    F(POPCNT, "popcnt", NO_STATE, 1, 0, 2, 23)                                                     \
    F(AVX2, "avx2", AVX_STATE, 7, 0, 1, 5)                                                         \
    F(FMA, "fma", AVX_STATE, 1, 0, 2, 12) /* FMA3 */                                               \
    F(AVX_VNNI, "avx_vnni", AVX_STATE, 7, 1, 0, 4)                                                 \
    F(AVX512F, "avx512f", AVX512_STATE, 7, 0, 1, 16)                                               \
    F(AVX512BW, "avx512bw", AVX512_STATE, 7, 0, 1, 30)                                             \
    F(AVX512DQ, "avx512dq", AVX512_STATE, 7, 0, 1, 17)                                             \
    F(AVX512_VNNI, "avx512_vnni", AVX512_STATE, 7, 0, 2, 11)                                       \
    F(AVX512_BITALG, "avx512_bitalg", AVX512_STATE, 7, 0, 2, 12)                                   \
    F(AVX512_VPOPCNTDQ, "avx512_vpopcntdq", AVX512_STATE, 7, 0, 2, 14)                             \
    F(AVX512_BF16, "avx512_bf16", AVX512_STATE, 7, 1, 0, 5)                                        \
    F(AVX512_FP16, "avx512_fp16", AVX512_STATE, 7, 0, 3, 23)                                       \
    F(AMX_INT8, "amx_int8", AMX_STATE, 7, 0, 3, 25)                                                \
    F(AMX_BF16, "amx_bf16", AMX_STATE, 7, 0, 3, 22)                                                \
    F(AMX_FP16, "amx_fp16", AMX_STATE, 7, 1, 0, 21)

/* F(NAME, name for people, word of the auxiliary vector, bit): Documentation/arch/arm64/elf_hwcaps.rst */
#define ARM_FEATURES(F)                                                                            \
    F(NEON, "neon", AT_HWCAP, 1)                                                                   \
    F(FP16, "fp16 (asimdhp)", AT_HWCAP, 10) /* FEAT_FP16, with Advanced SIMD */                    \
    F(DOTPROD, "dotprod (asimddp)", AT_HWCAP, 20)                                                  \
    F(I8MM, "i8mm", AT_HWCAP2, 13)                                                                 \
    F(BF16, "bf16", AT_HWCAP2, 14)                                                                 \
    F(SVE, "sve", AT_HWCAP, 22)
/* clang-format on */

#define FEATURE_NUMBER(name, ...) NUMBER_##name,
enum feature_number { X86_FEATURES(FEATURE_NUMBER) ARM_FEATURES(FEATURE_NUMBER) };
#undef FEATURE_NUMBER

#define FEATURE_BIT(name, ...) FEATURE_##name = 1 << NUMBER_##name,
enum feature { X86_FEATURES(FEATURE_BIT) ARM_FEATURES(FEATURE_BIT) };
#undef FEATURE_BIT

/* NULL when all of `needed`, a set of `enum feature`, may be used here, else why the first missing one
 * may not. AMX: requests the kernel's permission to use tiles. */
const char *features_missing(unsigned needed);
/* Whether CPUID names this vendor, such as "AuthenticAMD"; never on aarch64. */
bool cpu_vendor_is(const char *vendor);
/* Bytes of an SVE register; 0: none. */
unsigned sve_bytes(void);
/* Why there is no kernel for an isa parameter. */
const char *isa_foreign(const char *isa);

#endif
