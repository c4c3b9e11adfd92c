#include "random.h"

#include <math.h>

/* SplitMix64 (Steele, Lea, Flood 2014). */
uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* In (0, 1]. */
static double uniform(uint64_t *state)
{
    return ((double)(random_next(state) >> 11) + 1) * 0x1p-53;
}

double random_whole(uint64_t *state, int most)
{
    return floor((double)(random_next(state) >> 33) / 0x1p31 * (2 * most + 1)) - most;
}

/* Box and Muller (1958). */
double random_normal(uint64_t *state)
{
    double size = sqrt(-2 * log(uniform(state)));
    return size * cos(2 * M_PI * uniform(state));
}
