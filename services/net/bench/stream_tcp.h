/* The roles of a bulk stream over TCP. */
#ifndef NET_BENCH_STREAM_TCP_H
#define NET_BENCH_STREAM_TCP_H

#include "stream.h"

/* Each returns 0, or a negative errno with `what`. */

int tcp_open(struct stream *stream);
void tcp_close(struct stream *stream);
/* Until over() or stopping(). Of the timed phase no more than the stream's share of the work: it ends
 * exactly there. */
int tcp_send(struct stream *stream, const struct driver *driver);
/* Until it has all `expected` bytes, or stopping(). A far end that closes before is -ECONNRESET. */
int tcp_receive(struct stream *stream, const struct driver *driver);

#endif
