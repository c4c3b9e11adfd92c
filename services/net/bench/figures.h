/* From what both ends counted in the timed phase to metrics, and to warnings about what they mean. */
#ifndef NET_BENCH_FIGURES_H
#define NET_BENCH_FIGURES_H

#include "net.h"

extern const struct metric tcp_stream_metrics[], udp_stream_metrics[], tcp_rr_metrics[],
    udp_rr_metrics[], tcp_crr_metrics[], naive_stream_metrics[];

/* The table's finish(), of all but the naive workload. */
void figures_finish(struct thread *thread);

/* Parts of it that the naive workload tells alike. */

struct sums;
/* A value that is not finite is none, for the reason given, which must last. */
void figures_report(struct run *run, const char *name, double value, const char *why_not);
/* What every workload of the table has. */
void figures_report_all(struct net_job *job, const struct sums *all);
void figures_warn_of_total(struct net_job *job, uint64_t sent_bytes);
void figures_warn_of_strangers(struct net_job *job);

#endif
