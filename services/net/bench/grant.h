/* What the opener of a session hands to the program, by a descriptor and never on a command line:
 * words NAME=VALUE with white space between them. */
#ifndef NET_BENCH_GRANT_H
#define NET_BENCH_GRANT_H

#include "endpoint.h"
#include "token.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GRANT_MOST = 4096 }; /* bytes of text */

/* How much a session may ask for. */
struct caps {
    double duration_s; /* from the proof of the token to the end */
    unsigned streams;  /* sockets of the test, load included */
    uint64_t bytes;    /* of payload, all phases and directions together; 0: no bound */
    double rate;       /* payload byte/s of all streams together; 0: no bound */
};

struct grant {
    struct token token;
    struct endpoint address; /* near end: of the far end. Far end: to listen on */
    struct endpoint allowed; /* far end only: who may come, from any port */
    struct caps caps;        /* far end only */
    double expiry_s;         /* far end only: until the proof */
};

/* Of the near end: address, port, token. Of the far end: bind, allowed, token, and the caps
 * duration_s, streams, bytes, rate, expiry_s; port is 0 unless given. false with one line in `why`
 * that names what is wrong. */
bool grant_parse_near(const char *text, struct grant *grant, char *why, size_t size);
bool grant_parse_far(const char *text, struct grant *grant, char *why, size_t size);
/* Reads the text from the beginning of a file, or what a pipe has. Like the above. */
bool grant_read(int fd, char text[GRANT_MOST], char *why, size_t size);

#endif
