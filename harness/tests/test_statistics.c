#include "statistics.h"

#include "check.h"

#include <math.h>

static void median_of_odd_and_even_counts(void)
{
    double odd[] = {9, 1, 5}, even[] = {4, 1, 3, 2}, one[] = {7};
    CHECK(median(odd, 3) == 5);
    CHECK(median(even, 4) == 2.5);
    CHECK(median(one, 1) == 7);
}

static void the_highest_needs_a_second_one(void)
{
    double clocks[] = {2.08, 3.69, 3.68}, alone[] = {3.69, 2.08}, one[] = {3.69};
    CHECK(confirmed_highest(clocks, 3) == 3.69);
    CHECK(isnan(confirmed_highest(alone, 2)));
    CHECK(isnan(confirmed_highest(one, 1)) && isnan(confirmed_highest(one, 0)));
}

static void a_reservoir_keeps_all_until_it_is_full(void)
{
    struct reservoir reservoir;
    CHECK(reservoir_init(&reservoir, 4) == 0);
    for (int i = 0; i < 3; i++)
        reservoir_add(&reservoir, i);
    CHECK(reservoir.kept == 3 && reservoir.values[2] == 2);
    reservoir_free(&reservoir);
}

/* 100 times its capacity: the median of what it kept must be that of the stream, though the
 * stream drifts. 1,000 of a uniform distribution: standard error of the median 1.6 %. */
static void a_full_reservoir_keeps_a_fair_sample(void)
{
    struct reservoir reservoir;
    enum { CAPACITY = 1000, VALUES = 100000 };
    CHECK(reservoir_init(&reservoir, CAPACITY) == 0);
    for (int i = 0; i < VALUES; i++)
        reservoir_add(&reservoir, i);
    CHECK(reservoir.kept == CAPACITY && reservoir.seen == VALUES);
    CHECK(fabs(median(reservoir.values, CAPACITY) / VALUES - 0.5) < 0.08);
    reservoir_free(&reservoir);
}

int main(void)
{
    median_of_odd_and_even_counts();
    the_highest_needs_a_second_one();
    a_reservoir_keeps_all_until_it_is_full();
    a_full_reservoir_keeps_a_fair_sample();
    return 0;
}
