#include "period.h"

#include "check.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum { BINS = 1 << 15, SEEDS = 5 };

static const double BIN_S = 200e-6; /* six and a half seconds */

static float lost_s[BINS];
static uint64_t state;

/* SplitMix64 as a number in [0, 1). */
static double random_number(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static void begin(unsigned seed)
{
    state = seed;
    memset(lost_s, 0, sizeof lost_s);
}

static void lose(double at_s, double length_s)
{
    if (at_s >= 0 && at_s < BINS * BIN_S)
        lost_s[(size_t)(at_s / BIN_S)] += (float)length_s;
}

/* Each up to `jitter_s` late. */
static void lose_regularly(double period_s, double length_s, double jitter_s)
{
    double first_s = period_s * random_number();
    for (double at_s = first_s; at_s < BINS * BIN_S; at_s += period_s)
        lose(at_s + jitter_s * random_number(), length_s);
}

static void lose_at_random(unsigned count, double longest_s)
{
    for (unsigned i = 0; i < count; i++)
        lose(BINS * BIN_S * random_number(), longest_s * random_number());
}

static bool found_within(double period_s, double ratio)
{
    struct period found = period_find(lost_s, BINS, BIN_S);
    bool near = fabs(found.seconds / period_s - 1) <= ratio;
    if (!near)
        fprintf(stderr, "%g s instead of %g s (%s)\n", found.seconds, period_s,
                found.why ? found.why : "");
    return near;
}

/* From a timer of 1000 Hz to what comes twenty times in the run. */
static void a_regular_disturbance_is_found(void)
{
    const double periods_s[] = {1e-3, 4e-3, 0.0173, 0.1, 0.3337};
    for (unsigned seed = 0; seed < SEEDS; seed++)
        for (unsigned i = 0; i < sizeof periods_s / sizeof *periods_s; i++) {
            begin(seed);
            lose_regularly(periods_s[i], 20e-6, 0);
            CHECK(found_within(periods_s[i], 0.002));
        }
}

static void it_may_be_late(void)
{
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        begin(seed);
        lose_regularly(0.02, 4e-3, 3e-3);
        CHECK(found_within(0.02, 0.005));
    }
}

static void it_is_found_among_random_ones(void)
{
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        begin(seed);
        lose_regularly(0.01, 1e-3, 0);
        lose_at_random(300, 1e-3);
        CHECK(found_within(0.01, 0.001));
    }
}

/* Where the time goes counts first, then how often. */
static void what_takes_most_time_comes_first(void)
{
    begin(1);
    lose_regularly(0.004, 5e-6, 0);
    lose_regularly(0.05, 5e-3, 0);
    CHECK(found_within(0.05, 0.001));
}

static void small_ones_are_found_beside_large_random_ones(void)
{
    begin(1);
    lose_regularly(0.004, 5e-6, 0);
    lose_at_random(30, 20e-3);
    CHECK(found_within(0.004, 0.001));
}

static void random_ones_have_no_period(void)
{
    const unsigned counts[] = {12, 30, 100, 1000, 10000};
    for (unsigned seed = 0; seed < SEEDS; seed++)
        for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
            begin(seed);
            lose_at_random(counts[i], 10e-3);
            struct period found = period_find(lost_s, BINS, BIN_S);
            CHECK(isnan(found.seconds) && found.why);
        }
}

/* Twenty losses within some milliseconds, at random moments. */
static void bursts_have_no_period(void)
{
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        begin(seed);
        for (unsigned burst = 0; burst < 40; burst++) {
            double at_s = BINS * BIN_S * random_number();
            for (unsigned i = 0; i < 20; i++)
                lose(at_s + 10e-3 * random_number(), 1e-3);
        }
        CHECK(isnan(period_find(lost_s, BINS, BIN_S).seconds));
    }
}

static void a_reason_says_why_there_is_none(void)
{
    begin(0);
    CHECK(!strcmp(period_find(lost_s, BINS, BIN_S).why, "too few interruptions"));
    CHECK(!strcmp(period_find(lost_s, PERIOD_BINS_LEAST - 1, BIN_S).why, "the run was too short"));
    lose_at_random(100, 1e-3);
    CHECK(!strcmp(period_find(lost_s, BINS, BIN_S).why, "the interruptions are not regular"));
}

int main(void)
{
    a_regular_disturbance_is_found();
    it_may_be_late();
    it_is_found_among_random_ones();
    what_takes_most_time_comes_first();
    small_ones_are_found_beside_large_random_ones();
    random_ones_have_no_period();
    bursts_have_no_period();
    a_reason_says_why_there_is_none();
    return 0;
}
