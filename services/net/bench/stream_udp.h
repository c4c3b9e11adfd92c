/* The roles of a bulk stream over UDP. */
#ifndef NET_BENCH_STREAM_UDP_H
#define NET_BENCH_STREAM_UDP_H

#include "stream.h"

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
