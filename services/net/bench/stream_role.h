/* What all roles of bulk streams have in common. */
#ifndef NET_BENCH_STREAM_ROLE_H
#define NET_BENCH_STREAM_ROLE_H

#include "stream.h"

#include <stddef.h>
#include <sys/types.h>

/* Around what a role does in a phase: its CPU time, and what the kernel says. `before_cpu_s` is what
 * the first of them gives. */
double role_begin(void);
void role_end(struct stream *stream, double before_cpu_s);

/* Sets `what` from what was being done; the negative errno. `remedy` may be NULL. */
int role_failed(struct stream *stream, const char *doing, int error, const char *remedy);
/* Whether a call that gave this errno is to be made again: it was interrupted, or had nothing to do
 * for as long as the socket's time limit. */
bool role_again(int error);
/* Notes a call that brought this many bytes. */
void role_received(struct stream *stream, const struct driver *driver, uint64_t bytes);
/* What the sender is to move in this phase; UINT64_MAX: time decides. */
uint64_t role_share(const struct stream *stream);
/* Page-aligned memory with bytes that no link compresses; NULL without memory. */
char *role_block(size_t bytes);

#endif
