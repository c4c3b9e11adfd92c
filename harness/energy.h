/* What the CPU packages and their memory take, as they count it: the kernel's powercap (intel-rapl,
 * which AMD's CPUs have, too). */
#ifndef HOSTBENCH_ENERGY_H
#define HOSTBENCH_ENERGY_H

#include <stdbool.h>

enum { ENERGY_DOMAINS = 64 };

struct energy_domain {
    double joules, range; /* it begins again at 0 beyond the range */
    bool memory;          /* of a package's memory, else of the package */
};

struct energy {
    struct energy_domain domains[ENERGY_DOMAINS];
    unsigned count;
    bool unreadable; /* one that is there, for this user */
};

/* The counters of all packages. `sys`: /sys. */
struct energy energy_read(const char *sys);
/* What the packages, or their memory, took in between, other processes' share too. NaN: not known.
 * `*why`, unless NULL, says then why. */
double energy_joules(const struct energy *before, const struct energy *after, double elapsed_s,
                     bool memory, const char **why);

#endif
