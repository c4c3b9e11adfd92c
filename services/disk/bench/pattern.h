/* Which block comes next. */
#ifndef DISK_BENCH_PATTERN_H
#define DISK_BENCH_PATTERN_H

#include "job.h"

#include <stdint.h>

/* A bijection of the numbers of as many bits, keyed by a seed; without those that are too large it
 * is a permutation of 0 … count - 1. */
struct scatter {
    uint64_t count;
    uint64_t mask;
    unsigned shift;
    uint64_t seed;
};

/* Zipf's distribution of ranks 1 … count: rank r comes up in proportion to r^-theta. */
struct zipf {
    double count, theta;
    double first, last; /* of the integral between which is drawn */
    double sure;        /* so close to a rank no draw is refused */
};

/* Sequential: one block after the other and again from the start. Random uniform: in each pass
 * every block once, in an order that is new with each pass. Random zipf: drawn, with the blocks that
 * come up often scattered over the file, the same ones for all threads. */
struct pattern {
    uint64_t first, blocks; /* the part of the file it goes over */
    bool sequential, zipf_drawn;
    uint64_t next; /* of the pass */
    struct scatter scatter;
    struct zipf zipf;
    uint64_t random; /* state of the generator */
};

/* `index`: the thread's. Orders differ from thread to thread and from process to process, so that a
 * trial does not read what a cache beyond this machine has kept of the one before. */
void pattern_init(struct pattern *pattern, const struct disk_job *job, unsigned index);
uint64_t pattern_next(struct pattern *pattern);

/* A generator of 64 random bits (splitmix64: Steele, Lea and Flood, OOPSLA 2014). */
uint64_t random_next(uint64_t *state);
/* Where the generators of a thread start. */
uint64_t random_seed(unsigned index);

#endif
