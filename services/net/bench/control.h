/* The messages of the control connection, each with the frame it travels in. The near end begins:
 *
 *     HELLO ->        <- CHALLENGE      both nonces
 *     PROOF ->        <- READY          that both know the token; READY has the caps
 *     TEST ->         <- LISTENING …    a port and a key for each socket of the test
 *     (data sockets)  <- CONNECTED      what the far end says of itself
 *     BEGIN ->        <- BEGUN          twice: ramp, timed
 *     START ->                          the near end's roles begin: the far end's senders do too
 *     SENT … END ->   <- SENT … COUNTS … RESULT
 *     BYE ->
 *
 * HEARTBEAT goes both ways all the time; REFUSED ends the session at any time. SENT of a far sender
 * comes as soon as it has ended. Reading functions give false when the message is not as it must be. */
#ifndef NET_BENCH_CONTROL_H
#define NET_BENCH_CONTROL_H

#include "grant.h"
#include "stream.h"
#include "test.h"
#include "token.h"
#include "wire.h"

enum { CONTROL_VERSION = 1 };

static const double HEARTBEAT_EVERY_S = 0.1;
static const double HEARTBEAT_LOST_S = 3;
static const double HEARTBEAT_LATE_S = 1;

/* When the other end was last heard, as far as its silence counts: time in which no thread looked, from
 * `looked_s` to `at_s`, does not count. A virtual machine that was paused stops both ends. */
static inline double heartbeat_heard(double heard_s, double looked_s, double at_s)
{
    double missed_s = at_s - looked_s;
    return looked_s > 0 && missed_s > HEARTBEAT_LATE_S ? heard_s + missed_s : heard_s;
}

enum message {
    MESSAGE_HELLO = 1,
    MESSAGE_CHALLENGE,
    MESSAGE_PROOF,
    MESSAGE_READY,
    MESSAGE_REFUSED,
    MESSAGE_TEST,
    MESSAGE_LISTENING,
    MESSAGE_CONNECTED,
    MESSAGE_BEGIN,
    MESSAGE_BEGUN,
    MESSAGE_SENT,
    MESSAGE_END,
    MESSAGE_COUNTS,
    MESSAGE_RESULT,
    MESSAGE_HEARTBEAT,
    MESSAGE_BYE,
    MESSAGE_START,
};

/* Why a session ends otherwise than by BYE. */
enum refusal {
    REFUSAL_PROTOCOL = 1, /* a message that is wrong, or comes at the wrong time */
    REFUSAL_VERSION,
    REFUSAL_TOKEN,       /* the proof is wrong */
    REFUSAL_USED,        /* the token has been proved before */
    REFUSAL_TEST,        /* what is requested makes no sense */
    REFUSAL_CAP,         /* … is more than the session allows */
    REFUSAL_RESOURCE,    /* the far end lacks something for it */
    REFUSAL_FAILED,      /* a role failed */
    REFUSAL_LOST,        /* the other end is silent */
    REFUSAL_ENDED,       /* the owner of the session has ended it */
    REFUSAL_UNSUPPORTED, /* the far end's kernel cannot do what is requested */
};

struct message_hello {
    uint16_t version;
    uint8_t nonce[NONCE_BYTES];
};

struct message_ready {
    uint8_t mac[MAC_BYTES];
    struct caps caps;
};

struct message_refused {
    enum refusal refusal;
    char text[400];
};

/* Where a socket of the test connects to. */
struct opening {
    uint16_t port;
    uint8_t key[KEY_BYTES];
};

/* What the far end says of itself once the data sockets are connected. */
struct far_facts {
    char host_name[65];
    char interface[16];               /* that the data comes in by; "": it could not tell */
    char network_mode[16];            /* endpoint_route()'s kind of it */
    char congestion[CONGESTION_SIZE]; /* in force on its TCP sockets; "": it has none */
    char cpus[256];                   /* its threads are pinned to, in turn; "": to none */
    uint32_t interface_mtu_bytes;     /* 0: it could not tell */
    uint32_t path_mtu_bytes;          /* back to the near end; 0: it could not tell */
};

struct message_sent {
    uint16_t index;
    uint64_t bytes, datagrams;
};

struct message_counts {
    uint16_t index;
    struct stream_counts counts;
};

struct message_result {
    uint8_t phase;
    double cpu_s, wall_s;
    uint64_t strangers;
};

/* Of sockets from `first` on. */
struct message_progress {
    uint16_t first, count;
    uint64_t moved[SOCKETS_MOST];
};

enum { OPENINGS_A_FRAME = 512 };

struct message_listening {
    uint16_t first, count;
    struct opening openings[OPENINGS_A_FRAME];
};

void control_put_hello(struct frame *, const struct message_hello *);
void control_put_challenge(struct frame *, const uint8_t nonce[NONCE_BYTES]);
void control_put_proof(struct frame *, const uint8_t mac[MAC_BYTES]);
void control_put_ready(struct frame *, const struct message_ready *);
void control_put_refused(struct frame *, enum refusal, const char *text);
void control_put_test(struct frame *, const struct test *);
void control_put_listening(struct frame *, const struct message_listening *);
void control_put_connected(struct frame *, const struct far_facts *);
/* BEGIN, BEGUN, START and END. */
void control_put_phase(struct frame *, enum message, uint8_t phase);
void control_put_sent(struct frame *, const struct message_sent *);
void control_put_counts(struct frame *, const struct message_counts *);
void control_put_result(struct frame *, const struct message_result *);
void control_put_heartbeat(struct frame *, const struct message_progress *); /* NULL: no progress */
void control_put_bye(struct frame *);

bool control_read_hello(struct reader *, struct message_hello *);
bool control_read_challenge(struct reader *, uint8_t nonce[NONCE_BYTES]);
bool control_read_proof(struct reader *, uint8_t mac[MAC_BYTES]);
bool control_read_ready(struct reader *, struct message_ready *);
bool control_read_refused(struct reader *, struct message_refused *);
/* A test that is true: test_free() it. Of others nothing is left, and `why` names what is wrong. */
bool control_read_test(struct reader *, struct test *, const char **why);
bool control_read_listening(struct reader *, struct message_listening *);
bool control_read_connected(struct reader *, struct far_facts *);
bool control_read_phase(struct reader *, uint8_t *phase);
bool control_read_sent(struct reader *, struct message_sent *);
bool control_read_counts(struct reader *, struct message_counts *);
bool control_read_result(struct reader *, struct message_result *);
bool control_read_heartbeat(struct reader *, struct message_progress *);

#endif
