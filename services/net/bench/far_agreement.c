#define _GNU_SOURCE
#include "far_agreement.h"

#include "placement.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool agreement_within(const struct test *test, const struct caps *caps, char *why, size_t size)
{
    unsigned sockets = test_sockets(test);
    double rate = test->rate * test_own_sockets(test);
    bool stream = test->kind == KIND_STREAM;
    if (sockets > caps->streams)
        snprintf(why, size, "the test needs %u sockets, the session allows %u: use fewer streams",
                 sockets, caps->streams);
    else if (test->ramp_s + test->duration_s > caps->duration_s)
        snprintf(why, size,
                 "the test takes %g s with its warm-up, the session allows %g s: set a shorter "
                 "duration_s",
                 test->ramp_s + test->duration_s, caps->duration_s);
    else if (caps->bytes > 0 && test->work_bytes > caps->bytes)
        snprintf(why, size, "the test moves %.15g bytes, the session allows %.15g: use less work",
                 (double)test->work_bytes, (double)caps->bytes);
    else if (caps->rate > 0 && stream && test->rate == 0)
        snprintf(why, size,
                 "the test has no rate, the session allows %.9g byte/s: set a rate of no more",
                 caps->rate);
    else if (caps->rate > 0 && stream && rate > caps->rate)
        snprintf(why, size, "the test sends %.9g byte/s, the session allows %.9g: set a lower rate",
                 rate, caps->rate);
    else
        return true;
    return false;
}

static bool place_given(const struct test *test, const struct cpulist *allowed, char *why,
                        size_t size)
{
    char text[256];
    for (size_t i = 0; i < test->far_cpus.count; i++)
        if (!cpulist_contains(allowed, test->far_cpus.cpus[i])) {
            cpulist_format(allowed, text, sizeof text);
            snprintf(why, size, "CPU %d of far_cpus is not the far end's, which may use %s",
                     test->far_cpus.cpus[i], text);
            return false;
        }
    return true;
}

/* Each CPU once, in the order in which threads take them. */
static bool place_freely(struct test *test)
{
    struct placement placement = {0};
    bool placed = placement_affinity(&placement.affinity) &&
                  placement_choose(&placement, test_sockets(test), NULL, "/sys");
    if (placed) {
        test->far_cpus = placement.cpus;
        placement.cpus = (struct cpulist){0};
        size_t all = test->far_cpus.count;
        test->far_cpus.count = 0;
        for (size_t i = 0; i < all; i++)
            if (!cpulist_contains(&test->far_cpus, test->far_cpus.cpus[i]))
                test->far_cpus.cpus[test->far_cpus.count++] = test->far_cpus.cpus[i];
    }
    placement_free(&placement);
    return placed;
}

bool agreement_place(struct test *test, char *why, size_t size)
{
    struct cpulist allowed;
    if (test->far_cpus.count == 0 && place_freely(test))
        return true;
    if (!placement_affinity(&allowed)) {
        snprintf(why, size, "the far end cannot find out which CPUs it may use");
        return false;
    }
    bool good = place_given(test, &allowed, why, size);
    cpulist_free(&allowed);
    return good;
}

/* A TCP data socket; a crr has only the port they come to. */
static int tcp_socket(const struct far_sockets *sockets)
{
    for (unsigned i = 0; i < sockets->count; i++)
        if (!sockets->sockets[i].udp && sockets->sockets[i].fd >= 0)
            return sockets->sockets[i].fd;
    return sockets->listener;
}

void agreement_facts(const struct test *test, const struct far_sockets *sockets, int control_fd,
                     struct far_facts *facts)
{
    struct endpoint local, peer;
    struct endpoint_route route = {0};
    *facts = (struct far_facts){0};
    gethostname(facts->host_name, sizeof facts->host_name - 1);
    cpulist_format(&test->far_cpus, facts->cpus, sizeof facts->cpus);
    if (endpoint_of_socket(control_fd, &local) && endpoint_of_peer(control_fd, &peer)) {
        endpoint_interface(&local, &peer, &route);
        snprintf(facts->interface, sizeof facts->interface, "%s", route.interface);
        snprintf(facts->network_mode, sizeof facts->network_mode, "%s",
                 route.kind ? route.kind : "");
        facts->interface_mtu_bytes = route.mtu_bytes;
    }
    if (endpoint_of_peer(control_fd, &peer) && endpoint_route(&peer, &route) == 0)
        facts->path_mtu_bytes = route.path_mtu_bytes;
    if (tcp_socket(sockets) >= 0)
        endpoint_congestion_in_force(tcp_socket(sockets), facts->congestion);
}
