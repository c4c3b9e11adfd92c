#define _GNU_SOURCE
#include "far_sockets.h"

#include "greeting.h"
#include "monotonic.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A connection has that long to show its key. */
static const double KEY_S = 2;

/* ---- opening -------------------------------------------------------------------------------- */

static bool is_crr(const struct far_sockets *sockets, unsigned index)
{
    return sockets->test->kind == KIND_CRR && index < test_own_sockets(sockets->test);
}

static bool is_udp(const struct far_sockets *sockets, unsigned index)
{
    return sockets->test->protocol == PROTOCOL_UDP && index < test_own_sockets(sockets->test);
}

/* A crr's connections come and go: its askers have one key together, and none is waited for. */
static bool make_keys(struct far_sockets *sockets)
{
    for (unsigned i = 0; i < sockets->count; i++) {
        struct far_socket *socket = &sockets->sockets[i];
        *socket =
            (struct far_socket){.fd = -1, .udp = is_udp(sockets, i), .open = is_crr(sockets, i)};
        if (is_crr(sockets, i) && i > 0)
            memcpy(socket->key, sockets->sockets[0].key, KEY_BYTES);
        else if (!token_random(socket->key, KEY_BYTES) ||
                 !token_random(socket->challenge, NONCE_BYTES))
            return false;
    }
    return true;
}

static int open_ports(struct far_sockets *sockets, struct endpoint local)
{
    uint16_t tcp_port = 0;
    endpoint_set_port(&local, 0);
    for (unsigned i = 0; i < sockets->count; i++) {
        struct far_socket *socket = &sockets->sockets[i];
        int fd = 0;
        if (socket->udp)
            fd = socket->fd = endpoint_listen(PROTOCOL_UDP, &local, 0, &socket->port);
        else if (sockets->listener < 0)
            fd = sockets->listener = endpoint_listen(PROTOCOL_TCP, &local, SOCKETS_MOST, &tcp_port);
        if (fd < 0)
            return fd;
        const struct test load = test_of_load(sockets->test);
        endpoint_prepare(fd, i < test_own_sockets(sockets->test) ? sockets->test : &load);
        /* Who was there a moment ago may be gone. */
        if (fd == sockets->listener && fcntl(fd, F_SETFL, O_NONBLOCK))
            return -errno;
        if (!socket->udp)
            socket->port = tcp_port;
    }
    return 0;
}

int far_sockets_open(struct far_sockets *sockets, const struct test *test,
                     const struct endpoint *local, const struct endpoint *near)
{
    *sockets = (struct far_sockets){
        .test = test, .near = *near, .listener = -1, .count = test_sockets(test)};
    sockets->sockets = calloc(sockets->count, sizeof *sockets->sockets);
    if (!sockets->sockets)
        return -ENOMEM;
    if (!make_keys(sockets))
        return -EIO;
    return open_ports(sockets, *local);
}

static void drop_pending(struct far_sockets *sockets, unsigned index)
{
    sockets->pending[index] = sockets->pending[--sockets->pending_count];
}

static void shut_listener(struct far_sockets *sockets)
{
    while (sockets->pending_count > 0) {
        close(sockets->pending[0].fd);
        drop_pending(sockets, 0);
    }
    if (sockets->listener >= 0)
        close(sockets->listener);
    sockets->listener = -1;
}

void far_sockets_close(struct far_sockets *sockets)
{
    shut_listener(sockets);
    for (unsigned i = 0; sockets->sockets && i < sockets->count; i++)
        if (sockets->sockets[i].fd >= 0)
            close(sockets->sockets[i].fd);
    free(sockets->sockets);
    sockets->sockets = NULL;
    sockets->count = 0;
}

bool far_sockets_all_open(const struct far_sockets *sockets)
{
    for (unsigned i = 0; i < sockets->count; i++)
        if (!sockets->sockets[i].open)
            return false;
    return true;
}

/* ---- TCP ------------------------------------------------------------------------------------ */

static void accept_one(struct far_sockets *sockets)
{
    struct endpoint from = {.length = sizeof from.address};
    int fd =
        accept4(sockets->listener, (struct sockaddr *)&from.address, &from.length, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (!endpoint_same_host(&from, &sockets->near) || sockets->pending_count == PENDING_MOST) {
        sockets->strangers++;
        close(fd);
        return;
    }
    sockets->pending[sockets->pending_count++] =
        (struct pending){.fd = fd, .until_s = now_s() + KEY_S};
}

/* Every key is looked at, so that the time does not tell which one was nearly right. */
static struct far_socket *socket_of_key(const struct far_sockets *sockets, const uint8_t *key)
{
    struct far_socket *found = NULL;
    for (unsigned i = 0; i < sockets->count; i++) {
        struct far_socket *socket = &sockets->sockets[i];
        if (token_equal(key, socket->key, KEY_BYTES) && !socket->open && !socket->udp)
            found = socket;
    }
    return found;
}

/* Whether it is still waited for. */
static bool read_key(struct far_sockets *sockets, struct pending *pending)
{
    ssize_t count =
        recv(pending->fd, pending->key + pending->used, KEY_BYTES - pending->used, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (count > 0)
        pending->used += (size_t)count;
    if (count > 0 && pending->used < KEY_BYTES)
        return true;
    struct far_socket *socket = count > 0 ? socket_of_key(sockets, pending->key) : NULL;
    if (socket) {
        socket->fd = pending->fd;
        socket->open = true;
    } else {
        sockets->strangers++;
        close(pending->fd);
    }
    return false;
}

static void serve_pending(struct far_sockets *sockets, unsigned index, bool readable)
{
    struct pending *pending = &sockets->pending[index];
    if (readable && !read_key(sockets, pending)) {
        drop_pending(sockets, index);
    } else if (now_s() > pending->until_s) {
        sockets->strangers++;
        close(pending->fd);
        drop_pending(sockets, index);
    }
}

/* ---- UDP ------------------------------------------------------------------------------------ */

static bool is_greeting(const struct far_socket *socket, const uint8_t *bytes, ssize_t count,
                        const char *word)
{
    return count == GREETING_BYTES && !memcmp(bytes, word, GREETING_WORD) &&
           token_equal(bytes + GREETING_WORD, socket->key, KEY_BYTES);
}

static void send_challenge(const struct far_socket *socket)
{
    uint8_t bytes[CHALLENGE_BYTES];
    memcpy(bytes, GREETING_CHALLENGE, GREETING_WORD);
    memcpy(bytes + GREETING_WORD, socket->challenge, NONCE_BYTES);
    send(socket->fd, bytes, sizeof bytes,
         MSG_DONTWAIT | MSG_NOSIGNAL); /* the near end asks again */
}

static bool same_end(const struct endpoint *one, const struct endpoint *other)
{
    return endpoint_same_host(one, other) && endpoint_port(one) == endpoint_port(other);
}

/* Datagrams queued before connect() are still delivered after it, from any sender. A near end
 * repeats its key until it is answered. */
static void drop_queued(struct far_sockets *sockets, const struct far_socket *socket,
                        const struct endpoint *near)
{
    const double until_s = now_s() + DRAIN_S;
    uint8_t bytes[GREETING_BYTES + 1];
    do {
        struct endpoint from = {.length = sizeof from.address};
        ssize_t count = recvfrom(socket->fd, bytes, sizeof bytes, MSG_DONTWAIT,
                                 (struct sockaddr *)&from.address, &from.length);
        if (count < 0 && errno != ECONNREFUSED && errno != EINTR)
            return;
        if (count >= 0 &&
            !(same_end(&from, near) && is_greeting(socket, bytes, count, GREETING_KEY)))
            sockets->strangers++;
    } while (now_s() < until_s);
}

static void connect_to(struct far_sockets *sockets, struct far_socket *socket,
                       const struct endpoint *from)
{
    if (connect(socket->fd, (const struct sockaddr *)&from->address, from->length))
        return;
    socket->connected = true;
    drop_queued(sockets, socket, from);
}

static void take_datagram(struct far_sockets *sockets, struct far_socket *socket)
{
    struct endpoint from = {.length = sizeof from.address};
    uint8_t bytes[GREETING_BYTES + 1];
    ssize_t count = recvfrom(socket->fd, bytes, sizeof bytes, MSG_DONTWAIT,
                             (struct sockaddr *)&from.address, &from.length);
    if (count < 0)
        return;
    if (!endpoint_same_host(&from, &sockets->near)) {
        sockets->strangers++;
    } else if (is_greeting(socket, bytes, count, GREETING_KEY)) {
        if (!socket->connected)
            connect_to(sockets, socket, &from);
        if (socket->connected)
            send_challenge(socket);
    } else if (socket->connected && is_greeting(socket, bytes, count, GREETING_ANSWER) &&
               token_equal(bytes + GREETING_WORD + KEY_BYTES, socket->challenge, NONCE_BYTES)) {
        socket->open = true;
    } else {
        sockets->strangers++;
    }
}

void far_sockets_drain(const struct far_sockets *sockets)
{
    const double until_s = now_s() + DRAIN_S;
    for (unsigned i = 0; i < sockets->count; i++)
        if (sockets->sockets[i].udp)
            greeting_drain(sockets->sockets[i].fd, until_s);
}

/* ---- as a whole ----------------------------------------------------------------------------- */

unsigned far_sockets_fds(const struct far_sockets *sockets, struct pollfd *fds)
{
    unsigned count = 0;
    if (far_sockets_all_open(sockets))
        return 0;
    fds[count++] = (struct pollfd){.fd = sockets->listener, .events = POLLIN};
    for (unsigned i = 0; i < sockets->pending_count; i++)
        fds[count++] = (struct pollfd){.fd = sockets->pending[i].fd, .events = POLLIN};
    for (unsigned i = 0; i < sockets->count; i++)
        if (sockets->sockets[i].udp && !sockets->sockets[i].open)
            fds[count++] = (struct pollfd){.fd = sockets->sockets[i].fd, .events = POLLIN};
    return count;
}

static struct far_socket *socket_of_fd(const struct far_sockets *sockets, int fd)
{
    for (unsigned i = 0; i < sockets->count; i++)
        if (sockets->sockets[i].fd == fd)
            return &sockets->sockets[i];
    return NULL;
}

void far_sockets_serve(struct far_sockets *sockets, const struct pollfd *fds, unsigned count)
{
    if (count == 0)
        return;
    unsigned pending = sockets->pending_count;
    for (unsigned i = 1 + pending; i < count; i++)
        if (fds[i].revents)
            take_datagram(sockets, socket_of_fd(sockets, fds[i].fd));
    for (unsigned i = pending; i-- > 0;) /* from behind: the last takes the place of one dropped */
        serve_pending(sockets, i, fds[1 + i].revents);
    if (fds[0].revents)
        accept_one(sockets);
    if (far_sockets_all_open(sockets) && sockets->test->kind != KIND_CRR)
        shut_listener(sockets);
}
