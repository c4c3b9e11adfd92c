/* What the near end's parts share: the job that a trial is, read from its parameters. */
#ifndef NET_BENCH_NET_H
#define NET_BENCH_NET_H

#include "endpoint.h"
#include "grant.h"
#include "load.h"
#include "session.h"
#include "stream.h"
#include "test.h"
#include "workload.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What a workload's row in the table says of it (run_own()). */
struct net_kind {
    enum protocol protocol;
    enum kind kind;
    bool naive; /* parameters of its own say the other two */
};

/* Of one harness thread, which has one socket of the test; on cache lines of its own. */
struct near_thread {
    _Alignas(128) struct thread *thread;
    struct net_job *job;
    struct place place;
    struct stream *stream;
    struct driver driver;
    _Atomic uint64_t moved; /* in this phase */
    uint64_t done;          /* round trips of the timed phase */
    int64_t naive_begin_us,
        naive_end_us; /* of the naive workload: the time of day around its role */
};

/* Written by thread 0 between the meetings of all, except the atomics. */
struct net_job {
    struct run *run;
    struct test test;
    struct session_where where;
    struct grant grant;  /* of the session; wiped once it is open */
    bool far_host;       /* the far end is on another host */
    struct endpoint far; /* its address; the port is not published */
    struct endpoint_route route;
    struct session *session;
    struct near_thread *own;  /* one a harness thread */
    struct cpulist load_cpus; /* that its threads may use */
    struct load *load;        /* while a phase of round trips with load_streams runs */
    atomic_bool timed;        /* the streams' counts are those of the timed phase */
};

/* The words of the parameter congestion, NULL-terminated. */
extern const char *const net_congestions[];

/* For the table: how many harness threads the streams are, and why it cannot be had here. */
unsigned net_job_threads(const struct run *run);
const char *net_job_unsupported(const struct run *run);
/* For check(): resolves target and far_cpus, and says what does not go together. */
int net_job_check(struct run *run);
/* For open(): reads the parameters, finds the far end (which resolves ip_version) and opens the
 * session. To be closed even if it
 * fails. 0 or an exit_code. */
int net_job_open(struct run *run);
void net_job_close(struct run *run);

/* Of the timed phase, once it has ended: what the role at the sending or asking end of a socket
 * counted, and the one at the other. */
const struct stream_counts *net_job_sender(const struct net_job *job, unsigned index);
const struct stream_counts *net_job_receiver(const struct net_job *job, unsigned index);

/* Of a thread. */
static inline struct net_job *net_job_of(const struct thread *thread)
{
    return run_shared(thread->run);
}

#endif
