#include "histogram.h"

#include "check.h"

#include <math.h>

enum { VALUES = 100000 };

static struct histogram histogram;
static uint64_t values[VALUES];
static const double quantiles[] = {0.5, 0.9, 0.95, 0.99, 0.999};
enum { QUANTILES = sizeof quantiles / sizeof *quantiles };

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t next_random(void) /* xorshift64, Marsaglia 2003 */
{
    static uint64_t state = 0x9e3779b97f4a7c15u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* From nanoseconds to an hour, each octave as likely as the next. */
static uint64_t any_latency(void)
{
    return (next_random() | 1) >> (22 + next_random() % 42);
}

/* Most between 80 and 100 µs, one in a hundred stalled for milliseconds. */
static uint64_t of_a_disk(void)
{
    return next_random() % 100 ? 80000 + next_random() % 20000 : 1000000 + next_random() % 9000000;
}

static void record(uint64_t (*draw)(void), size_t count)
{
    histogram_clear(&histogram);
    for (size_t i = 0; i < count; i++)
        histogram_add(&histogram, values[i] = draw());
    qsort(values, count, sizeof *values, compare);
}

static void check_against_values(size_t count)
{
    double sum_ns = 0;
    for (size_t i = 0; i < count; i++)
        sum_ns += (double)values[i];
    CHECK(histogram_count(&histogram) == count);
    CHECK(atomic_load(&histogram.min_ns) == values[0]);
    CHECK(atomic_load(&histogram.max_ns) == values[count - 1]);
    CHECK(fabs(histogram_mean_ns(&histogram) * (double)count / sum_ns - 1) < 1e-12);
    for (int i = 0; i < QUANTILES; i++) {
        size_t rank = (size_t)fmax(1, ceil(quantiles[i] * (double)count));
        double exact = (double)values[rank - 1];
        double quantile = histogram_quantile_ns(&histogram, quantiles[i]);
        CHECK(fabs(quantile - exact) <= 0.004 * exact);
    }
}

static void percentiles_are_those_of_the_values(void)
{
    record(any_latency, VALUES);
    check_against_values(VALUES);
    record(of_a_disk, VALUES);
    check_against_values(VALUES);
    record(any_latency, 7);
    check_against_values(7);
}

/* Up to 255 ns every value has a bucket of its own. */
static void short_times_are_exact(void)
{
    for (uint64_t ns = 0; ns < 256; ns++) {
        histogram_clear(&histogram);
        histogram_add(&histogram, ns);
        CHECK(histogram_quantile_ns(&histogram, 0.5) == (double)ns);
    }
}

static void buckets_follow_one_another(void)
{
    CHECK(histogram_bucket(0) == 0);
    for (unsigned octave = 1; octave < HISTOGRAM_OCTAVES; octave++) {
        uint64_t first = UINT64_C(1) << octave;
        CHECK(histogram_bucket(first) == histogram_bucket(first - 1) + 1);
    }
    CHECK(histogram_bucket((UINT64_C(1) << HISTOGRAM_OCTAVES) - 1) == HISTOGRAM_BUCKETS - 1);
}

static void what_is_longer_than_all_buckets_keeps_its_extreme(void)
{
    histogram_clear(&histogram);
    histogram_add(&histogram, UINT64_MAX / 2);
    CHECK(histogram_bucket(UINT64_MAX) == HISTOGRAM_BUCKETS - 1);
    CHECK(histogram_count(&histogram) == 1);
    CHECK(atomic_load(&histogram.max_ns) == UINT64_MAX / 2);
}

static void empty_histogram_has_no_quantiles(void)
{
    histogram_clear(&histogram);
    CHECK(histogram_count(&histogram) == 0);
    CHECK(isnan(histogram_quantile_ns(&histogram, 0.5)));
    CHECK(isnan(histogram_mean_ns(&histogram)));
}

static void merged_ones_are_as_one(void)
{
    static struct histogram parts[3];
    for (int i = 0; i < 3; i++)
        histogram_clear(&parts[i]);
    for (size_t i = 0; i < VALUES; i++)
        histogram_add(&parts[i % 2], values[i] = of_a_disk());
    qsort(values, VALUES, sizeof *values, compare);
    histogram_clear(&histogram);
    for (int i = 0; i < 3; i++)
        histogram_merge(&histogram, &parts[i]);
    check_against_values(VALUES);
}

/* What the second half of a run was, from copies made after each half. */
static void an_interval_is_what_came_since(void)
{
    static struct histogram first, both;
    histogram_clear(&first);
    histogram_clear(&both);
    record(of_a_disk, VALUES);
    histogram_merge(&first, &histogram);
    for (size_t i = 0; i < 1000; i++)
        histogram_add(&histogram, 5000000);
    histogram_merge(&both, &histogram);
    histogram_subtract(&both, &first);
    CHECK(histogram_count(&both) == 1000);
    CHECK(fabs(histogram_quantile_ns(&both, 0.01) / 5000000 - 1) < 0.004);
    CHECK(fabs(histogram_quantile_ns(&both, 0.999) / 5000000 - 1) < 0.004);
}

/* MLPerf's LoadGen asks for 662 of a 99th percentile. */
static void percentiles_need_so_many_operations(void)
{
    CHECK(histogram_least(0.90) == 64);
    CHECK(histogram_least(0.95) == 130);
    CHECK(histogram_least(0.99) == 662);
    CHECK(histogram_least(0.999) == 6643);
}

/* The chance that so many of `count` values lie at or below the quantile `q`, or fewer. */
static double binomial_at_most(uint64_t most, uint64_t count, double q)
{
    double sum = 0, n = (double)count;
    for (uint64_t k = most + 1; k <= count; k++)
        sum += exp(lgamma(n + 1) - lgamma((double)k + 1) - lgamma(n - (double)k + 1) +
                   (double)k * log(q) + (n - (double)k) * log1p(-q));
    return 1 - sum;
}

/* The bound of rank r holds unless r values or more lie at or below the quantile. */
static void an_upper_bound_holds_in_95_of_100(void)
{
    static const double shares[] = {0.9, 0.95, 0.99, 0.999};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        for (uint64_t count = histogram_least(shares[i]); count < 200000; count += count / 7) {
            uint64_t rank = histogram_upper_rank(count, shares[i]);
            CHECK(rank <= count);
            CHECK(binomial_at_most(rank - 1, count, shares[i]) >= 0.95);
            /* … and not for want of sharpness: two ranks lower it does not. */
            CHECK(binomial_at_most(rank - 3, count, shares[i]) < 0.95);
        }
    record(of_a_disk, VALUES);
    double exact = (double)values[histogram_upper_rank(VALUES, 0.99) - 1];
    CHECK(fabs(histogram_upper_ns(&histogram, 0.99) - exact) <= 0.004 * exact);
    histogram_clear(&histogram);
    CHECK(isnan(histogram_upper_ns(&histogram, 0.99)));
}

int main(void)
{
    an_upper_bound_holds_in_95_of_100();
    percentiles_are_those_of_the_values();
    short_times_are_exact();
    buckets_follow_one_another();
    what_is_longer_than_all_buckets_keeps_its_extreme();
    empty_histogram_has_no_quantiles();
    merged_ones_are_as_one();
    an_interval_is_what_came_since();
    percentiles_need_so_many_operations();
    return 0;
}
