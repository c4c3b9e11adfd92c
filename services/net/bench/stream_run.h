/* A stream from its opening to its end, whatever its protocol and role. */
#ifndef NET_BENCH_STREAM_RUN_H
#define NET_BENCH_STREAM_RUN_H

#include "stream.h"

/* Each returns 0, or a negative errno with `what`. */

/* Buffers, options, congestion control and what a role needs besides, on stream->fd, which is
 * connected already; test, index, role and fd are set, the rest is zero. Askers and answerers get
 * the socket's options alone. */
int stream_open(struct stream *stream);
/* Clears the counts and reads the kernel's; before either end's role begins, so that nothing of the
 * phase is missed. */
void stream_begin_phase(struct stream *stream, uint8_t phase);
/* Frees what stream_open() made; the descriptor stays open. */
void stream_close(struct stream *stream);
/* Sends or receives over TCP or UDP, as the stream's role and protocol ask for. */
int stream_run(struct stream *stream, const struct driver *driver);

#endif
