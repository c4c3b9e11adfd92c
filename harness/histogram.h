/* How long operations took: counts in buckets whose width grows with the time, so that every
 * percentile is right within 0.4 % in a fixed amount of memory, however many there were. */
#ifndef HOSTBENCH_HISTOGRAM_H
#define HOSTBENCH_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

enum {
    HISTOGRAM_SUB_BITS = 7, /* 128 buckets to an octave: half of one is 0.39 % */
    HISTOGRAM_OCTAVES = 43, /* up to 2^43 ns, 2.4 hours; longer ones count as that */
    HISTOGRAM_BUCKETS = (HISTOGRAM_OCTAVES - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS,
};

/* One thread adds to it, another one may read meanwhile: it sees each field as of some moment, and
 * no count ever goes back. */
struct histogram {
    _Atomic uint64_t counts[HISTOGRAM_BUCKETS];
    _Atomic uint64_t min_ns, max_ns;
    _Atomic double sum_ns; /* exact up to 2^53 ns, 104 days of waiting together */
};

/* Also touches the memory. */
void histogram_clear(struct histogram *histogram);
unsigned histogram_bucket(uint64_t ns);

/* By the thread it belongs to alone: nothing is locked, not even a bus. */
static inline void histogram_add(struct histogram *histogram, uint64_t ns)
{
    const memory_order relaxed = memory_order_relaxed;
    _Atomic uint64_t *count = &histogram->counts[histogram_bucket(ns)];
    if (ns < atomic_load_explicit(&histogram->min_ns, relaxed))
        atomic_store_explicit(&histogram->min_ns, ns, relaxed);
    if (ns > atomic_load_explicit(&histogram->max_ns, relaxed))
        atomic_store_explicit(&histogram->max_ns, ns, relaxed);
    atomic_store_explicit(count, atomic_load_explicit(count, relaxed) + 1, relaxed);
    double sum_ns = atomic_load_explicit(&histogram->sum_ns, relaxed) + (double)ns;
    atomic_store_explicit(&histogram->sum_ns, sum_ns, relaxed);
}

void histogram_merge(struct histogram *into, const struct histogram *from);
/* Makes of a later copy what was added since an earlier one; of that, extremes and sum are not
 * known. */
void histogram_subtract(struct histogram *later, const struct histogram *earlier);
uint64_t histogram_count(const struct histogram *histogram);
/* The value that a share `q` of all are at or below. NaN of none. */
double histogram_quantile_ns(const struct histogram *histogram, double q);
/* What a share `q` of all such operations takes at most, with 95 % confidence: these are a sample of
 * them, and its own quantile is below the true one half of the time. NaN of none. */
double histogram_upper_ns(const struct histogram *histogram, double q);
/* Which of `count` values, from the smallest, 1, is that bound: of a binomial distribution the normal
 * one is the limit, and here, where q is large, on the safe side of it. */
uint64_t histogram_upper_rank(uint64_t count, double q);
double histogram_mean_ns(const struct histogram *histogram);
/* The least number of operations that tell the quantile `q`: of so many, one lies beyond it with
 * 99.87 % probability, ln(0.0013) / ln(q). For q = 0.99 the 662 of MLPerf's LoadGen. */
uint64_t histogram_least(double q);

#endif
