/* The data sockets of the near end, connected to those of the far end. */
#ifndef NET_BENCH_NEAR_SOCKETS_H
#define NET_BENCH_NEAR_SOCKETS_H

#include "control.h"
#include "endpoint.h"
#include "test.h"

#include <stdbool.h>
#include <stddef.h>

struct near_socket {
    int fd; /* -1: none (yet); of a crr never */
    bool udp;
    bool challenged; /* UDP: the far end wants `challenge` back */
    uint8_t challenge[NONCE_BYTES];
};

struct near_sockets {
    const struct test *test;
    struct endpoint far; /* the port is that of the control connection */
    unsigned count;
    struct near_socket *sockets;
    const struct opening *openings; /* one a socket */
};

/* Connects all; over TCP they have shown their keys then. 0, or a negative errno with one line in
 * `why`. */
int near_sockets_open(struct near_sockets *sockets, const struct test *test,
                      const struct endpoint *far, const struct opening *openings, double until_s,
                      char *why, size_t size);
/* Shows the keys of UDP sockets and sends challenges back, for about 50 ms: to be repeated until the
 * far end says that all are open. At once when there is no UDP. */
void near_sockets_greet(struct near_sockets *sockets);
/* UDP sockets that the far end has not answered yet. */
unsigned near_sockets_unanswered(const struct near_sockets *sockets);
/* Drops what is queued on UDP sockets. */
void near_sockets_drain(const struct near_sockets *sockets);
void near_sockets_close(struct near_sockets *sockets);

#endif
