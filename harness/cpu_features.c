#define _GNU_SOURCE
#include "cpu_features.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* State components the operating system saves (Intel SDM vol. 1, 13.3): a CPU that has AVX-512
 * under a kernel or hypervisor that does not save its registers must not use it. */
enum { NO_STATE = 0, AVX_STATE = 0x6, AVX512_STATE = 0xe6, AMX_STATE = 0x60000 };

/* Linux saves tiles only for processes that request them (Documentation/arch/x86/xstate.rst). */
enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };

static const struct {
    enum feature feature;
    const char *name;
    unsigned state, leaf, subleaf, reg, bit;
} table[] = {
#define ROW(name, text, ...) {FEATURE_##name, text, __VA_ARGS__},
    X86_FEATURES(ROW)
#undef ROW
};
enum { FEATURES = sizeof table / sizeof *table };

static unsigned long xcr0(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return ((unsigned long)high << 32) | low;
}

/* Of the CPU alone, whatever the operating system enables. */
static unsigned cpu_features(void)
{
    unsigned found = 0;
    for (size_t i = 0; i < FEATURES; i++) {
        unsigned r[4];
        if (__get_cpuid_count(table[i].leaf, table[i].subleaf, &r[0], &r[1], &r[2], &r[3]) &&
            r[table[i].reg] >> table[i].bit & 1)
            found |= table[i].feature;
    }
    return found;
}

static unsigned enabled_features(void)
{
    unsigned a, b, c, d, enabled = 0;
    __cpuid(1, a, b, c, d);
    unsigned long saved = c & bit_OSXSAVE ? xcr0() : 0;
    if ((saved & AMX_STATE) == AMX_STATE &&
        syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA))
        saved &= ~(unsigned long)AMX_STATE;
    for (size_t i = 0; i < FEATURES; i++)
        if ((saved & table[i].state) == table[i].state)
            enabled |= table[i].feature;
    return enabled;
}

/* Read once: see features_available(). */
bool cpu_vendor_is(const char *vendor)
{
    enum { VENDOR_BYTES = 12 };
    static _Thread_local char found[VENDOR_BYTES + 1];
    unsigned r[4];
    if (!*found && __get_cpuid(0, &r[0], &r[1], &r[2], &r[3])) {
        const unsigned order[] = {r[1], r[3], r[2]};
        memcpy(found, order, VENDOR_BYTES);
    }
    return !strcmp(found, vendor);
}

unsigned sve_bytes(void)
{
    return 0;
}
#elif defined(__aarch64__)
#include <sys/auxv.h>
#include <sys/prctl.h>

static const struct {
    enum feature feature;
    const char *name;
    unsigned long word;
    unsigned bit;
} table[] = {
#define ROW(name, text, ...) {FEATURE_##name, text, __VA_ARGS__},
    ARM_FEATURES(ROW)
#undef ROW
};
enum { FEATURES = sizeof table / sizeof *table };

static unsigned cpu_features(void)
{
    unsigned found = 0;
    for (size_t i = 0; i < FEATURES; i++)
        if (getauxval(table[i].word) >> table[i].bit & 1)
            found |= table[i].feature;
    return found;
}

bool cpu_vendor_is(const char *vendor)
{
    (void)vendor;
    return false;
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

/* The set that may be used here. Read once: CPUID traps in a virtual machine, which takes tens of microseconds. */
static unsigned features_available(void)
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
    for (size_t i = 0; i < FEATURES; i++) {
        if (!(missing & table[i].feature))
            continue;
        bool disabled = cpu_features() & table[i].feature;
        snprintf(reason, sizeof reason,
                 disabled ? "the operating system does not enable %s (XCR0)" : "this CPU lacks %s",
                 table[i].name);
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
