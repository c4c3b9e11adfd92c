#define _GNU_SOURCE
#include "cpu_features.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    FEATURES_AVX = FEATURE_AVX2 | FEATURE_FMA | FEATURE_AVX_VNNI,
    FEATURES_AVX512 = FEATURE_AVX512F | FEATURE_AVX512BW | FEATURE_AVX512DQ | FEATURE_AVX512_VNNI |
        FEATURE_AVX512_BF16 | FEATURE_AVX512_FP16,
    FEATURES_AMX = FEATURE_AMX_INT8 | FEATURE_AMX_BF16 | FEATURE_AMX_FP16,
};

/* State components the operating system saves (Intel SDM vol. 1, 13.3): a CPU that has AVX-512
 * under a kernel or hypervisor that does not save its registers must not use it. */
enum { XCR0_AVX = 0x6, XCR0_AVX512 = 0xe6, XCR0_AMX = 0x60000 };

/* Linux saves tiles only for processes that asked (Documentation/arch/x86/xstate.rst). */
enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };

/* Of CPUID: the register is an index into {eax, ebx, ecx, edx}. */
static const struct {
    enum feature feature;
    unsigned leaf, subleaf, reg, bit;
} flags[] = {
    {FEATURE_FMA, 1, 0, 2, 12},         {FEATURE_SSE41, 1, 0, 2, 19},
    {FEATURE_AVX2, 7, 0, 1, 5},         {FEATURE_AVX512F, 7, 0, 1, 16},
    {FEATURE_AVX512DQ, 7, 0, 1, 17},    {FEATURE_AVX512BW, 7, 0, 1, 30},
    {FEATURE_AVX512_VNNI, 7, 0, 2, 11}, {FEATURE_AVX512_FP16, 7, 0, 3, 23},
    {FEATURE_AMX_BF16, 7, 0, 3, 22},    {FEATURE_AMX_INT8, 7, 0, 3, 25},
    {FEATURE_AVX_VNNI, 7, 1, 0, 4},     {FEATURE_AVX512_BF16, 7, 1, 0, 5},
    {FEATURE_AMX_FP16, 7, 1, 0, 21},
};

static unsigned long xcr0(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return ((unsigned long)high << 32) | low;
}

/* Of the CPU alone, whatever the operating system enables. */
static unsigned cpu_features(void)
{
    unsigned found = FEATURE_SSE2; /* every x86-64 */
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        unsigned r[4];
        if (__get_cpuid_count(flags[i].leaf, flags[i].subleaf, &r[0], &r[1], &r[2], &r[3]) &&
            r[flags[i].reg] >> flags[i].bit & 1)
            found |= flags[i].feature;
    }
    return found;
}

static unsigned enabled_features(void)
{
    unsigned a, b, c, d, enabled = FEATURE_SSE2 | FEATURE_SSE41;
    __cpuid(1, a, b, c, d);
    unsigned long saved = c & bit_OSXSAVE ? xcr0() : 0;
    if ((saved & XCR0_AVX) == XCR0_AVX)
        enabled |= FEATURES_AVX;
    if ((saved & XCR0_AVX512) == XCR0_AVX512)
        enabled |= FEATURES_AVX512;
    if ((saved & XCR0_AMX) == XCR0_AMX &&
        !syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA))
        enabled |= FEATURES_AMX;
    return enabled;
}

unsigned sve_bytes(void)
{
    return 0;
}
#elif defined(__aarch64__)
#include <sys/auxv.h>
#include <sys/prctl.h>

/* Documentation/arch/arm64/elf_hwcaps.rst; older headers lack the second word's. */
enum {
    HWCAP_ASIMDHP_BIT = 10,
    HWCAP_ASIMDDP_BIT = 20,
    HWCAP_SVE_BIT = 22,
    HWCAP2_I8MM_BIT = 13,
    HWCAP2_BF16_BIT = 14,
};

/* Advanced SIMD is part of the Armv8-A base that Linux requires. */
static unsigned cpu_features(void)
{
    unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
    unsigned found = FEATURE_NEON;
    if (first >> HWCAP_ASIMDHP_BIT & 1)
        found |= FEATURE_FP16;
    if (first >> HWCAP_ASIMDDP_BIT & 1)
        found |= FEATURE_DOTPROD;
    if (first >> HWCAP_SVE_BIT & 1)
        found |= FEATURE_SVE;
    if (second >> HWCAP2_I8MM_BIT & 1)
        found |= FEATURE_I8MM;
    if (second >> HWCAP2_BF16_BIT & 1)
        found |= FEATURE_BF16;
    return found;
}

/* Linux Documentation/arch/arm64/sve.rst. */
unsigned sve_bytes(void)
{
    enum { PR_SVE_GET_VL_NUMBER = 51, PR_SVE_VL_LEN_MASK_BITS = 0xffff };
    int length = prctl(PR_SVE_GET_VL_NUMBER);
    return length < 0 ? 0 : (unsigned)length & PR_SVE_VL_LEN_MASK_BITS;
}

/* What the kernel shows in the auxiliary vector it has enabled. */
static unsigned enabled_features(void)
{
    return cpu_features();
}
#else
#error "hostbench knows x86-64 and aarch64"
#endif

static const struct {
    enum feature feature;
    const char *name;
} names[] = {
    {FEATURE_SSE2, "sse2"},
    {FEATURE_SSE41, "sse4.1"},
    {FEATURE_AVX2, "avx2"},
    {FEATURE_FMA, "fma"},
    {FEATURE_AVX_VNNI, "avx_vnni"},
    {FEATURE_AVX512F, "avx512f"},
    {FEATURE_AVX512BW, "avx512bw"},
    {FEATURE_AVX512DQ, "avx512dq"},
    {FEATURE_AVX512_VNNI, "avx512_vnni"},
    {FEATURE_AVX512_BF16, "avx512_bf16"},
    {FEATURE_AVX512_FP16, "avx512_fp16"},
    {FEATURE_AMX_INT8, "amx_int8"},
    {FEATURE_AMX_BF16, "amx_bf16"},
    {FEATURE_AMX_FP16, "amx_fp16"},
    {FEATURE_NEON, "neon"},
    {FEATURE_FP16, "fp16 (asimdhp)"},
    {FEATURE_DOTPROD, "dotprod (asimddp)"},
    {FEATURE_I8MM, "i8mm"},
    {FEATURE_BF16, "bf16"},
    {FEATURE_SVE, "sve"},
};

/* Asked once: CPUID traps in a virtual machine, which takes tens of microseconds. */
unsigned features_available(void)
{
    static _Atomic unsigned available;
    if (!available)
        available = cpu_features() & enabled_features();
    return available;
}

const char *features_missing(unsigned needed)
{
    static _Thread_local char reason[128];
    unsigned missing = needed & ~features_available();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!(missing & names[i].feature))
            continue;
        bool disabled = cpu_features() & names[i].feature;
        snprintf(reason, sizeof reason,
                 disabled ? "the operating system does not enable %s (XCR0)" : "this CPU lacks %s",
                 names[i].name);
        return reason;
    }
    return NULL;
}

const char *isa_foreign(const char *isa)
{
    static char reason[64];
#if defined(__x86_64__)
    bool foreign = !strcmp(isa, "neon") || !strcmp(isa, "sve") || !strcmp(isa, "mmla");
    const char *home = "an aarch64";
#else
    bool foreign = !strncmp(isa, "sse", 3) || !strncmp(isa, "avx", 3) || !strcmp(isa, "amx");
    const char *home = "an x86-64";
#endif
    if (!foreign)
        return "there is no instruction of this width for this dtype";
    snprintf(reason, sizeof reason, "%s needs %s CPU", isa, home);
    return reason;
}
