/* The datagrams that open a UDP socket of a session, and what is dropped from one. */
#ifndef NET_BENCH_GREETING_H
#define NET_BENCH_GREETING_H

#include "test.h"
#include "token.h"

#include <stddef.h>
#include <stdint.h>

enum {
    GREETING_WORD = 4,
    GREETING_BYTES = GREETING_WORD + KEY_BYTES + NONCE_BYTES,
    CHALLENGE_BYTES = GREETING_WORD + NONCE_BYTES, /* shorter than what it answers */
};

/* Near to far: here is the key. */
static const char GREETING_KEY[GREETING_WORD + 1] = "hbk1";
/* Far to near: send this back. */
static const char GREETING_CHALLENGE[GREETING_WORD + 1] = "hbc1";
/* Near to far: the key and what was to be sent back. */
static const char GREETING_ANSWER[GREETING_WORD + 1] = "hba1";

/* A sender that does not stop is not waited for longer, however many sockets there are. */
static const double DRAIN_S = 0.1;

/* Drops what is queued on a connected UDP socket, errors of earlier datagrams included, until
 * `until_s` at most. */
void greeting_drain(int fd, double until_s);

#endif
