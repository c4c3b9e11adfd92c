#define _GNU_SOURCE
#include "door.h"

#include "control.h"
#include "monotonic.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A caller has that long for the handshake, which takes two round trips. */
static const double HANDSHAKE_S = 2;
/* … and that long to read why it was refused: a connection closed with bytes unread is reset, and
 * the reason may be lost with it. */
static const double FAREWELL_S = 1;
static const double SEND_S = 0.2;

int door_open(struct door *door, const struct grant *grant)
{
    uint16_t port;
    *door = (struct door){.address = grant->address, .grant = grant};
    door->listener = endpoint_listen(PROTOCOL_TCP, &grant->address, 2 * CALLERS_MOST, &port);
    if (door->listener < 0)
        return door->listener;
    endpoint_set_port(&door->address, port);
    return fcntl(door->listener, F_SETFL, O_NONBLOCK) ? -errno : 0;
}

void caller_free(struct caller *caller)
{
    if (!caller)
        return;
    shutdown(caller->fd, SHUT_RDWR); /* a thread may have the descriptor in a table of its own */
    close(caller->fd);
    free(caller);
}

/* Takes it out of the row without letting go of it. */
static struct caller *remove_caller(struct door *door, unsigned index)
{
    struct caller *caller = door->callers[index];
    door->count--;
    memmove(door->callers + index, door->callers + index + 1,
            (door->count - index) * sizeof *door->callers);
    return caller;
}

void door_close(struct door *door)
{
    while (door->count > 0)
        caller_free(remove_caller(door, 0));
    if (door->listener >= 0)
        close(door->listener);
    door->listener = -1;
}

static void turn_off(struct caller *caller, enum refusal refusal, const char *text)
{
    struct frame frame;
    control_put_refused(&frame, refusal, text);
    frame_send(&frame, caller->fd, SEND_S);
    shutdown(caller->fd, SHUT_WR);
    caller->turned_off = true;
    caller->until_s = now_s() + FAREWELL_S;
}

static void turn_off_used(struct caller *caller)
{
    turn_off(caller, REFUSAL_USED, "its token has been used already: open another session");
}

/* ---- who comes ------------------------------------------------------------------------------ */

static void admit(struct door *door, int fd, const struct endpoint *from)
{
    struct caller *caller = calloc(1, sizeof *caller);
    int on = 1;
    /* Messages come several in a row; each but the first would wait for an acknowledgement. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (!caller) {
        close(fd);
        return;
    }
    *caller = (struct caller){.fd = fd, .from = *from, .until_s = now_s() + HANDSHAKE_S};
    if (door->count == CALLERS_MOST)
        caller_free(remove_caller(door, 0));
    door->callers[door->count++] = caller;
    if (door->burnt)
        turn_off_used(caller);
}

static void accept_one(struct door *door)
{
    struct endpoint from = {.length = sizeof from.address};
    int fd = accept4(door->listener, (struct sockaddr *)&from.address, &from.length,
                     SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    if (endpoint_same_host(&from, &door->grant->allowed)) {
        admit(door, fd, &from);
        return;
    }
    door->strangers++;
    close(fd);
}

/* ---- the handshake -------------------------------------------------------------------------- */

/* All of these: whether the caller stays. */
static bool greet(struct caller *caller, struct reader *body)
{
    struct message_hello hello;
    struct frame frame;
    if (!control_read_hello(body, &hello)) {
        turn_off(caller, REFUSAL_PROTOCOL, "its HELLO is malformed");
        return true;
    }
    if (hello.version != CONTROL_VERSION) {
        turn_off(caller, REFUSAL_VERSION,
                 "it speaks another version: install the same hostbench on both hosts");
        return true;
    }
    memcpy(caller->near_nonce, hello.nonce, NONCE_BYTES);
    if (!token_random(caller->far_nonce, NONCE_BYTES))
        return false;
    caller->greeted = true;
    control_put_challenge(&frame, caller->far_nonce);
    return frame_send(&frame, caller->fd, SEND_S) == 0;
}

static bool proves(struct door *door, struct caller *caller, struct reader *body)
{
    uint8_t shown[MAC_BYTES], right[MAC_BYTES];
    if (!control_read_proof(body, shown))
        return false;
    token_mac(&door->grant->token, "near", caller->near_nonce, caller->far_nonce, right);
    return token_equal(shown, right, MAC_BYTES);
}

/* Our own proof, and what the session allows. */
static bool welcome(struct door *door, struct caller *caller)
{
    struct message_ready ready = {.caps = door->grant->caps};
    struct frame frame;
    token_mac(&door->grant->token, "far", caller->near_nonce, caller->far_nonce, ready.mac);
    control_put_ready(&frame, &ready);
    return frame_send(&frame, caller->fd, SEND_S) == 0;
}

/* Burns the token. All others who are waiting came too late. */
static void burn(struct door *door, const struct caller *winner)
{
    door->burnt = true;
    for (unsigned i = 0; i < door->count; i++)
        if (door->callers[i] != winner && !door->callers[i]->turned_off)
            turn_off_used(door->callers[i]);
}

/* One message: whether the caller stays; *proved when it has. */
static bool hear(struct door *door, struct caller *caller, unsigned type, struct reader *body,
                 bool *proved)
{
    if (!caller->greeted && type == MESSAGE_HELLO)
        return greet(caller, body);
    if (!caller->greeted || type != MESSAGE_PROOF) {
        turn_off(caller, REFUSAL_PROTOCOL, "it does not begin as a near end of hostbench does");
        return true;
    }
    if (!proves(door, caller, body)) {
        door->wrong_proofs++;
        turn_off(caller, REFUSAL_TOKEN,
                 "it does not know the token: use the one that this session was opened with");
        return true;
    }
    burn(door, caller);
    *proved = welcome(door, caller);
    return *proved;
}

static bool drop_what_comes(const struct caller *caller)
{
    char bytes[4096];
    ssize_t count = recv(caller->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

static bool serve_caller(struct door *door, struct caller *caller, bool *proved)
{
    unsigned type;
    struct reader body;
    int next = 0;
    if (caller->turned_off)
        return drop_what_comes(caller);
    if (inbox_fill(&caller->inbox, caller->fd) < 0)
        return false;
    while (!*proved && !caller->turned_off && (next = inbox_next(&caller->inbox, &type, &body)) > 0)
        if (!hear(door, caller, type, &body, proved))
            return false;
    return next >= 0;
}

/* ---- as a whole ----------------------------------------------------------------------------- */

unsigned door_fds(const struct door *door, struct pollfd *fds)
{
    fds[0] = (struct pollfd){.fd = door->listener, .events = POLLIN};
    for (unsigned i = 0; i < door->count; i++)
        fds[1 + i] = (struct pollfd){.fd = door->callers[i]->fd, .events = POLLIN};
    return 1 + door->count;
}

struct caller *door_serve(struct door *door, const struct pollfd *fds, unsigned count)
{
    struct caller *proven = NULL;
    for (unsigned i = count - 1; i-- > 0;) { /* from behind, for some are taken out */
        struct caller *caller = door->callers[i];
        bool proved = false, stays = true;
        if (fds[1 + i].revents)
            stays = serve_caller(door, caller, &proved);
        if (proved)
            proven = remove_caller(door, i);
        else if (!stays || now_s() > caller->until_s)
            caller_free(remove_caller(door, i));
    }
    if (fds[0].revents)
        accept_one(door);
    return proven;
}
