/* What both ends counted in the timed phase, added up over the test's own sockets. */
#ifndef NET_BENCH_SUMS_H
#define NET_BENCH_SUMS_H

#include "net.h"

/* One direction of the test, or both. */
struct sums {
    unsigned sockets;
    struct stream_counts sent, received; /* added up; times, sizes and flags apart from that */
    double sender_begin_s, sender_end_s;
    double receiver_begin_s, receiver_end_s;
    uint64_t first_bytes;
    double congestion_windows_bytes;
    uint64_t surplus; /* datagrams that a stream received more than were sent on it */
};

/* Of the sockets on which the near end has this role, or of all (`any`). */
struct sums sum_up(const struct net_job *job, enum role near, bool any);
/* Payload a second at one receiver, by its clock, from behind its first call to its last; NaN: all
 * came with one call. */
double receiver_rate(const struct stream_counts *receiver);
/* Of all receivers, from the first byte at any to the last one; NaN as above. */
double arrived_rate(const struct sums *sums);
/* Of all senders, by their clock. */
double offered_rate(const struct sums *sums);
/* What two directions have together, each with clocks of its own: `a` of one, `b` of the other. */
double sum_of(const struct sums *one, double a, const struct sums *other, double b);
double lost_datagrams(const struct sums *sums);
/* NaN: nothing was sent. */
double lost_ratio(const struct sums *sums);
/* CPU time of the roles of the test itself at either end. */
double cpu_s(const struct net_job *job, bool far);

#endif
