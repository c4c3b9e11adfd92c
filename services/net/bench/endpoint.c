#define _GNU_SOURCE
#include "endpoint.h"

#include "monotonic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <math.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- addresses ------------------------------------------------------------------------------ */

static struct sockaddr_in *four(const struct endpoint *endpoint)
{
    return (struct sockaddr_in *)&endpoint->address;
}

static struct sockaddr_in6 *six(const struct endpoint *endpoint)
{
    return (struct sockaddr_in6 *)&endpoint->address;
}

static bool is_six(const struct endpoint *endpoint)
{
    return endpoint->address.ss_family == AF_INET6;
}

static bool parse_four(const char *text, uint16_t port, struct endpoint *endpoint)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (inet_pton(AF_INET, text, &address.sin_addr) != 1)
        return false;
    memset(endpoint, 0, sizeof *endpoint);
    memcpy(&endpoint->address, &address, sizeof address);
    endpoint->length = sizeof address;
    return true;
}

/* The scope behind the %: an interface's name or number. */
static bool scope_of(const char *text, uint32_t *scope)
{
    char *end;
    *scope = if_nametoindex(text);
    if (*scope == 0)
        *scope = (uint32_t)strtoul(text, &end, 10);
    return *scope != 0;
}

static bool parse_six(const char *text, uint16_t port, struct endpoint *endpoint)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    char host[INET6_ADDRSTRLEN];
    size_t length = strcspn(text, "%");
    if (length >= sizeof host)
        return false;
    memcpy(host, text, length);
    host[length] = '\0';
    if (inet_pton(AF_INET6, host, &address.sin6_addr) != 1)
        return false;
    if (text[length] && !scope_of(text + length + 1, &address.sin6_scope_id))
        return false;
    memset(endpoint, 0, sizeof *endpoint);
    memcpy(&endpoint->address, &address, sizeof address);
    endpoint->length = sizeof address;
    return true;
}

bool endpoint_parse(const char *text, uint16_t port, struct endpoint *endpoint)
{
    return parse_four(text, port, endpoint) || parse_six(text, port, endpoint);
}

/* An IPv4 address mapped into IPv6 is the IPv4 one. */
static struct endpoint plain(const struct endpoint *endpoint)
{
    struct endpoint found = *endpoint;
    if (is_six(endpoint) && IN6_IS_ADDR_V4MAPPED(&six(endpoint)->sin6_addr)) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = six(endpoint)->sin6_port};
        memcpy(&address.sin_addr, &six(endpoint)->sin6_addr.s6_addr[12], 4);
        memset(&found, 0, sizeof found);
        memcpy(&found.address, &address, sizeof address);
        found.length = sizeof address;
    }
    return found;
}

void endpoint_format(const struct endpoint *endpoint, char *text)
{
    struct endpoint shown = plain(endpoint);
    text[0] = '\0';
    if (!is_six(&shown)) {
        inet_ntop(AF_INET, &four(&shown)->sin_addr, text, ENDPOINT_TEXT);
        return;
    }
    inet_ntop(AF_INET6, &six(&shown)->sin6_addr, text, ENDPOINT_TEXT);
    uint32_t scope = six(&shown)->sin6_scope_id;
    char name[IF_NAMESIZE];
    size_t used = strlen(text);
    if (scope && if_indextoname(scope, name))
        snprintf(text + used, ENDPOINT_TEXT - used, "%%%s", name);
    else if (scope)
        snprintf(text + used, ENDPOINT_TEXT - used, "%%%u", scope);
}

uint16_t endpoint_port(const struct endpoint *endpoint)
{
    return ntohs(is_six(endpoint) ? six(endpoint)->sin6_port : four(endpoint)->sin_port);
}

void endpoint_set_port(struct endpoint *endpoint, uint16_t port)
{
    if (is_six(endpoint))
        six(endpoint)->sin6_port = htons(port);
    else
        four(endpoint)->sin_port = htons(port);
}

static bool same_scope(const struct endpoint *one, const struct endpoint *other)
{
    uint32_t a = six(one)->sin6_scope_id, b = six(other)->sin6_scope_id;
    return a == 0 || b == 0 || a == b;
}

bool endpoint_same_host(const struct endpoint *one, const struct endpoint *other)
{
    struct endpoint a = plain(one), b = plain(other);
    if (a.address.ss_family != b.address.ss_family)
        return false;
    if (is_six(&a))
        return IN6_ARE_ADDR_EQUAL(&six(&a)->sin6_addr, &six(&b)->sin6_addr) && same_scope(&a, &b);
    return four(&a)->sin_addr.s_addr == four(&b)->sin_addr.s_addr;
}

bool endpoint_is_loopback(const struct endpoint *endpoint)
{
    struct endpoint at = plain(endpoint);
    if (is_six(&at))
        return IN6_IS_ADDR_LOOPBACK(&six(&at)->sin6_addr);
    return ntohl(four(&at)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* Calls `with` for each address of an interface until it says yes. */
static bool any_interface(bool (*with)(const struct ifaddrs *, const void *), const void *what)
{
    struct ifaddrs *all = NULL;
    bool found = false;
    if (getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *one = all; one && !found; one = one->ifa_next)
        found = one->ifa_addr && with(one, what);
    freeifaddrs(all);
    return found;
}

static bool has_broadcast(const struct ifaddrs *interface, const void *address)
{
    if (interface->ifa_addr->sa_family != AF_INET || !(interface->ifa_flags & IFF_BROADCAST) ||
        !interface->ifa_broadaddr)
        return false;
    const struct sockaddr_in *broadcast = (const void *)interface->ifa_broadaddr;
    const struct sockaddr_in *own = (const void *)interface->ifa_addr;
    /* A network of one address has none of its own to broadcast to. */
    return broadcast->sin_addr.s_addr != own->sin_addr.s_addr &&
           broadcast->sin_addr.s_addr == *(const in_addr_t *)address;
}

static const char *refused_four(in_addr_t address)
{
    in_addr_t host = ntohl(address);
    if (host == INADDR_ANY)
        return "it is the unspecified address";
    if (IN_MULTICAST(host))
        return "it is a multicast address";
    if (host == INADDR_BROADCAST || any_interface(has_broadcast, &address))
        return "it is a broadcast address";
    return IN_BADCLASS(host) ? "it is a reserved address" : NULL;
}

const char *endpoint_refused(const struct endpoint *endpoint)
{
    struct endpoint at = plain(endpoint);
    if (!is_six(&at))
        return refused_four(four(&at)->sin_addr.s_addr);
    if (IN6_IS_ADDR_UNSPECIFIED(&six(&at)->sin6_addr))
        return "it is the unspecified address";
    return IN6_IS_ADDR_MULTICAST(&six(&at)->sin6_addr) ? "it is a multicast address" : NULL;
}

bool endpoint_of_socket(int fd, struct endpoint *local)
{
    memset(local, 0, sizeof *local);
    local->length = sizeof local->address;
    return getsockname(fd, (struct sockaddr *)&local->address, &local->length) == 0;
}

bool endpoint_of_peer(int fd, struct endpoint *peer)
{
    memset(peer, 0, sizeof *peer);
    peer->length = sizeof peer->address;
    return getpeername(fd, (struct sockaddr *)&peer->address, &peer->length) == 0;
}

uint32_t endpoint_udp_header_bytes(const struct endpoint *to)
{
    struct endpoint at = plain(to);
    return is_six(&at) ? 40 + 8 : 20 + 8;
}

/* ---- sockets -------------------------------------------------------------------------------- */

static int socket_for(enum protocol protocol, const struct endpoint *endpoint, int flags)
{
    int type = protocol == PROTOCOL_TCP ? SOCK_STREAM : SOCK_DGRAM;
    int fd = socket(endpoint->address.ss_family, type | SOCK_CLOEXEC | flags, 0);
    return fd < 0 ? -errno : fd;
}

static int closed(int fd, int error)
{
    close(fd);
    return -error;
}

static void switch_on(int fd, int level, int option)
{
    int on = 1;
    setsockopt(fd, level, option, &on, sizeof on);
}

static int bind_and_listen(int fd, enum protocol protocol, const struct endpoint *local,
                           int backlog)
{
    if (bind(fd, (const struct sockaddr *)&local->address, local->length) != 0)
        return errno;
    return protocol == PROTOCOL_TCP && listen(fd, backlog) != 0 ? errno : 0;
}

int endpoint_listen(enum protocol protocol, const struct endpoint *local, int backlog,
                    uint16_t *port)
{
    int fd = socket_for(protocol, local, 0);
    if (fd < 0)
        return fd;
    if (is_six(local))
        switch_on(fd, IPPROTO_IPV6, IPV6_V6ONLY);
    if (protocol == PROTOCOL_TCP)
        switch_on(fd, SOL_SOCKET, SO_REUSEADDR);
    int error = bind_and_listen(fd, protocol, local, backlog);
    struct endpoint bound;
    if (!error && !endpoint_of_socket(fd, &bound))
        error = errno;
    if (error)
        return closed(fd, error);
    if (port)
        *port = endpoint_port(&bound);
    return fd;
}

/* 0 when `fd` became ready, or a positive errno. */
static int wait_for(int fd, short events, double until_s)
{
    for (;;) {
        struct pollfd one = {.fd = fd, .events = events};
        double left_s = fmax(0, until_s - now_s());
        int ready = poll(&one, 1, (int)ceil(left_s * 1e3));
        if (ready > 0)
            return 0;
        if (ready < 0 && errno != EINTR)
            return errno;
        if (left_s == 0)
            return ETIMEDOUT;
    }
}

int endpoint_accept(int listener, double timeout_s, struct endpoint *from)
{
    struct endpoint peer = {.length = sizeof peer.address};
    double until_s = now_s() + timeout_s;
    for (;;) {
        int error = wait_for(listener, POLLIN, until_s);
        if (error)
            return -error;
        int fd = accept4(listener, (struct sockaddr *)&peer.address, &peer.length, SOCK_CLOEXEC);
        if (fd >= 0) {
            switch_on(fd, IPPROTO_TCP, TCP_NODELAY);
            if (from)
                *from = peer;
            return fd;
        }
        /* Who was there a moment ago may have gone. */
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            return -errno;
    }
}

static int block_again(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0 ? errno : 0;
}

int endpoint_connect_begin(const struct test *test, enum protocol protocol,
                           const struct endpoint *to)
{
    int fd = socket_for(protocol, to, SOCK_NONBLOCK);
    if (fd < 0)
        return fd;
    if (test)
        endpoint_prepare(fd, test);
    if (protocol == PROTOCOL_TCP)
        switch_on(fd, IPPROTO_TCP, TCP_NODELAY);
    if (connect(fd, (const struct sockaddr *)&to->address, to->length) == 0 ||
        errno == EINPROGRESS || errno == EINTR)
        return fd;
    return closed(fd, errno);
}

int endpoint_connect_end(int fd)
{
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    if (!error)
        error = block_again(fd);
    return -error;
}

int endpoint_connect(enum protocol protocol, const struct endpoint *to, double timeout_s)
{
    return endpoint_connect_for(NULL, protocol, to, timeout_s);
}

int endpoint_connect_for(const struct test *test, enum protocol protocol, const struct endpoint *to,
                         double timeout_s)
{
    double until_s = now_s() + timeout_s;
    int fd = endpoint_connect_begin(test, protocol, to);
    if (fd < 0)
        return fd;
    int error = wait_for(fd, POLLOUT, until_s);
    if (!error)
        error = -endpoint_connect_end(fd);
    return error ? closed(fd, error) : fd;
}

int endpoint_congestion(int fd, const char *name)
{
    return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) == 0 ? 0
                                                                                           : -errno;
}

/* With CAP_NET_ADMIN past net.core.*mem_max; otherwise the kernel cuts what it does not allow. */
static void set_buffer(int fd, int forced, int allowed, uint32_t bytes)
{
    int value = (int)bytes;
    if (value > 0 && setsockopt(fd, SOL_SOCKET, forced, &value, sizeof value) != 0)
        setsockopt(fd, SOL_SOCKET, allowed, &value, sizeof value);
}

void endpoint_buffers(int fd, uint32_t send_bytes, uint32_t receive_bytes)
{
    set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, send_bytes);
    set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, receive_bytes);
}

void endpoint_prepare(int fd, const struct test *test)
{
    endpoint_buffers(fd, test->send_buffer_bytes, test->receive_buffer_bytes);
    if (test->congestion[0])
        endpoint_congestion(fd, test->congestion);
}
