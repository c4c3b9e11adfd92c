/* What the two ends of one test have agreed on, and which sockets they have for it. */
#ifndef NET_BENCH_TEST_H
#define NET_BENCH_TEST_H

#include "cpulist.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    STREAMS_MOST = 512,
    LOAD_STREAMS_MOST = 64,
    TCP_BLOCK_MOST = 1 << 20,
    UDP_BLOCK_MOST = 65507,
    SOCKETS_MOST = 2 * (STREAMS_MOST + LOAD_STREAMS_MOST),
    KEY_BYTES = 16,
    CONGESTION_SIZE = 16, /* TCP_CA_NAME_MAX */
};

enum protocol { PROTOCOL_TCP, PROTOCOL_UDP };
enum kind { KIND_STREAM, KIND_RR, KIND_CRR };
/* As seen from the near end. */
enum test_direction { DIRECTION_SEND, DIRECTION_RECEIVE, DIRECTION_BOTH };
enum send_path { SEND_COPY, SEND_SENDFILE, SEND_ZEROCOPY };
enum udp_path { UDP_SINGLE, UDP_MMSG, UDP_GSO };

/* The near end has resolved each `auto` before. */
struct test {
    enum protocol protocol;
    enum kind kind;
    enum test_direction direction; /* of a stream; else DIRECTION_BOTH */
    unsigned streams;              /* each direction of `both` has that many */
    unsigned load_streams;         /* bulk TCP streams beside an rr; likewise */
    enum test_direction load_direction;
    uint32_t block_bytes;
    double rate; /* payload byte/s of one stream; 0: as fast as possible */
    enum send_path send_path;
    enum udp_path udp_path;
    bool truncate;                    /* a TCP receiver may discard in the kernel */
    bool spin;                        /* both ends poll and never sleep */
    uint32_t send_buffer_bytes;       /* 0: the kernel's own */
    uint32_t receive_buffer_bytes;    /* 0: the kernel's own */
    char congestion[CONGESTION_SIZE]; /* "": the system's */
    double duration_s;                /* of the timed phase; 0: the work decides */
    double ramp_s;                    /* of the phase before it */
    uint64_t work_bytes;              /* of all streams, in the timed phase; 0: time decides */
    struct cpulist far_cpus;          /* count 0: the far end's own choice */
};

/* What one end does with a socket of the test. */
enum role { ROLE_SEND, ROLE_RECEIVE, ROLE_ASK, ROLE_ANSWER };

/* The sockets of a test stand in this order: of a stream those on which the near end sends, then
 * those on which it receives; of an rr or crr one for each asker; then those of the load, again
 * first those on which the near end sends. */
struct place {
    unsigned index; /* of the socket in the test */
    enum role near, far;
    bool load;
};

/* All of them, load included; at most SOCKETS_MOST. */
unsigned test_sockets(const struct test *test);
/* … without the load: the near end's harness threads have these. */
unsigned test_own_sockets(const struct test *test);
struct place test_place(const struct test *test, unsigned index);
/* The test that the load streams make: bulk TCP until they are stopped. It shares far_cpus. */
struct test test_of_load(const struct test *test);
/* The bytes that the sender of this stream is to move in the timed phase; UINT64_MAX: time decides. */
uint64_t test_share_bytes(const struct test *test, unsigned stream);
/* NULL, or what both ends refuse: a static line that names the bound. */
const char *test_invalid(const struct test *test);
void test_free(struct test *test);

#endif
