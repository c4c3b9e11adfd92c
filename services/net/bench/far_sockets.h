/* The data sockets of the far end. None is there before a test was agreed on, none takes anything
 * but from the near end's address, and each opens to its own key alone:
 *
 * TCP: one port; the first 16 bytes of a connection are the key of its socket.
 * UDP: a port each. The first datagram from there with the key connects the socket; what was queued
 * before is dropped; the near end has to send back a number first, so nothing is ever sent to an
 * address that did not ask. */
#ifndef NET_BENCH_FAR_SOCKETS_H
#define NET_BENCH_FAR_SOCKETS_H

#include "control.h"
#include "endpoint.h"
#include "test.h"

#include <poll.h>
#include <stdatomic.h>

enum {
    PENDING_MOST = 64, /* connections whose key has not come yet */
    FAR_SOCKETS_FDS = 1 + PENDING_MOST + SOCKETS_MOST,
};

struct far_socket {
    int fd; /* -1: none yet; of a crr never */
    uint16_t port;
    uint8_t key[KEY_BYTES];
    bool udp;
    bool connected; /* UDP: to the sender of the key, which must still answer the challenge */
    bool open;      /* the near end is at its other end */
    uint8_t challenge[NONCE_BYTES];
};

struct pending {
    int fd;
    double until_s;
    uint8_t key[KEY_BYTES];
    size_t used;
};

struct far_sockets {
    const struct test *test;
    struct endpoint near; /* the control connection's other end; its port does not count */
    int listener;         /* TCP; -1: none. Shut when all are open, but for a crr */
    unsigned count;
    struct far_socket *sockets;
    struct pending pending[PENDING_MOST];
    unsigned pending_count;
    _Atomic uint64_t strangers;
};

/* Makes ports and keys. `local`: where the control connection came to. 0, or a negative errno. */
int far_sockets_open(struct far_sockets *sockets, const struct test *test,
                     const struct endpoint *local, const struct endpoint *near);
bool far_sockets_all_open(const struct far_sockets *sockets);
/* What to poll for, FAR_SOCKETS_FDS at most; how many. Nothing once all are open. */
unsigned far_sockets_fds(const struct far_sockets *sockets, struct pollfd *fds);
void far_sockets_serve(struct far_sockets *sockets, const struct pollfd *fds, unsigned count);
/* Drops what is queued on the UDP sockets: late datagrams of the opening, or of the ramp. */
void far_sockets_drain(const struct far_sockets *sockets);
void far_sockets_close(struct far_sockets *sockets);

#endif
