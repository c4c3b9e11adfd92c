/* Which datagrams of a numbered flow came: once, again, or late. A window of the latest numbers
 * remembers; memory and time do not grow with the flow. */
#ifndef NET_BENCH_SEQUENCE_H
#define NET_BENCH_SEQUENCE_H

#include <stdint.h>

/* Half a second of late arrivals at half a million datagrams a second. */
enum { SEQUENCE_WINDOW = 1 << 18 };

enum arrival { ARRIVAL_NEW, ARRIVAL_AGAIN, ARRIVAL_TOO_LATE };

/* Counts are exact for whatever comes at most SEQUENCE_WINDOW - 64 numbers behind the highest. What
 * comes later may be new or a duplicate: it counts as neither, and so among the lost. */
struct sequence {
    uint64_t next;       /* one more than the highest that came; 0: none came */
    uint64_t unique;     /* numbers that came */
    uint64_t duplicated; /* arrivals of numbers that had come before */
    uint64_t reordered;  /* of the unique ones those behind a higher number (RFC 4737, 3.3) */
    uint64_t too_late;
    uint64_t seen[SEQUENCE_WINDOW / 64];
};

void sequence_clear(struct sequence *sequence);
/* `number` below UINT64_MAX. */
enum arrival sequence_add(struct sequence *sequence, uint64_t number);

#endif
