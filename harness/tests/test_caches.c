/* Caches of machines of several shapes, as /sys would show them. */
#include "caches.h"

#include "check.h"

#include <unistd.h>

static void put_cache(const char *root, int cpu, int index, const char *level, const char *type,
                      const char *size, const char *shared)
{
    const char *const names[] = {"level", "type", "size", "shared_cpu_list"};
    const char *const texts[] = {level, type, size, shared};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "devices/system/cpu/cpu%d/cache/index%d/%s", cpu, index,
                 names[i]);
        put_file(root, path, texts[i]);
    }
}

/* Four cores; each pair shares a last-level cache. */
static const char *two_clusters(void)
{
    const char *root = fresh_root();
    for (int cpu = 0; cpu < 4; cpu++) {
        char own[8];
        snprintf(own, sizeof own, "%d\n", cpu);
        put_cache(root, cpu, 0, "1\n", "Data\n", "48K\n", own);
        put_cache(root, cpu, 1, "1\n", "Instruction\n", "64K\n", own);
        put_cache(root, cpu, 2, "2\n", "Unified\n", "1M\n", own);
        put_cache(root, cpu, 3, "3\n", "Unified\n", "32768K\n", cpu < 2 ? "0-1\n" : "2-3\n");
    }
    return root;
}

static struct caches read_from(const char *root, const char *used, unsigned sockets)
{
    struct caches caches;
    struct cpulist cpus;
    CHECK(cpulist_parse(used, &cpus));
    caches_read(&caches, &cpus, sockets, root);
    cpulist_free(&cpus);
    return caches;
}

static double getconf_of_socket(void)
{
    long size = sysconf(_SC_LEVEL3_CACHE_SIZE), other = sysconf(_SC_LEVEL4_CACHE_SIZE);
    size = size > other ? size : other;
    size = size > 0 ? size : sysconf(_SC_LEVEL2_CACHE_SIZE);
    return size > 0 ? (double)size : 0;
}

static void each_last_level_cache_counts_once(void)
{
    const char *root = two_clusters();
    CHECK(read_from(root, "0-1", 1).llc_sysfs == 0x1p25);
    CHECK(read_from(root, "3", 1).llc_sysfs == 0x1p25);
    CHECK(read_from(root, "1,3", 1).llc_sysfs == 0x1p26);
    CHECK(read_from(root, "3,0,1,2", 1).llc_sysfs == 0x1p26);
    CHECK(read_from(root, "0", 1).l1d == 48 * 1024);
    CHECK(read_from(root, "0", 1).l2 == 0x1p20);
}

static void the_larger_source_decides(void)
{
    const char *root = two_clusters();
    struct caches caches = read_from(root, "0", 2);
    CHECK(caches.llc_getconf == 2 * getconf_of_socket());
    CHECK(caches.llc == (caches.llc_getconf > 0x1p25 ? caches.llc_getconf : 0x1p25));
    for (int cpu = 0; cpu < 2; cpu++)
        put_cache(root, cpu, 3, "3\n", "Unified\n", "1024G\n", "0-1\n");
    CHECK(read_from(root, "0-1", 1).llc == 0x1p40);
}

static void without_sysfs_sizes_come_from_the_library(void)
{
    struct caches caches = read_from(fresh_root(), "0", 1);
    CHECK(caches.llc_sysfs == 0);
    CHECK(caches.llc == caches.llc_getconf && caches.llc == getconf_of_socket());
}

int main(void)
{
    each_last_level_cache_counts_once();
    the_larger_source_decides();
    without_sysfs_sizes_come_from_the_library();
    return 0;
}
