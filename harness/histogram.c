#include "histogram.h"

#include <math.h>

/* Chance that none of the operations lies beyond the quantile. */
static const double CHANCE_OF_NONE = 0.0013;
/* Standard deviations of the normal distribution below which 95 % lie. */
static const double DEVIATIONS_95 = 1.6449;

static uint64_t load(const _Atomic uint64_t *number)
{
    return atomic_load_explicit(number, memory_order_relaxed);
}

static void store(_Atomic uint64_t *number, uint64_t value)
{
    atomic_store_explicit(number, value, memory_order_relaxed);
}

void histogram_clear(struct histogram *histogram)
{
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        store(&histogram->counts[i], 0);
    store(&histogram->min_ns, UINT64_MAX);
    store(&histogram->max_ns, 0);
    atomic_store_explicit(&histogram->sum_ns, 0, memory_order_relaxed);
}

/* The first two octaves' worth of buckets are one nanosecond wide each. */
unsigned histogram_bucket(uint64_t ns)
{
    enum { SUB = 1 << HISTOGRAM_SUB_BITS };
    if (ns < SUB)
        return (unsigned)ns;
    if (ns >> HISTOGRAM_OCTAVES)
        return HISTOGRAM_BUCKETS - 1;
    unsigned shift = 63 - HISTOGRAM_SUB_BITS - (unsigned)__builtin_clzll(ns);
    return shift * SUB + (unsigned)(ns >> shift);
}

/* The middle of the values that fall into a bucket. */
static double middle_ns(unsigned bucket)
{
    enum { SUB = 1 << HISTOGRAM_SUB_BITS };
    if (bucket < 2 * SUB)
        return bucket;
    unsigned shift = bucket / SUB - 1;
    double width = ldexp(1, (int)shift);
    return (bucket - shift * SUB) * width + (width - 1) / 2;
}

/* Buckets outside are empty. */
struct range {
    unsigned first, end;
};

static struct range used(const struct histogram *histogram)
{
    return (struct range){histogram_bucket(load(&histogram->min_ns)),
                          histogram_bucket(load(&histogram->max_ns)) + 1};
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    const memory_order relaxed = memory_order_relaxed;
    struct range range = used(from);
    for (unsigned i = range.first; i < range.end; i++)
        store(&into->counts[i], load(&into->counts[i]) + load(&from->counts[i]));
    if (load(&from->min_ns) < load(&into->min_ns))
        store(&into->min_ns, load(&from->min_ns));
    if (load(&from->max_ns) > load(&into->max_ns))
        store(&into->max_ns, load(&from->max_ns));
    double sum_ns =
        atomic_load_explicit(&into->sum_ns, relaxed) + atomic_load_explicit(&from->sum_ns, relaxed);
    atomic_store_explicit(&into->sum_ns, sum_ns, relaxed);
}

void histogram_subtract(struct histogram *later, const struct histogram *earlier)
{
    struct range range = used(earlier);
    for (unsigned i = range.first; i < range.end; i++)
        store(&later->counts[i], load(&later->counts[i]) - load(&earlier->counts[i]));
    atomic_store_explicit(&later->sum_ns, NAN, memory_order_relaxed);
}

uint64_t histogram_count(const struct histogram *histogram)
{
    uint64_t count = 0;
    struct range range = used(histogram);
    for (unsigned i = range.first; i < range.end; i++)
        count += load(&histogram->counts[i]);
    return count;
}

static double of_rank_ns(const struct histogram *histogram, uint64_t rank)
{
    uint64_t passed = 0;
    struct range range = used(histogram);
    for (unsigned i = range.first; i < range.end; i++) {
        passed += load(&histogram->counts[i]);
        if (passed >= rank)
            return fmin(fmax(middle_ns(i), (double)load(&histogram->min_ns)),
                        (double)load(&histogram->max_ns));
    }
    return NAN;
}

double histogram_quantile_ns(const struct histogram *histogram, double q)
{
    double count = (double)histogram_count(histogram);
    return of_rank_ns(histogram, (uint64_t)fmax(1, ceil(q * count)));
}

double histogram_upper_ns(const struct histogram *histogram, double q)
{
    return of_rank_ns(histogram, histogram_upper_rank(histogram_count(histogram), q));
}

uint64_t histogram_upper_rank(uint64_t count, double q)
{
    double n = (double)count;
    double rank = ceil(q * n + DEVIATIONS_95 * sqrt(n * q * (1 - q)) + 0.5);
    return (uint64_t)fmax(1, fmin(n, rank));
}

double histogram_mean_ns(const struct histogram *histogram)
{
    return atomic_load_explicit(&histogram->sum_ns, memory_order_relaxed) /
           (double)histogram_count(histogram);
}

uint64_t histogram_least(double q)
{
    return (uint64_t)ceil(log(CHANCE_OF_NONE) / log(q));
}
