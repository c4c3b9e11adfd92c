/* What is left is the smaller of the host's figure and the control group's. */
#include "memory.h"

#include "check.h"

static void put_group(const char *root, const char *limit)
{
    char line[512];
    put_file(root, "self/cgroup", "0::/\n");
    snprintf(line, sizeof line, "36 35 0:30 / %s/cg rw shared:1 - cgroup2 cgroup rw\n", root);
    put_file(root, "self/mountinfo", line);
    put_file(root, "cg/memory.max", limit);
    put_file(root, "cg/memory.current", "1024\n");
}

int main(void)
{
    struct memory_budget left;
    const char *root = fresh_root();
    CHECK(!memory_left_read(&left, root, root));
    put_group(root, "3072\n");
    CHECK(memory_left_read(&left, root, root) && left.bytes == 2048);
    CHECK(strstr(left.limit, "/cg/memory.max"));
    put_file(root, "meminfo", "MemTotal: 9 kB\nMemFree: 2 kB\nMemAvailable:    1 kB\n");
    CHECK(memory_left_read(&left, root, root) && left.bytes == 1024);
    CHECK(!strcmp(left.limit, "MemAvailable of /proc/meminfo"));
    put_file(root, "meminfo", "MemAvailable:    8 kB\n");
    CHECK(memory_left_read(&left, root, root) && left.bytes == 2048);
    CHECK(strstr(left.limit, "/cg/memory.max"));
    return 0;
}
