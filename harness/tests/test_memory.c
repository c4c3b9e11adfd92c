/* What is left is the smallest of what the host, the NUMA nodes, the control groups and the
 * process's own limits leave. */
#include "memory.h"

#include "check.h"

#include <math.h>
#include <sys/resource.h>

static void put_group(const char *root, const char *limit)
{
    char line[512];
    put_file(root, "self/cgroup", "0::/\n");
    snprintf(line, sizeof line, "36 35 0:30 / %s/cg rw shared:1 - cgroup2 cgroup rw\n", root);
    put_file(root, "self/mountinfo", line);
    put_file(root, "cg/memory.max", limit);
    put_file(root, "cg/memory.current", "1024\n");
}

static void the_smaller_of_host_and_group(void)
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
}

static void put_node(const char *root, int node, unsigned free_kb)
{
    char path[128], text[512];
    snprintf(path, sizeof path, "devices/system/node/node%d/meminfo", node);
    snprintf(text, sizeof text,
             "Node %d MemTotal:       900 kB\nNode %d MemFree:        %u kB\n"
             "Node %d Inactive(file):  3 kB\nNode %d SReclaimable:    1 kB\n",
             node, node, free_kb, node, node);
    put_file(root, path, text);
}

static void nodes_that_the_cpuset_leaves_out_do_not_count(void)
{
    struct memory_budget left;
    const char *root = fresh_root();
    put_file(root, "meminfo", "MemAvailable:    100 kB\n");
    put_file(root, "self/status", "VmSize:\t4 kB\nMems_allowed:\t3\nMems_allowed_list:\t0-1\n");
    put_file(root, "devices/system/node/has_memory", "0-2\n");
    put_node(root, 0, 10);
    put_node(root, 1, 20);
    put_node(root, 2, 40);
    CHECK(memory_node_left(2, root) == 44 * 1024);
    CHECK(isnan(memory_node_left(3, root)));
    CHECK(memory_left_read(&left, root, root) && left.bytes == 38 * 1024);
    CHECK(strstr(left.limit, "NUMA node 0-1"));
    /* Where all nodes are allowed, MemAvailable knows better what gives way. */
    put_file(root, "devices/system/node/has_memory", "0-1\n");
    CHECK(memory_left_read(&left, root, root) && left.bytes == 100 * 1024);
}

static void memory_that_is_bound_has_what_its_node_has(void)
{
    struct memory_budget budget = {.bytes = 100 * 1024, .limit = "the host"};
    const char *root = fresh_root();
    put_node(root, 2, 40);
    memory_budget_bind(&budget, 3, root);
    CHECK(budget.bytes == 100 * 1024 && !strcmp(budget.limit, "the host"));
    memory_budget_bind(&budget, 2, root);
    CHECK(budget.bytes == 44 * 1024 && !strcmp(budget.limit, "free memory of NUMA node 2"));
}

/* The limit is this process's own, and far above what it needs itself. */
static void address_space_is_limited_too(void)
{
    struct memory_budget budget;
    struct rlimit before, limit = {.rlim_cur = (rlim_t)1 << 44};
    const char *root = fresh_root();
    put_file(root, "self/status", "VmSize:\t    1024 kB\nVmData:\t    2048 kB\n");
    put_file(root, "meminfo", "MemAvailable: 99999999999 kB\n");
    CHECK(getrlimit(RLIMIT_DATA, &before) == 0);
    limit.rlim_max = before.rlim_max;
    CHECK(setrlimit(RLIMIT_DATA, &limit) == 0);
    CHECK(memory_budget_read(&budget, root, root));
    CHECK(budget.bytes == 0x1p44 - 0x1p21 && strstr(budget.limit, "RLIMIT_DATA"));
    /* What can be filled is another question. */
    CHECK(memory_left_read(&budget, root, root) && budget.bytes == 99999999999.0 * 1024);
    CHECK(setrlimit(RLIMIT_DATA, &before) == 0);
    CHECK(memory_budget_read(&budget, root, root) && budget.bytes == 99999999999.0 * 1024);
}

static void a_strict_kernel_counts_what_is_reserved(void)
{
    struct memory_budget budget;
    const char *root = fresh_root();
    put_file(root, "meminfo", "MemAvailable: 100 kB\nCommitLimit:   60 kB\nCommitted_AS:  20 kB\n");
    put_file(root, "sys/vm/overcommit_memory", "0\n");
    CHECK(memory_budget_read(&budget, root, root) && budget.bytes == 100 * 1024);
    put_file(root, "sys/vm/overcommit_memory", "2\n");
    CHECK(memory_budget_read(&budget, root, root) && budget.bytes == 40 * 1024);
    CHECK(strstr(budget.limit, "CommitLimit"));
}

int main(void)
{
    the_smaller_of_host_and_group();
    nodes_that_the_cpuset_leaves_out_do_not_count();
    memory_that_is_bound_has_what_its_node_has();
    address_space_is_limited_too();
    a_strict_kernel_counts_what_is_reserved();
    return 0;
}
