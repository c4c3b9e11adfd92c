/* Machines of several shapes, as /sys would show them. */
#define _GNU_SOURCE
#include "placement.h"

#include "check.h"

#include <sched.h>

static void put_cpu(const char *root, int cpu, const char *siblings, const char *socket)
{
    char path[128];
    snprintf(path, sizeof path, "devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    put_file(root, path, siblings);
    snprintf(path, sizeof path, "devices/system/cpu/cpu%d/topology/physical_package_id", cpu);
    put_file(root, path, socket);
}

static struct placement place(const char *root, const char *affinity, unsigned threads,
                              const char *given)
{
    struct placement placement = {0};
    struct cpulist list = {0};
    CHECK(cpulist_parse(affinity, &placement.affinity));
    if (given)
        CHECK(cpulist_parse(given, &list));
    CHECK(placement_choose(&placement, threads, given ? &list : NULL, root));
    cpulist_free(&list);
    return placement;
}

static void is_placed(struct placement *placement, const char *expected)
{
    char cpus[64];
    cpulist_format(&placement->cpus, cpus, sizeof cpus);
    CHECK(!strcmp(cpus, expected));
}

/* Two sockets of two cores; siblings are n and n + 4, as Intel servers number them. */
static const char *two_sockets(void)
{
    const char *root = fresh_root();
    for (int cpu = 0; cpu < 8; cpu++) {
        char siblings[16];
        snprintf(siblings, sizeof siblings, "%d,%d", cpu % 4, cpu % 4 + 4);
        put_cpu(root, cpu, siblings, cpu % 4 < 2 ? "0" : "1");
    }
    return root;
}

static void one_thread_per_core_before_siblings(void)
{
    const char *root = two_sockets();
    struct placement placement = place(root, "0-7", 4, NULL);
    is_placed(&placement, "0-3");
    CHECK(placement.cores == 4 && placement.sockets == 2 && !placement.smt_shared);
    placement_free(&placement);
    placement = place(root, "0-7", 5, NULL);
    is_placed(&placement, "0-4");
    CHECK(placement.cores == 4 && placement.smt_shared && !placement.oversubscribed);
    placement_free(&placement);
}

static void a_cpuset_need_not_start_at_zero(void)
{
    struct placement placement = place(two_sockets(), "3,5-7", 3, NULL);
    is_placed(&placement, "3,5-6"); /* 7 is the sibling of 3: last */
    CHECK(placement.cores == 3 && !placement.smt_shared);
    placement_free(&placement);
}

static void given_cpus_keep_their_order(void)
{
    struct placement placement = place(two_sockets(), "0-7", 2, "6,2");
    is_placed(&placement, "6,2");
    CHECK(placement.given && placement.cores == 1 && placement.smt_shared);
    placement_free(&placement);
}

static void more_threads_than_cpus_go_round(void)
{
    struct placement placement = place(two_sockets(), "0-1", 3, NULL);
    CHECK(placement.oversubscribed && placement.cpus.count == 3);
    CHECK(placement.cpus.cpus[2] == 0 && placement.cores == 2);
    placement_free(&placement);
}

static void fast_cores_come_before_slow_ones(void)
{
    const char *root = fresh_root();
    for (int cpu = 0; cpu < 4; cpu++) {
        char siblings[16];
        snprintf(siblings, sizeof siblings, "%d", cpu);
        put_cpu(root, cpu, siblings, "0");
    }
    put_file(root, "devices/cpu_atom/cpus", "0-1\n");
    struct placement placement = place(root, "0-3", 3, NULL);
    is_placed(&placement, "2-3,0");
    placement_free(&placement);
}

static void without_topology_each_cpu_is_a_core(void)
{
    struct placement placement = place(fresh_root(), "2-3", 2, NULL);
    is_placed(&placement, "2-3");
    CHECK(placement.cores == 2 && placement.sockets == 1);
    placement_free(&placement);
}

static void is_left(const char *root, const struct placement *placement, const char *expected)
{
    char text[64] = "";
    struct cpulist left = placement_left(placement, root);
    for (size_t i = 0; i < left.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", i ? "," : "",
                 left.cpus[i]);
    CHECK(!strcmp(text, expected));
    cpulist_free(&left);
}

static void what_is_left_begins_with_whole_cores(void)
{
    const char *root = two_sockets();
    struct placement placement = place(root, "0-7", 1, NULL);
    is_left(root, &placement, "1,2,3,4,5,6,7");
    placement_free(&placement);
    placement = place(root, "0-7", 2, "6,2");
    is_left(root, &placement, "0,1,3,4,5,7"); /* 4 is the sibling of 0 */
    placement_free(&placement);
    placement = place(root, "0-1", 3, NULL);
    is_left(root, &placement, "");
    placement_free(&placement);
}

static void siblings_are_two_cpus_of_a_core(void)
{
    const char *root = two_sockets();
    CHECK(placement_siblings(1, 5, root) && placement_siblings(5, 1, root));
    CHECK(!placement_siblings(1, 2, root) && !placement_siblings(1, 1, root));
    struct placement all = place(root, "0-7", 1, NULL), cores = place(root, "1,6", 1, NULL);
    CHECK(placement_has_siblings(&all.affinity, root));
    CHECK(!placement_has_siblings(&cores.affinity, root));
    placement_free(&all);
    placement_free(&cores);
    CHECK(!placement_siblings(0, 1, fresh_root()));
}

/* As the kernel does when that CPU goes offline. */
static void a_thread_that_may_go_elsewhere_is_not_kept(void)
{
    struct cpulist affinity;
    cpu_set_t one, more;
    CHECK(placement_affinity(&affinity));
    CPU_ZERO(&one);
    CPU_SET((size_t)affinity.cpus[0], &one);
    CHECK(sched_getaffinity(0, sizeof more, &more) == 0);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK(placement_keeps(0, affinity.cpus[0]));
    CHECK(!placement_keeps(0, affinity.cpus[0] + 1));
    CHECK(sched_setaffinity(0, sizeof more, &more) == 0);
    CHECK(placement_keeps(0, affinity.cpus[0]) == (affinity.count == 1));
    cpulist_free(&affinity);
}

int main(void)
{
    a_thread_that_may_go_elsewhere_is_not_kept();
    what_is_left_begins_with_whole_cores();
    one_thread_per_core_before_siblings();
    a_cpuset_need_not_start_at_zero();
    given_cpus_keep_their_order();
    more_threads_than_cpus_go_round();
    fast_cores_come_before_slow_ones();
    without_topology_each_cpu_is_a_core();
    siblings_are_two_cpus_of_a_core();
    return 0;
}
