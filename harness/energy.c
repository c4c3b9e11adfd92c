#include "energy.h"

#include "textfile.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Reads a file in micro-units; false when it is not there or cannot be read. */
static bool read_micro(const char *zone, const char *file, double *value)
{
    char path[320];
    snprintf(path, sizeof path, "%s/%s", zone, file);
    if (!textfile_number(path, value))
        return false;
    *value *= 1e-6;
    return true;
}

static bool read_name(const char *zone, char *name, size_t size)
{
    char path[320];
    snprintf(path, sizeof path, "%s/name", zone);
    return textfile_read(path, name, size);
}

static void add_domain(struct energy *energy, const char *zone, bool memory)
{
    struct energy_domain domain = {.memory = memory};
    if (energy->count == ENERGY_DOMAINS)
        return;
    if (read_micro(zone, "energy_uj", &domain.joules) &&
        read_micro(zone, "max_energy_range_uj", &domain.range))
        energy->domains[energy->count++] = domain;
    else
        energy->unreadable = true;
}

/* Documentation/power/powercap/powercap.rst: intel-rapl:P is a package, intel-rapl:P:Q a part of it;
 * "psys", the whole board, and an MMIO view of the same package would be counted twice. */
struct energy energy_read(const char *sys)
{
    struct energy energy = {0};
    char zone[288], name[64];
    for (int package = 0;; package++) {
        snprintf(zone, sizeof zone, "%s/class/powercap/intel-rapl:%d", sys, package);
        if (!read_name(zone, name, sizeof name))
            return energy;
        if (strncmp(name, "package", strlen("package")))
            continue;
        add_domain(&energy, zone, false);
        for (int part = 0;; part++) {
            snprintf(zone, sizeof zone, "%s/class/powercap/intel-rapl:%d:%d", sys, package, part);
            if (!read_name(zone, name, sizeof name))
                break;
            if (!strcmp(name, "dram"))
                add_domain(&energy, zone, true);
        }
    }
}

static const char NO_ENERGY[] =
    "the kernel has no energy counter of a CPU package "
    "(/sys/class/powercap/intel-rapl), which is usual in a virtual machine";
static const char NO_MEMORY_ENERGY[] = "the CPU packages have no energy counter of their memory";
static const char UNREADABLE[] =
    "the energy counters below /sys/class/powercap may be read by root "
    "alone";
static const char WRAPPED[] =
    "an energy counter may have begun again more than once: make the trial "
    "shorter";
/* No package takes more: with it, a counter begins again soonest. */
static const double PACKAGE_MOST_WATTS = 1000;

double energy_joules(const struct energy *before, const struct energy *after, double elapsed_s,
                     bool memory, const char **why)
{
    double joules = 0;
    unsigned found = 0;
    const char *reason = NULL;
    if (before->unreadable || after->unreadable || before->count != after->count)
        reason = UNREADABLE;
    for (unsigned i = 0; i < after->count && !reason; i++) {
        const struct energy_domain *from = &before->domains[i], *to = &after->domains[i];
        if (to->memory != memory)
            continue;
        double taken = to->joules - from->joules;
        joules += taken < 0 ? taken + to->range : taken;
        found++;
        if (elapsed_s * PACKAGE_MOST_WATTS > to->range)
            reason = WRAPPED;
    }
    if (!reason && found == 0)
        reason = memory && after->count > 0 ? NO_MEMORY_ENERGY : NO_ENERGY;
    if (why)
        *why = reason;
    return reason ? NAN : joules;
}
