/* What all roles of bulk streams have in common. */
#ifndef NET_BENCH_STREAM_ROLE_H
#define NET_BENCH_STREAM_ROLE_H

#include "stream.h"

#include <stddef.h>
#include <sys/types.h>

/* Around what a role does in a phase: its CPU time, and the kernel's counters. */
struct role_watch {
    double cpu_s;
    uint64_t retransmits;
    uint32_t drops;
};

struct role_watch role_begin(struct stream *stream);
void role_end(struct stream *stream, const struct role_watch *watch);

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

int tcp_open(struct stream *stream);
void tcp_close(struct stream *stream);
int udp_open(struct stream *stream);
void udp_close(struct stream *stream);

#endif
