#define _GNU_SOURCE
#include "near_sockets.h"

#include "greeting.h"
#include "monotonic.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { GREET_MS = 50 };

static bool is_own(const struct near_sockets *sockets, unsigned index)
{
    return index < test_own_sockets(sockets->test);
}

static int connect_socket(struct near_sockets *sockets, unsigned index, double until_s)
{
    struct near_socket *socket = &sockets->sockets[index];
    struct endpoint to = sockets->far;
    double left_s = until_s - now_s();
    enum protocol protocol = socket->udp ? PROTOCOL_UDP : PROTOCOL_TCP;
    endpoint_set_port(&to, sockets->openings[index].port);
    socket->fd =
        left_s > 0 ? endpoint_connect_for(sockets->test, protocol, &to, left_s) : -ETIMEDOUT;
    if (socket->fd < 0 || socket->udp)
        return socket->fd < 0 ? socket->fd : 0;
    ssize_t sent = send(socket->fd, sockets->openings[index].key, KEY_BYTES, MSG_NOSIGNAL);
    return sent == KEY_BYTES ? 0 : -ECONNRESET;
}

int near_sockets_open(struct near_sockets *sockets, const struct test *test,
                      const struct endpoint *far, const struct opening *openings, double until_s,
                      char *why, size_t size)
{
    unsigned count = test_sockets(test);
    *sockets = (struct near_sockets){.test = test, .far = *far, .openings = openings};
    sockets->sockets = calloc(count, sizeof *sockets->sockets);
    if (!sockets->sockets) {
        snprintf(why, size, "no memory for %u sockets", count);
        return -ENOMEM;
    }
    for (; sockets->count < count; sockets->count++) {
        unsigned index = sockets->count;
        bool own = is_own(sockets, index);
        sockets->sockets[index] =
            (struct near_socket){.fd = -1, .udp = own && test->protocol == PROTOCOL_UDP};
        int error = own && test->kind == KIND_CRR ? 0 : connect_socket(sockets, index, until_s);
        if (error) {
            snprintf(why, size,
                     "data socket %u of %u cannot be connected to port %u of the far end: %s: is "
                     "that port let through?",
                     index + 1, count, openings[index].port, strerror(-error));
            return error;
        }
    }
    return 0;
}

void near_sockets_close(struct near_sockets *sockets)
{
    for (unsigned i = 0; sockets->sockets && i < sockets->count; i++)
        if (sockets->sockets[i].fd >= 0)
            close(sockets->sockets[i].fd);
    free(sockets->sockets);
    *sockets = (struct near_sockets){0};
}

/* ---- UDP ------------------------------------------------------------------------------------ */

static void greet(const struct near_sockets *sockets, unsigned index)
{
    const struct near_socket *socket = &sockets->sockets[index];
    uint8_t bytes[GREETING_BYTES] = {0};
    memcpy(bytes, socket->challenged ? GREETING_ANSWER : GREETING_KEY, GREETING_WORD);
    memcpy(bytes + GREETING_WORD, sockets->openings[index].key, KEY_BYTES);
    if (socket->challenged)
        memcpy(bytes + GREETING_WORD + KEY_BYTES, socket->challenge, NONCE_BYTES);
    send(socket->fd, bytes, sizeof bytes,
         MSG_NOSIGNAL | MSG_DONTWAIT); /* what is lost is repeated */
}

static void take_challenge(const struct near_sockets *sockets, unsigned index)
{
    struct near_socket *socket = &sockets->sockets[index];
    uint8_t bytes[CHALLENGE_BYTES + 1];
    ssize_t count = recv(socket->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count != CHALLENGE_BYTES || memcmp(bytes, GREETING_CHALLENGE, GREETING_WORD))
        return;
    bool first = !socket->challenged;
    socket->challenged = true;
    memcpy(socket->challenge, bytes + GREETING_WORD, NONCE_BYTES);
    if (first)
        greet(sockets, index);
}

/* All UDP sockets come before the others: the load's are TCP. */
static unsigned udp_sockets(const struct near_sockets *sockets)
{
    unsigned count = 0;
    while (count < sockets->count && sockets->sockets[count].udp)
        count++;
    return count;
}

void near_sockets_greet(struct near_sockets *sockets)
{
    struct pollfd fds[SOCKETS_MOST];
    const double until_s = now_s() + GREET_MS * 1e-3;
    unsigned count = udp_sockets(sockets);
    if (count == 0)
        return;
    for (unsigned i = 0; i < count; i++)
        greet(sockets, i);
    do {
        for (unsigned i = 0; i < count; i++)
            fds[i] = (struct pollfd){.fd = sockets->sockets[i].fd, .events = POLLIN};
        poll(fds, count, GREET_MS / 5);
        for (unsigned i = 0; i < count; i++)
            if (fds[i].revents)
                take_challenge(sockets, i);
    } while (now_s() < until_s && near_sockets_unanswered(sockets) > 0);
}

unsigned near_sockets_unanswered(const struct near_sockets *sockets)
{
    unsigned unanswered = 0;
    for (unsigned i = 0; i < udp_sockets(sockets); i++)
        unanswered += !sockets->sockets[i].challenged;
    return unanswered;
}

void near_sockets_drain(const struct near_sockets *sockets)
{
    const double until_s = now_s() + DRAIN_S;
    for (unsigned i = 0, count = udp_sockets(sockets); i < count; i++)
        greeting_drain(sockets->sockets[i].fd, until_s);
}
