/* What all roles of bulk streams have in common. */
#ifndef NET_BENCH_STREAM_ROLE_H
#define NET_BENCH_STREAM_ROLE_H

#include "stream.h"
#include "ticks.h"

#include <stddef.h>
#include <sys/types.h>

/* A role's thread in a phase. */
struct role_run {
    double before_cpu_s;
    struct ticks ticks;
    bool ticking;
};

/* Around what a role does in a phase. The first starts the clock of its CPU time, and has blocked
 * calls come back now and then, so that the role can look whether to stop. The second, which each
 * call of the first needs, ends both and reads the kernel's counters. */
void role_begin(struct stream *stream, struct role_run *run);
void role_end(struct stream *stream, struct role_run *run);

/* Sets `what` from what was being done; the negative errno. `remedy` may be NULL. */
int role_failed(struct stream *stream, const char *doing, int error, const char *remedy);
/* Whether a call that gave this errno is to be made again: it was interrupted, or had nothing to do
 * until it was time to look. */
bool role_again(int error);
/* Notes a call that brought this many bytes. */
void role_received(struct stream *stream, const struct driver *driver, uint64_t bytes);
/* What the sender is to move in this phase; UINT64_MAX: time decides. */
uint64_t role_share(const struct stream *stream);
/* Page-aligned memory with bytes that no link compresses; NULL without memory. */
char *role_block(size_t bytes);

#endif
