/* From what both ends counted in the timed phase to metrics, and to warnings about what they mean. */
#ifndef NET_BENCH_FIGURES_H
#define NET_BENCH_FIGURES_H

#include "net.h"

extern const struct metric tcp_stream_metrics[], udp_stream_metrics[], tcp_rr_metrics[],
    udp_rr_metrics[], tcp_crr_metrics[];

/* Payload a second at one receiver, by its clock, from behind its first call to its last; NaN: all
 * came with one call. */
double receiver_rate(const struct stream_counts *receiver);
/* The table's finish(). */
void figures_finish(struct thread *thread);

#endif
