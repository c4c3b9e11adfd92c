/* Bulk TCP streams beside round trips, on threads of their own: latency under load. Both ends can
 * use it; a phase of the near end is:
 *
 *     load_begin(); … askers at work …; load_stop(); session_end_phase(); load_join(); */
#ifndef HOSTBENCH_LOAD_H
#define HOSTBENCH_LOAD_H

#include "cpulist.h"
#include "stream.h"

#include <stdbool.h>

struct load_stream {
    struct stream *stream;
    bool sends; /* else it receives */
};

struct load;

/* Starts a thread a stream; all of them may use all of `cpus` (none: those of the caller).
 * `stopping` is called as a driver's. 0 or a negative errno; *load is NULL then. */
int load_begin(struct load **load, const struct load_stream *streams, unsigned count,
               const struct cpulist *cpus, bool (*stopping)(void *), void *context);
/* Bytes that all of them have moved so far in this phase; both directions. */
uint64_t load_moved(const struct load *load);
/* Senders begin no more and are waited for: their counts are final. */
void load_stop(struct load *load);
/* Waits for the receivers, which end as tcp_receive() says, and frees it. 0, or the first failure as
 * a negative errno and the stream it is of in *failed. */
int load_join(struct load *load, struct stream **failed);
/* For a phase that has failed: all threads give up, are waited for, and it is freed. NULL: nothing. */
void load_abandon(struct load *load);

/* Payload per second at a receiver: without what came before its clock was first read; NaN where
 * nothing came behind that. */
double load_rate(const struct stream_counts *receiver);

#endif
