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
/* At a time: one after the other, many streams would take many round trips; the far end keeps
 * PENDING_MOST connections whose key has not come yet. */
enum { CONNECTING_MOST = 32 };

static bool is_own(const struct near_sockets *sockets, unsigned index)
{
    return index < test_own_sockets(sockets->test);
}

static bool is_crr(const struct near_sockets *sockets, unsigned index)
{
    return is_own(sockets, index) && sockets->test->kind == KIND_CRR;
}

static int begin_connecting(struct near_sockets *sockets, unsigned index)
{
    struct near_socket *socket = &sockets->sockets[index];
    struct endpoint to = sockets->far;
    const struct test load = test_of_load(sockets->test);
    const struct test *test = is_own(sockets, index) ? sockets->test : &load;
    endpoint_set_port(&to, sockets->openings[index].port);
    int fd = endpoint_connect_begin(test, socket->udp ? PROTOCOL_UDP : PROTOCOL_TCP, &to);
    if (fd < 0)
        return fd;
    socket->fd = fd;
    return 0;
}

static int end_connecting(struct near_sockets *sockets, unsigned index)
{
    const struct near_socket *socket = &sockets->sockets[index];
    int error = endpoint_connect_end(socket->fd);
    if (error || socket->udp)
        return error;
    ssize_t sent = send(socket->fd, sockets->openings[index].key, KEY_BYTES, MSG_NOSIGNAL);
    return sent == KEY_BYTES ? 0 : -ECONNRESET;
}

/* Sockets that are being connected. */
struct connecting {
    struct pollfd fds[CONNECTING_MOST];
    unsigned indexes[CONNECTING_MOST];
    unsigned count;
    unsigned at; /* the socket that is dealt with: where it fails, that one did */
};

static int begin_some(struct near_sockets *sockets, struct connecting *now, unsigned *next)
{
    for (; *next < sockets->count && now->count < CONNECTING_MOST; ++*next) {
        now->at = *next;
        if (is_crr(sockets, now->at))
            continue;
        int error = begin_connecting(sockets, now->at);
        if (error)
            return error;
        now->fds[now->count] =
            (struct pollfd){.fd = sockets->sockets[now->at].fd, .events = POLLOUT};
        now->indexes[now->count++] = now->at;
    }
    return 0;
}

static int end_some(struct near_sockets *sockets, struct connecting *now, double until_s)
{
    double left_s = until_s - now_s();
    now->at = now->indexes[0];
    if (left_s <= 0)
        return -ETIMEDOUT;
    if (poll(now->fds, now->count, (int)(left_s * 1e3) + 1) < 0)
        return errno == EINTR ? 0 : -errno;
    for (unsigned i = now->count; i-- > 0;) { /* from behind: the last takes its place */
        now->at = now->indexes[i];
        int error = now->fds[i].revents ? end_connecting(sockets, now->at) : 0;
        if (error)
            return error;
        if (now->fds[i].revents) {
            now->count--;
            now->fds[i] = now->fds[now->count];
            now->indexes[i] = now->indexes[now->count];
        }
    }
    return 0;
}

static int connect_all(struct near_sockets *sockets, double until_s, unsigned *failed)
{
    struct connecting now = {.count = 0};
    unsigned next = 0;
    int error = begin_some(sockets, &now, &next);
    while (!error && now.count > 0) {
        error = end_some(sockets, &now, until_s);
        if (!error)
            error = begin_some(sockets, &now, &next);
    }
    *failed = now.at;
    return error;
}

int near_sockets_open(struct near_sockets *sockets, const struct test *test,
                      const struct endpoint *far, const struct opening *openings, double until_s,
                      char *why, size_t size)
{
    unsigned count = test_sockets(test), failed;
    *sockets = (struct near_sockets){.test = test, .far = *far, .openings = openings};
    sockets->sockets = calloc(count, sizeof *sockets->sockets);
    if (!sockets->sockets) {
        snprintf(why, size, "not enough memory for %u sockets", count);
        return -ENOMEM;
    }
    sockets->count = count;
    for (unsigned i = 0; i < count; i++)
        sockets->sockets[i] = (struct near_socket){
            .fd = -1, .udp = is_own(sockets, i) && test->protocol == PROTOCOL_UDP};
    int error = connect_all(sockets, until_s, &failed);
    if (error)
        snprintf(why, size,
                 "data socket %u of %u cannot be connected to port %u of the far end: %s: is that "
                 "port let through?",
                 failed + 1, count, openings[failed].port, strerror(-error));
    return error;
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
