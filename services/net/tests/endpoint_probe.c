/* What endpoint.h says of the addresses in the arguments, for the tests. */
#define _GNU_SOURCE
#include "endpoint.h"

#include "monotonic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct endpoint parsed(const char *text)
{
    struct endpoint endpoint;
    if (!endpoint_parse(text, 7, &endpoint)) {
        printf("no address\n");
        exit(0);
    }
    return endpoint;
}

static void show_parsed(const struct endpoint *one)
{
    char text[ENDPOINT_TEXT];
    const char *why = endpoint_refused(one);
    endpoint_format(one, text);
    printf("%s port %u, %s, loopback %d, headers %u\n", text, endpoint_port(one),
           why ? why : "allowed", endpoint_is_loopback(one), endpoint_udp_header_bytes(one));
}

static void show_route(const struct endpoint *to, uint32_t block)
{
    struct endpoint_route route;
    char source[ENDPOINT_TEXT];
    const char *why;
    int error = -endpoint_route(to, &route);
    if (error) {
        printf("%s\n", strerrorname_np(error));
        return;
    }
    endpoint_format(&route.source, source);
    enum udp_path path = endpoint_udp_path(&route, block, &why);
    printf("from %s by %s, %s, mtu %u, path %u; %s: %s\n", source, route.interface, route.kind,
           route.mtu_bytes, route.path_mtu_bytes, path == UDP_GSO ? "gso" : "mmsg",
           why ? why : "the best");
}

static void show_connect(struct endpoint *to, uint16_t port, double timeout_s)
{
    endpoint_set_port(to, port);
    double begin_s = now_s();
    int fd = endpoint_connect(PROTOCOL_TCP, to, timeout_s);
    printf("%s after %.1f s\n", fd < 0 ? strerrorname_np(-fd) : "connected", now_s() - begin_s);
    if (fd >= 0)
        close(fd);
}

static void show_listen(const struct endpoint *at, uint16_t port, double timeout_s)
{
    struct endpoint local = *at, from;
    endpoint_set_port(&local, port);
    int listener = endpoint_listen(PROTOCOL_TCP, &local, 1, &port);
    if (listener < 0) {
        printf("%s\n", strerrorname_np(-listener));
        return;
    }
    printf("%u\n", port);
    fflush(stdout);
    char text[ENDPOINT_TEXT] = "";
    int fd = endpoint_accept(listener, timeout_s, &from);
    if (fd >= 0)
        endpoint_format(&from, text);
    printf("%s%s\n", fd < 0 ? strerrorname_np(-fd) : "from ", text);
}

/* endpoint_probe parse A | same A B | route A BLOCK | connect A PORT SECONDS | listen A PORT SECONDS |
 * congestion NAME */
int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const char *what = argv[1];
    if (!strcmp(what, "congestion")) {
        const char *why = endpoint_congestion_unsupported(argv[2]);
        printf("%s\n", why ? why : "supported");
        return 0;
    }
    struct endpoint one = parsed(argv[2]);
    double number = argc > 3 ? strtod(argv[3], NULL) : 0;
    if (!strcmp(what, "parse")) {
        show_parsed(&one);
    } else if (!strcmp(what, "same") && argc == 4) {
        struct endpoint other = parsed(argv[3]);
        printf("%s\n", endpoint_same_host(&one, &other) ? "same" : "other");
    } else if (!strcmp(what, "route") && argc == 4) {
        show_route(&one, (uint32_t)number);
    } else if (!strcmp(what, "connect") && argc == 5) {
        show_connect(&one, (uint16_t)number, strtod(argv[4], NULL));
    } else if (!strcmp(what, "listen") && argc == 5) {
        show_listen(&one, (uint16_t)number, strtod(argv[4], NULL));
    } else {
        return 2;
    }
    return 0;
}
