/* The CPUs and the memory that this process may use on each node. */
#include "nodes.h"

#include "check.h"

#include <math.h>

static const char *const NODE = "devices/system/node";

static void put(const char *root, const char *file, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", NODE, file);
    put_file(root, path, text);
}

/* Two sockets and a node of memory alone, as an expander of CXL is. */
static const char *three_nodes(void)
{
    const char *root = fresh_root();
    put(root, "online", "0-1,4\n");
    put(root, "has_memory", "0-1,4\n");
    put(root, "node0/cpulist", "0-1,4-5\n");
    put(root, "node1/cpulist", "2-3,6-7\n");
    put(root, "node4/cpulist", "\n");
    put(root, "node0/distance", "10 21 14\n");
    put(root, "node1/distance", "21 10 24\n");
    put(root, "node4/distance", "14 24 10\n");
    put_file(root, "self/status", "Mems_allowed_list:\t0-1,4\n");
    return root;
}

static void check_node(const struct numa_node *node, int number, const char *cpus, bool has_memory)
{
    char text[64];
    cpulist_format(&node->cpus, text, sizeof text);
    CHECK(node->number == number && node->has_memory == has_memory && !strcmp(text, cpus));
}

static void all_that_is_there(void)
{
    const char *root = three_nodes();
    struct cpulist cpus;
    struct nodes nodes;
    CHECK(cpulist_parse("0-7", &cpus));
    CHECK(nodes_read(&nodes, &cpus, root, root) && nodes.count == 3 && nodes.barred.count == 0);
    check_node(&nodes.nodes[0], 0, "0-1,4-5", true);
    check_node(&nodes.nodes[1], 1, "2-3,6-7", true);
    check_node(&nodes.nodes[2], 4, "", true);
    nodes_free(&nodes);
    cpulist_free(&cpus);
}

static void what_a_cpuset_leaves(void)
{
    const char *root = three_nodes();
    struct cpulist cpus;
    struct nodes nodes;
    put_file(root, "self/status", "Mems_allowed:\t2\nMems_allowed_list:\t1\n");
    CHECK(cpulist_parse("0,5", &cpus));
    CHECK(nodes_read(&nodes, &cpus, root, root) && nodes.count == 2);
    check_node(&nodes.nodes[0], 0, "0,5", false);
    check_node(&nodes.nodes[1], 1, "", true);
    CHECK(nodes.barred.count == 2 && nodes.barred.cpus[0] == 0 && nodes.barred.cpus[1] == 4);
    nodes_free(&nodes);
    cpulist_free(&cpus);
}

static void what_the_kernel_does_not_say(void)
{
    const char *root = fresh_root();
    struct cpulist cpus;
    struct nodes nodes;
    CHECK(cpulist_parse("0", &cpus));
    CHECK(!nodes_read(&nodes, &cpus, root, root));
    nodes_free(&nodes);
    put(root, "online", "0\n");
    put(root, "has_memory", "0\n");
    put(root, "node0/cpulist", "0-1\n");
    CHECK(nodes_read(&nodes, &cpus, root, root) && nodes.count == 1);
    check_node(&nodes.nodes[0], 0, "0", true);
    nodes_free(&nodes);
    cpulist_free(&cpus);
}

static void a_distance_is_in_the_order_of_the_nodes(void)
{
    const char *root = three_nodes();
    CHECK(nodes_distance(0, 0, root) == 10 && nodes_distance(0, 1, root) == 21);
    CHECK(nodes_distance(0, 4, root) == 14 && nodes_distance(4, 1, root) == 24);
    CHECK(isnan(nodes_distance(0, 2, root)) && isnan(nodes_distance(2, 0, root)));
    put(root, "node0/distance", "10\n");
    CHECK(isnan(nodes_distance(0, 1, root)));
}

/* Of this process itself: on each node that it may have memory of. */
static void pages_lie_where_they_are_bound_to(void)
{
    struct cpulist cpus;
    struct nodes nodes;
    CHECK(cpulist_parse("0", &cpus));
    if (nodes_read(&nodes, &cpus, "/proc", "/sys"))
        for (size_t i = 0; i < nodes.count; i++) {
            int number = nodes.nodes[i].number, found = -1;
            char *page = aligned_alloc(4096, 4096);
            CHECK(page);
            if (nodes.nodes[i].has_memory && nodes_bind(page, 4096, number) == 0) {
                *page = 1;
                CHECK(nodes_of_pages((void *[]){page}, 1, &found) == 0 && found == number);
            }
            free(page);
        }
    nodes_free(&nodes);
    cpulist_free(&cpus);
}

int main(void)
{
    all_that_is_there();
    what_a_cpuset_leaves();
    what_the_kernel_does_not_say();
    a_distance_is_in_the_order_of_the_nodes();
    pages_lie_where_they_are_bound_to();
    return 0;
}
