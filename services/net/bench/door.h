/* Who may come in at the far end: the port that the session was opened on, and the one connection
 * to it that has proved the token. Before that a caller can have nothing but a few bytes read. */
#ifndef NET_BENCH_DOOR_H
#define NET_BENCH_DOOR_H

#include "grant.h"
#include "wire.h"

#include <poll.h>

enum {
    CALLERS_MOST = 8,      /* at a time; one more and the oldest must go */
    WRONG_PROOFS_MOST = 3, /* … end the session */
    DOOR_FDS = 1 + CALLERS_MOST,
};

struct caller {
    int fd;
    struct endpoint from;
    double until_s;  /* to prove the token, or to read why it was refused */
    bool greeted;    /* it has sent HELLO and got its challenge */
    bool turned_off; /* it was refused; whatever it still says is not looked at */
    uint8_t near_nonce[NONCE_BYTES], far_nonce[NONCE_BYTES];
    struct inbox inbox;
};

struct door {
    int listener; /* -1: shut */
    struct endpoint address;
    const struct grant *grant;
    struct caller *callers[CALLERS_MOST]; /* the oldest first */
    unsigned count;
    unsigned wrong_proofs;
    bool burnt;         /* the token has been proved: no other caller comes in */
    uint64_t strangers; /* turned away because of their address */
};

/* Listens on the grant's address. 0, or a negative errno. */
int door_open(struct door *door, const struct grant *grant);
/* What to poll for, DOOR_FDS at most; how many. */
unsigned door_fds(const struct door *door, struct pollfd *fds);
/* Takes in what poll() found in these. The caller that has just proved the token, to be let go of
 * by caller_free(), or NULL. */
struct caller *door_serve(struct door *door, const struct pollfd *fds, unsigned count);
void door_close(struct door *door);
void caller_free(struct caller *caller); /* closes its connection; NULL is none */

#endif
