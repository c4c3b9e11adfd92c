/* Addresses, and sockets between them: how they come to be, and what the kernel says of them. */
#ifndef NET_BENCH_ENDPOINT_H
#define NET_BENCH_ENDPOINT_H

#include "test.h"

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* An IPv4 or IPv6 address with a port. */
struct endpoint {
    struct sockaddr_storage address;
    socklen_t length;
};

enum { ENDPOINT_TEXT = INET6_ADDRSTRLEN + IF_NAMESIZE + 10 };

/* Addresses, not names: who resolves a name chooses the path. "192.0.2.1", "2001:db8::1",
 * "fe80::1%eth0"; false when `text` is none. */
bool endpoint_parse(const char *text, uint16_t port, struct endpoint *endpoint);
/* Without the port; `text` has ENDPOINT_TEXT bytes. */
void endpoint_format(const struct endpoint *endpoint, char *text);
uint16_t endpoint_port(const struct endpoint *endpoint);
void endpoint_set_port(struct endpoint *endpoint, uint16_t port);
/* The same host address; an IPv4 one mapped into IPv6 is the IPv4 one. Ports do not count. */
bool endpoint_same_host(const struct endpoint *one, const struct endpoint *other);
bool endpoint_is_loopback(const struct endpoint *endpoint);
/* Why there is no far end at this address (multicast, broadcast, unspecified); NULL: there may be. */
const char *endpoint_refused(const struct endpoint *endpoint);
/* Of a socket; false when it has none. */
bool endpoint_of_socket(int fd, struct endpoint *local);
bool endpoint_of_peer(int fd, struct endpoint *peer);

/* All of these give a descriptor, which is closed on exec, or a negative errno. */

/* A bound socket, TCP ones listening, for `backlog` connections; port 0: any. `port` gets it. */
int endpoint_listen(enum protocol protocol, const struct endpoint *local, int backlog,
                    uint16_t *port);
/* -ETIMEDOUT when no connection came within `timeout_s`; `from` may be NULL. The socket blocks. */
int endpoint_accept(int listener, double timeout_s, struct endpoint *from);
/* Blocks for `timeout_s` at most (-ETIMEDOUT); the socket blocks afterwards. UDP: connects at once.
 * With TCP_NODELAY. */
int endpoint_connect(enum protocol protocol, const struct endpoint *to, double timeout_s);
/* The same in two steps, for many at once: a descriptor that does not block, which poll() finds
 * writable when it is connected or has failed; 0 or a negative errno that says which. */
int endpoint_connect_begin(const struct test *test, enum protocol protocol,
                           const struct endpoint *to);
int endpoint_connect_end(int fd);
/* … after endpoint_prepare(). */
int endpoint_connect_for(const struct test *test, enum protocol protocol, const struct endpoint *to,
                         double timeout_s);
/* What a data socket needs before it is connected, as far as it can be had (stream_open() tells what
 * cannot): buffers, for the window's scale is agreed on in the handshake, and the congestion control,
 * for a connection that began with bbr is paced for good, whatever it is given later. Listening
 * sockets hand both on. */
void endpoint_prepare(int fd, const struct test *test);

/* 0 or a negative errno. */
int endpoint_congestion(int fd, const char *name); /* -ENOENT, -EPERM: not to be had */
void endpoint_congestion_in_force(int fd, char name[CONGESTION_SIZE]); /* "" where there is none */
/* 0: the kernel's own. Over the host's maximum with CAP_NET_ADMIN alone; else what it allows. */
void endpoint_buffers(int fd, uint32_t send_bytes, uint32_t receive_bytes);
void endpoint_buffers_in_force(int fd, uint32_t *send_bytes, uint32_t *receive_bytes);

/* NULL, or why this congestion control cannot be had here (tcp_available_congestion_control and
 * tcp_allowed_congestion_control). One calling thread. */
const char *endpoint_congestion_unsupported(const char *name);

/* Of a TCP connection, so far. */
struct endpoint_tcp {
    uint64_t retransmits;
    uint32_t congestion_window_bytes, path_mtu_bytes, mss_bytes;
    double rtt_s;
};
bool endpoint_tcp(int fd, struct endpoint_tcp *tcp);
/* Datagrams this socket has dropped since it is there, modulo 2^32. */
uint32_t endpoint_drops(int fd);
/* What fits one packet to where a socket is connected; 0: unknown. */
uint32_t endpoint_path_mtu(int fd);
/* IP and UDP headers of a datagram to it: 28 or 48 bytes. */
uint32_t endpoint_udp_header_bytes(const struct endpoint *to);

/* The way from here to somewhere. */
struct endpoint_route {
    struct endpoint source;
    char interface[IF_NAMESIZE]; /* "": unknown */
    const char *kind;            /* lo, physical, veth, bridge, virtual …; "unknown" */
    uint32_t mtu_bytes;          /* of the interface; 0: unknown */
    uint32_t path_mtu_bytes;     /* 0: unknown */
};
/* Sends nothing. 0 or a negative errno: -ENETUNREACH, -EINVAL … */
int endpoint_route(const struct endpoint *to, struct endpoint_route *route);
/* What a socket at `local` reaches `peer` through: `route`'s interface, kind and mtu_bytes. `peer` may
 * be NULL. */
void endpoint_interface(const struct endpoint *local, const struct endpoint *peer,
                        struct endpoint_route *route);

/* The fastest way to send datagrams of `block_bytes` along this route: UDP_GSO where the kernel has
 * it and a block fits one packet, else UDP_MMSG. `why_not_gso` gets a reason or NULL. */
enum udp_path endpoint_udp_path(const struct endpoint_route *route, uint32_t block_bytes,
                                const char **why_not_gso);

#endif
