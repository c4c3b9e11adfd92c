/* The cgroup files as kernels and container engines lay them out, in a directory of our own. */
#include "cgroup.h"

#include "check.h"

#include <math.h>

static void mount_line(const char *root, const char *group_root, const char *mount,
                       const char *type, const char *options, char *line, size_t size)
{
    snprintf(line, size, "36 35 0:30 %s %s/%s rw,nosuid shared:1 - %s cgroup rw,%s\n", group_root,
             root, mount, type, options);
}

static struct cgroup read_from(const char *root)
{
    char self[300];
    struct cgroup cgroup;
    snprintf(self, sizeof self, "%s/self", root);
    cgroup_read(&cgroup, self);
    return cgroup;
}

static void v2_takes_the_smallest_quota_on_the_way(void)
{
    const char *root = fresh_root();
    char line[512];
    double throttled;
    put_file(root, "self/cgroup", "0::/slice/scope\n");
    mount_line(root, "/", "cg", "cgroup2", "nsdelegate", line, sizeof line);
    put_file(root, "self/mountinfo", line);
    put_file(root, "cg/cpuset.cpus.effective", "0-7\n");
    put_file(root, "cg/slice/cpu.max", "150000 100000\n");
    put_file(root, "cg/slice/cpu.stat", "usage_usec 9\nthrottled_usec 2500000\n");
    put_file(root, "cg/slice/scope/cpu.max", "max 100000\n");
    put_file(root, "cg/slice/scope/cpu.stat", "usage_usec 9\nthrottled_usec 7\n");
    put_file(root, "cg/slice/scope/cpuset.cpus.effective", "2-3\n");
    struct cgroup cgroup = read_from(root);
    CHECK(cgroup.version == 2);
    CHECK(cgroup.quota_cpus == 1.5);
    CHECK(!strcmp(cgroup.cpuset, "2-3"));
    CHECK(cgroup_throttled_s(&cgroup, &throttled) && fabs(throttled - 2.500007) < 1e-9);
}

static void v1_in_a_container_sees_its_own_group_as_root(void)
{
    const char *root = fresh_root();
    char line[512], two[1024];
    double throttled;
    put_file(root, "self/cgroup",
             "12:pids:/docker/ab\n4:cpu,cpuacct:/docker/ab\n3:cpuset:/docker/ab\n0::/\n");
    mount_line(root, "/docker/ab", "cpu,cpuacct", "cgroup", "cpu,cpuacct", line, sizeof line);
    snprintf(two, sizeof two, "%s", line);
    mount_line(root, "/docker/ab", "cpuset", "cgroup", "cpuset", line, sizeof line);
    strcat(two, line);
    put_file(root, "self/mountinfo", two);
    put_file(root, "cpu,cpuacct/cpu.cfs_quota_us", "50000\n");
    put_file(root, "cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    put_file(root, "cpu,cpuacct/cpu.stat", "nr_periods 4\nthrottled_time 1500000000\n");
    put_file(root, "cpuset/cpuset.cpus", "4,6\n");
    struct cgroup cgroup = read_from(root);
    CHECK(cgroup.version == 1);
    CHECK(cgroup.quota_cpus == 0.5);
    CHECK(!strcmp(cgroup.cpuset, "4,6"));
    CHECK(cgroup_throttled_s(&cgroup, &throttled) && fabs(throttled - 1.5) < 1e-9);
}

/* /docker/a is not above /docker/ab, whose files the mount does not show. */
static void group_differs_from_one_with_a_longer_name(void)
{
    const char *root = fresh_root();
    char line[512];
    put_file(root, "self/cgroup", "4:cpu:/docker/ab\n0::/\n");
    mount_line(root, "/docker/a", "cpu", "cgroup", "cpu", line, sizeof line);
    put_file(root, "self/mountinfo", line);
    put_file(root, "cpu/cpu.cfs_quota_us", "50000\n");
    put_file(root, "cpu/cpu.cfs_period_us", "100000\n");
    CHECK(read_from(root).quota_cpus == 0.5);
    put_file(root, "self/cgroup", "4:cpu:/docker/a/b\n0::/\n");
    put_file(root, "cpu/b/cpu.cfs_quota_us", "25000\n");
    put_file(root, "cpu/b/cpu.cfs_period_us", "100000\n");
    CHECK(read_from(root).quota_cpus == 0.25);
}

static void no_limit_is_no_quota(void)
{
    const char *root = fresh_root();
    char line[512];
    double throttled;
    put_file(root, "self/cgroup", "4:cpu:/\n0::/\n");
    mount_line(root, "/", "cpu", "cgroup", "cpu", line, sizeof line);
    put_file(root, "self/mountinfo", line);
    put_file(root, "cpu/cpu.cfs_quota_us", "-1\n");
    put_file(root, "cpu/cpu.cfs_period_us", "100000\n");
    struct cgroup cgroup = read_from(root);
    CHECK(cgroup.version == 1);
    CHECK(cgroup.quota_cpus < 0);
    CHECK(cgroup.cpuset[0] == '\0');
    CHECK(!cgroup_throttled_s(&cgroup, &throttled));
}

static bool memory_left(const char *root, double *bytes, char *source, size_t size)
{
    char self[300];
    snprintf(self, sizeof self, "%s/self", root);
    return cgroup_memory_left(self, bytes, source, size);
}

static void v2_memory_is_that_of_the_tightest_group(void)
{
    const char *root = fresh_root();
    char line[512], source[600], expected[600];
    double bytes;
    put_file(root, "self/cgroup", "0::/slice/scope\n");
    mount_line(root, "/", "cg", "cgroup2", "nsdelegate", line, sizeof line);
    put_file(root, "self/mountinfo", line);
    put_file(root, "cg/slice/memory.max", "1000000\n");
    put_file(root, "cg/slice/memory.current", "900000\n");
    put_file(root, "cg/slice/memory.stat",
             "anon 5\nfile 60000\ninactive_file 30000\nactive_file 20000\n");
    put_file(root, "cg/slice/scope/memory.max", "max\n");
    put_file(root, "cg/slice/scope/memory.current", "800000\n");
    CHECK(memory_left(root, &bytes, source, sizeof source));
    CHECK(bytes == 130000); /* page cache that is not in use gives way */
    snprintf(expected, sizeof expected, "%s/cg/slice/memory.max", root);
    CHECK(!strcmp(source, expected));
    put_file(root, "cg/slice/scope/memory.max", "800001\n");
    CHECK(memory_left(root, &bytes, source, sizeof source) && bytes == 1);
    put_file(root, "cg/slice/scope/memory.max", "0\n");
    CHECK(memory_left(root, &bytes, source, sizeof source) && bytes == 0);
}

static void v2_memory_ends_where_throttling_begins(void)
{
    const char *root = fresh_root();
    char line[512], source[600], expected[600];
    double bytes;
    put_file(root, "self/cgroup", "0::/\n");
    mount_line(root, "/", "cg", "cgroup2", "nsdelegate", line, sizeof line);
    put_file(root, "self/mountinfo", line);
    put_file(root, "cg/memory.max", "max\n");
    put_file(root, "cg/memory.high", "5000\n");
    put_file(root, "cg/memory.current", "1000\n");
    CHECK(memory_left(root, &bytes, source, sizeof source) && bytes == 4000);
    snprintf(expected, sizeof expected, "%s/cg/memory.high", root);
    CHECK(!strcmp(source, expected));
    put_file(root, "cg/memory.max", "3000\n");
    CHECK(memory_left(root, &bytes, source, sizeof source) && bytes == 2000);
    CHECK(strstr(source, "memory.max"));
    put_file(root, "cg/memory.high", "max\n");
    CHECK(memory_left(root, &bytes, source, sizeof source) && bytes == 2000);
    put_file(root, "cg/memory.max", "max\n");
    CHECK(!memory_left(root, &bytes, source, sizeof source));
}

static void v1_memory_counts_the_groups_below_too(void)
{
    const char *root = fresh_root();
    char line[512], source[600];
    double bytes;
    put_file(root, "self/cgroup", "7:memory:/docker/ab\n0::/\n");
    mount_line(root, "/docker/ab", "memory", "cgroup", "memory", line, sizeof line);
    put_file(root, "self/mountinfo", line);
    put_file(root, "memory/memory.limit_in_bytes", "5000\n");
    put_file(root, "memory/memory.usage_in_bytes", "4000\n");
    put_file(root, "memory/memory.stat",
             "inactive_file 7\nactive_file 7\ntotal_inactive_file 100\ntotal_active_file 10\n");
    CHECK(memory_left(root, &bytes, source, sizeof source) && bytes == 1100);
    put_file(root, "memory/memory.stat", "hierarchical_memory_limit 4500\n");
    CHECK(memory_left(root, &bytes, source, sizeof source) && bytes == 500);
    CHECK(strstr(source, "memory/memory.stat"));
    put_file(root, "memory/memory.stat", "hierarchical_memory_limit 5000\n");
    CHECK(memory_left(root, &bytes, source, sizeof source) && bytes == 1000);
    CHECK(strstr(source, "memory.limit_in_bytes"));
    put_file(root, "memory/memory.stat", "hierarchical_memory_limit 9223372036854771712\n");
    put_file(root, "memory/memory.limit_in_bytes", "9223372036854771712\n");
    CHECK(!memory_left(root, &bytes, source, sizeof source));
}

static void nothing_mounted_is_nothing_known(void)
{
    double throttled, bytes;
    char source[600];
    CHECK(!memory_left(fresh_root(), &bytes, source, sizeof source));
    struct cgroup cgroup = read_from(fresh_root());
    CHECK(cgroup.version == 0);
    CHECK(cgroup.quota_cpus < 0);
    CHECK(!cgroup_throttled_s(&cgroup, &throttled));
}

int main(void)
{
    v2_takes_the_smallest_quota_on_the_way();
    v1_in_a_container_sees_its_own_group_as_root();
    group_differs_from_one_with_a_longer_name();
    no_limit_is_no_quota();
    v2_memory_is_that_of_the_tightest_group();
    v2_memory_ends_where_throttling_begins();
    v1_memory_counts_the_groups_below_too();
    nothing_mounted_is_nothing_known();
    return 0;
}
