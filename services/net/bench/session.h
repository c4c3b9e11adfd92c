/* The near end's view of a session: a far end that was opened for it, the control connection to it,
 * and the connected sockets of the test. A thread of its own keeps heartbeats and takes progress. */
#ifndef NET_BENCH_SESSION_H
#define NET_BENCH_SESSION_H

#include "stream.h"
#include "test.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

struct grant;
struct run;
struct session;

/* Where the far end is. */
struct session_where {
    /* Of a session that another host has opened; NULL: the far end is a child on this host, reached
     * over its loopback. */
    const struct grant *grant;
    int ip_version; /* of the loopback: 4 or 6; 0: 4 */
};

/* What the far end has reported. */
struct far_report {
    unsigned sockets;
    /* Of the phase that ended last, as in test_place(): of the far end's role on each socket. */
    const struct stream_counts *counts;
    double cpu_s;  /* of the far end's process in that phase */
    double wall_s; /* … which took it that long */
    char host_name[65];
    char interface[16];               /* that the data comes in by; "": it could not tell */
    uint32_t interface_mtu;           /* 0: it could not tell */
    char network_mode[32];            /* endpoint.h's word for that interface */
    char congestion[CONGESTION_SIZE]; /* in force on its TCP sockets; "": none */
    char cpus[256];                   /* its threads are pinned to; "": to none */
    uint64_t strangers;               /* connections and datagrams that it turned away so far */
};

/* Opens the session: handshake, TEST, all data sockets connected with their keys and opened by
 * stream_open(). 0 or an exit_code with its run_reason(). The test must last. Takes no more than 5 s.
 * A session that failed is NULL. */
int session_open(struct run *run, const struct test *test, const struct session_where *where,
                 struct session **session);

/* The near end's stream on a socket of test_place(). Of a crr it has no socket (fd -1). */
struct stream *session_stream(struct session *session, unsigned index);
/* Where a crr connects to, and with which key. */
const struct sockaddr_storage *session_crr_far(const struct session *session, unsigned index);
const uint8_t *session_key(const struct session *session, unsigned index);
/* This end of the control connection. */
const struct sockaddr_storage *session_near_address(const struct session *session);

/* The far end begins the phase (0: ramp, 1: timed): back when its roles run, those of it that send
 * included. Its senders end by themselves when the time of the phase is over or, in the timed one,
 * their share of the work is done; the near receivers' `expected` is set as soon as they report.
 * Call stream_begin_phase() of the near streams before it. Like the next one: 0 or an exit_code with
 * its run_reason(); called by one thread. */
int session_begin_phase(struct session *session, unsigned phase);
/* Right before this end's roles begin: the far end's senders start. Called by one thread. */
void session_start_phase(struct session *session);
/* When all near senders and askers have ended, those of the load included: reports to the far end what
 * they have sent or done (counts.bytes, counts.datagrams; of an rr the operations stand in
 * datagrams), has its senders stop, and waits until its receivers have drained. The near receivers
 * of the load may still be running; those of the test have ended by themselves. */
int session_end_phase(struct session *session);

const struct far_report *session_report(const struct session *session);
/* What the far end's role on a socket has moved in this phase, as of its latest heartbeat, and when
 * that came (now_s()); 0: none has yet. */
uint64_t session_far_moved(const struct session *session, unsigned index, double *at_s);
/* Whether the far end is gone or has failed: streams are to stop; any thread may ask. */
bool session_lost(const struct session *session);
/* … why, with its run_reason(); an exit_code. Valid once session_lost(). */
int session_fail(struct session *session);
/* BYE, all sockets closed, and the child gone, within a second. NULL is none. */
void session_close(struct session *session);

#endif
