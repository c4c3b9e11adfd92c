/* Energy of packages and their memory, from a powercap of files. */
#include "energy.h"

#include "check.h"

#include <math.h>

static void put_zone(const char *root, const char *zone, const char *name, const char *uj)
{
    char path[128];
    snprintf(path, sizeof path, "class/powercap/intel-rapl:%s/name", zone);
    put_file(root, path, name);
    snprintf(path, sizeof path, "class/powercap/intel-rapl:%s/energy_uj", zone);
    put_file(root, path, uj);
    snprintf(path, sizeof path, "class/powercap/intel-rapl:%s/max_energy_range_uj", zone);
    put_file(root, path, "65532610987\n"); /* of a Xeon */
}

static void packages_add_up_and_begin_again(void)
{
    const char *root = fresh_root(), *why;
    put_zone(root, "0", "package-0\n", "1000000\n");
    put_zone(root, "0:0", "core\n", "5\n");
    put_zone(root, "0:1", "dram\n", "2000000\n");
    put_zone(root, "1", "package-1\n", "65532000000\n");
    put_zone(root, "2", "psys\n", "7000000\n");
    struct energy before = energy_read(root);
    CHECK(before.count == 3 && !before.unreadable);
    put_zone(root, "0", "package-0\n", "11000000\n");
    put_zone(root, "0:1", "dram\n", "5000000\n");
    put_zone(root, "1", "package-1\n", "389013\n");
    struct energy after = energy_read(root);
    CHECK(fabs(energy_joules(&before, &after, 1, false, &why) - 11) < 1e-6 && !why);
    CHECK(fabs(energy_joules(&before, &after, 1, true, &why) - 3) < 1e-6 && !why);
    /* A kilowatt would have gone round in 66 s. */
    CHECK(isnan(energy_joules(&before, &after, 70, false, &why)) && strstr(why, "shorter"));
}

static void what_is_missing_has_a_reason(void)
{
    const char *root = fresh_root(), *why;
    struct energy none = energy_read(root);
    CHECK(isnan(energy_joules(&none, &none, 1, false, &why)) && strstr(why, "virtual machine"));
    put_zone(root, "0", "package-0\n", "1000000\n");
    struct energy package = energy_read(root);
    CHECK(energy_joules(&package, &package, 1, false, &why) == 0 && !why);
    CHECK(isnan(energy_joules(&package, &package, 1, true, &why)) && strstr(why, "memory"));
    put_zone(root, "0", "package-0\n", ""); /* as of a file that only root may read */
    struct energy refused = energy_read(root);
    CHECK(isnan(energy_joules(&package, &refused, 1, false, &why)) && strstr(why, "root"));
}

int main(void)
{
    packages_add_up_and_begin_again();
    what_is_missing_has_a_reason();
    return 0;
}
