/* Round trips: one end asks, the other answers with what it was sent.
 *
 * A request and its answer have block_bytes each. Their first bytes, eight or as many as there are,
 * tell which round trip they belong to, so that a late answer is never taken for the next one's; an
 * answer that differs is an error.
 *
 * What the counts of a phase mean here: `datagrams` requests sent (an asker's) or answered,
 * whatever the protocol; `lost_operations` of them have not been answered in time, so the
 * difference was; `duplicated` answers came late or twice; `bytes` payload of one way of the round
 * trips that were done; `first_s` and `last_s` begin and end of the phase. An asker calls over()
 * with the round trips it has begun, not with bytes, and done() of each; an answerer calls moved().
 * `expected` of an answerer is its asker's `datagrams`. */
#ifndef HOSTBENCH_RR_H
#define HOSTBENCH_RR_H

#include "stream.h"

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

enum { RR_KEY_BYTES = 16 };

/* Whatever has not been answered by then is lost (UDP), or its far end is (crr_ask). */
static const double RR_ANSWER_S = 1;

/* All return 0 or a negative errno, and `what` of the stream says what was being done:
 * -EBADMSG is a wrong answer, -ECONNRESET a far end that has closed, -ETIMEDOUT one that is silent.
 * Over TCP and UDP alike: the socket is connected, its test says which. */
int rr_ask(struct stream *stream, const struct driver *driver);
/* Ends when `expected` is known and reached, or (UDP) nothing more has come for 100 ms; over TCP also
 * when the asker has closed its end between two round trips. */
int rr_answer(struct stream *stream, const struct driver *driver);

/* Round trips of a connection each: connect, the key, request, answer, both ends closed. The answerer
 * closes first and the asker resets what is left, so no port waits out its two minutes; else a few
 * seconds would use up all of them. `fd` of the stream is not used. `near`: address to come from,
 * its port is not used; NULL: the kernel's choice. */
int crr_ask(struct stream *stream, const struct sockaddr_storage *far,
            const struct sockaddr_storage *near, const uint8_t key[RR_KEY_BYTES],
            const struct driver *driver);
/* Any number of them may share a listening socket, so all streams present one key. Connections
 * from elsewhere than `allowed` (its port is not used) or without the key are closed and added to
 * `strangers`. */
int crr_answer(int listen_fd, struct stream *stream, const struct sockaddr_storage *allowed,
               const uint8_t key[RR_KEY_BYTES], _Atomic uint64_t *strangers,
               const struct driver *driver);

#endif
