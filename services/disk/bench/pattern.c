#define _GNU_SOURCE
#include "pattern.h"

#include <math.h>
#include <string.h>
#include <sys/auxv.h>

/* ---- random numbers ------------------------------------------------------------------------- */

uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* A random number in [0, 1). */
static double random_share(uint64_t *state)
{
    return (double)(random_next(state) >> 11) * 0x1p-53;
}

/* The kernel gives each process sixteen random bytes. */
static uint64_t process_seed(void)
{
    uint64_t seed;
    memcpy(&seed, (const void *)getauxval(AT_RANDOM), sizeof seed);
    return seed;
}

uint64_t random_seed(unsigned index)
{
    uint64_t state = process_seed() + index;
    return random_next(&state);
}

/* ---- permutations --------------------------------------------------------------------------- */

/* Odd, with about as many ones as zeros: those of MurmurHash3's finalizer and of Weyl sequences. */
static const uint64_t FIRST = 0xff51afd7ed558ccdu, SECOND = 0xc4ceb9fe1a85ec53u,
                      THIRD = 0x9e3779b97f4a7c15u;

static struct scatter scatter_of(uint64_t count, uint64_t seed)
{
    unsigned bits = 1;
    while (bits < 63 && count > (uint64_t)1 << bits)
        bits++;
    return (struct scatter){
        .count = count,
        .mask = ((uint64_t)1 << bits) - 1,
        .shift = (bits + 1) / 2,
        .seed = seed,
    };
}

/* Odd multiplications and shifted exclusive ors can be undone, so no two numbers become one. Four of
 * them: with three, one order in a hundred had a distance that came up twenty times in 65,536. */
static uint64_t bijection(const struct scatter *scatter, uint64_t x)
{
    uint64_t mask = scatter->mask;
    x = ((x ^ (scatter->seed & mask)) * FIRST) & mask;
    x ^= x >> scatter->shift;
    x = ((x + (scatter->seed >> 32)) * SECOND) & mask;
    x ^= x >> scatter->shift;
    x = ((x ^ (scatter->seed >> 16 & mask)) * FIRST) & mask;
    x ^= x >> scatter->shift;
    x = (x * THIRD) & mask;
    return x ^ x >> scatter->shift;
}

/* Walks on until it is back among the numbers that are small enough, which is at once for more than
 * half of them; that too can be undone. */
static uint64_t scattered(const struct scatter *scatter, uint64_t x)
{
    do
        x = bijection(scatter, x);
    while (x >= scatter->count);
    return x;
}

/* ---- Zipf ----------------------------------------------------------------------------------- */

/* Rejection-inversion: Hörmann and Derflinger, "Rejection-inversion to generate variates from
 * monotone discrete distributions", ACM TOMACS 6 (1996). Exact for every theta above 0, with nothing
 * to be summed up beforehand; fio's method (Gray et al., SIGMOD 1994) sums over all blocks and
 * approximates. */

/* Integral of x^-theta, with log(x) at theta 1. */
static double integral(double theta, double x)
{
    double exponent = (1 - theta) * log(x);
    double stretch = fabs(exponent) > 1e-8 ? expm1(exponent) / exponent : 1 + exponent / 2;
    return stretch * log(x);
}

static double integral_inverse(double theta, double y)
{
    double scaled = fmax(y * (1 - theta), -1); /* below it only by rounding */
    double stretch = fabs(scaled) > 1e-8 ? log1p(scaled) / scaled : 1 - scaled / 2;
    return exp(stretch * y);
}

static struct zipf zipf_of(uint64_t count, double theta)
{
    return (struct zipf){
        .count = (double)count,
        .theta = theta,
        .first = integral(theta, 1.5) - 1,
        .last = integral(theta, (double)count + 0.5),
        .sure = 2 - integral_inverse(theta, integral(theta, 2.5) - pow(2, -theta)),
    };
}

/* Rank 0 is the most frequent. */
static uint64_t zipf_rank(const struct zipf *zipf, uint64_t *random)
{
    for (;;) {
        double drawn = zipf->last + random_share(random) * (zipf->first - zipf->last);
        double x = integral_inverse(zipf->theta, drawn);
        double rank = fmin(fmax(floor(x + 0.5), 1), zipf->count);
        if (rank - x <= zipf->sure ||
            drawn >= integral(zipf->theta, rank + 0.5) - pow(rank, -zipf->theta))
            return (uint64_t)rank - 1;
    }
}

/* ---- patterns ------------------------------------------------------------------------------- */

void pattern_init(struct pattern *pattern, const struct disk_job *job, unsigned index)
{
    uint64_t seed = random_seed(index);
    *pattern = (struct pattern){
        .first = job->apart ? index * job->region_blocks : 0,
        .blocks = job->region_blocks,
        .sequential = job->sequential,
        .zipf_drawn = job->zipf,
        .random = seed,
        /* Of all threads alike: what one draws often, the others do. */
        .scatter = scatter_of(job->region_blocks, job->zipf ? process_seed() : seed),
    };
    if (job->zipf)
        pattern->zipf = zipf_of(job->region_blocks, job->zipf_theta);
}

static uint64_t next_of_pass(struct pattern *pattern)
{
    uint64_t at = pattern->next++;
    if (pattern->next == pattern->blocks)
        pattern->next = 0;
    return at;
}

uint64_t pattern_next(struct pattern *pattern)
{
    if (pattern->zipf_drawn)
        return pattern->first +
               scattered(&pattern->scatter, zipf_rank(&pattern->zipf, &pattern->random));
    if (!pattern->sequential && pattern->next == 0)
        pattern->scatter.seed = random_next(&pattern->random);
    uint64_t at = next_of_pass(pattern);
    return pattern->first + (pattern->sequential ? at : scattered(&pattern->scatter, at));
}
