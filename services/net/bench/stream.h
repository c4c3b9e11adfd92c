/* Bulk transfers in one direction: what a sender and a receiver do in one phase, over TCP and UDP.
 * Either end of a test may have either role. */
#ifndef NET_BENCH_STREAM_H
#define NET_BENCH_STREAM_H

#include "test.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    PHASE_RAMP,
    PHASE_TIMED,
    STREAM_HEADER_BYTES =
        16,               /* of a datagram; shorter ones have none, and only totals are reported */
    STREAM_GSO_MOST = 64, /* segments of a send; the kernel takes 128, older ones 64 */
};

#define STREAM_UNKNOWN UINT64_MAX

/* How a role knows when to stop and where it reports; each end has its own. */
struct driver {
    void *context;
    /* A sender, an asker: begin no more. `now_s` is now_s(). */
    bool (*over)(void *context, uint64_t moved_bytes, double now_s);
    bool (*stopping)(void *context); /* give up at once; called every 100 ms or oftener */
    void (*moved)(void *context, uint64_t bytes);     /* of this phase so far; called often */
    void (*done)(void *context, uint64_t latency_ns); /* askers: one round trip */
};

/* What one role did in one phase; of all fields that are not its own, 0. */
struct stream_counts {
    uint64_t bytes; /* payload moved */
    uint64_t
        datagrams; /* sent; of a receiver those of this phase that it had not had before (blocks
                      too short for a header: all that came) */
    uint64_t duplicated, reordered; /* of a receiver; reordered: behind one that was sent later */
    uint64_t refused; /* sends that returned an earlier datagram's ICMP "refused"; of many in
                         a call at least so many */
    uint64_t dropped_by_receiver; /* by the socket, its buffer being full (SO_MEMINFO); with GRO as
                                     many a drop as its messages held on average */
    uint64_t lost_operations;
    uint64_t first_bytes;   /* of the call that first_s was read behind: not in the rate */
    double first_s, last_s; /* now_s() of this end: of a receiver behind its first and its last call
                               that brought something, of a sender the begin and the end */
    double cpu_s;           /* of this role's thread */
    uint64_t retransmits;   /* TCP segments of this phase */
    uint32_t congestion_window_bytes, path_mtu_bytes, mss_bytes;
    double tcp_rtt_s;
    uint32_t send_buffer_bytes, receive_buffer_bytes; /* in force, as the kernel counts: twice what
                                                         was requested, with its own overhead */
    uint64_t zerocopy_sent, zerocopy_copied; /* calls; those that the kernel copied anyway */
    uint32_t gso_segments;                   /* datagrams of the largest send; 0: no GSO */
    uint8_t gro;                             /* the kernel joins datagrams for this receiver */
};

/* One role of one data socket. */
struct stream {
    const struct test *test;
    unsigned index;
    int fd; /* connected */
    enum role role;
    /* STREAM_UNKNOWN until the sender has reported it: bytes (TCP) or datagrams (UDP) of this phase. */
    _Atomic uint64_t expected;
    struct stream_counts counts; /* of the phase */
    uint8_t phase;
    /* The kernel's counters when the phase began. */
    uint64_t retransmits_before;
    uint32_t drops_before;
    void *own;
    char what[320]; /* what was being done when a role failed, and what to do about it */
};

#endif
