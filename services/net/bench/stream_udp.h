/* The roles of a bulk stream over UDP. */
#ifndef NET_BENCH_STREAM_UDP_H
#define NET_BENCH_STREAM_UDP_H

#include "stream.h"

/* The kernel counts a buffer of joined datagrams that it drops as one: it held as many as each of the
 * `received` ones did on average, and no more were dropped than are missing of `expected`, which may
 * be STREAM_UNKNOWN. More than were expected can have come: blocks too short for a number cannot be
 * distinguished from those of the phase before, nor from copies that the network made. */
static inline uint64_t udp_dropped(uint64_t buffers, uint64_t received, uint64_t datagrams,
                                   uint64_t expected)
{
    uint64_t dropped = (uint64_t)((double)buffers * (double)datagrams / (double)received + 0.5);
    uint64_t missing = expected > datagrams ? expected - datagrams : 0;
    return dropped < missing ? dropped : missing;
}

/* Each returns 0, or a negative errno with `what`. */

int udp_open(struct stream *stream);
void udp_close(struct stream *stream);
/* Until over() or stopping(). Of the timed phase no more than the stream's share of the work: it ends
 * with the last whole block. */
int udp_send(struct stream *stream, const struct driver *driver);
/* Until it has all `expected` datagrams, or none came for 100 ms after that was known, or 2 s after
 * it, or stopping(). */
int udp_receive(struct stream *stream, const struct driver *driver);

#endif
