#include "cpu_features.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* State components the operating system saves (Intel SDM vol. 1, 13.3): a CPU that has AVX-512
 * under a kernel or hypervisor that does not save its registers must not use it. */
enum { XCR0_AVX = 0x6, XCR0_AVX512 = 0xe6 };

static unsigned long xcr0(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return ((unsigned long)high << 32) | low;
}

/* Of the CPU alone, whatever the operating system enables. */
static unsigned cpu_features(void)
{
    unsigned a, b, c, d, found = FEATURE_SSE2; /* every x86-64 */
    __cpuid(1, a, b, c, d);
    if (c & bit_FMA)
        found |= FEATURE_FMA;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
        if (b & bit_AVX2)
            found |= FEATURE_AVX2;
        if (b & bit_AVX512F)
            found |= FEATURE_AVX512F;
        if (b & bit_AVX512BW)
            found |= FEATURE_AVX512BW;
    }
    return found;
}

static unsigned enabled_features(void)
{
    unsigned a, b, c, d, enabled = FEATURE_SSE2;
    __cpuid(1, a, b, c, d);
    unsigned long saved = c & bit_OSXSAVE ? xcr0() : 0;
    if ((saved & XCR0_AVX) == XCR0_AVX)
        enabled |= FEATURE_AVX2 | FEATURE_FMA;
    if ((saved & XCR0_AVX512) == XCR0_AVX512)
        enabled |= FEATURE_AVX512F | FEATURE_AVX512BW;
    return enabled;
}
#elif defined(__aarch64__)
/* Advanced SIMD is part of the Armv8-A base that Linux requires. */
static unsigned cpu_features(void)
{
    return FEATURE_NEON;
}

static unsigned enabled_features(void)
{
    return FEATURE_NEON;
}
#else
#error "cpu-bench knows x86-64 and aarch64"
#endif

static const struct {
    enum feature feature;
    const char *name;
} names[] = {
    {FEATURE_SSE2, "sse2"},       {FEATURE_AVX2, "avx2"},         {FEATURE_FMA, "fma"},
    {FEATURE_AVX512F, "avx512f"}, {FEATURE_AVX512BW, "avx512bw"}, {FEATURE_NEON, "neon"},
};

unsigned features_available(void)
{
    return cpu_features() & enabled_features();
}

const char *features_missing(unsigned needed)
{
    static char reason[128];
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
