#include "statistics.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double CONFIRMED_RATIO = 0.99;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(double *values, size_t n)
{
    assert(n > 0);
    qsort(values, n, sizeof *values, compare);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double confirmed_highest(const double *values, size_t n)
{
    double highest = 0, second = 0;
    for (size_t i = 0; i < n; i++) {
        second = fmax(second, fmin(highest, values[i]));
        highest = fmax(highest, values[i]);
    }
    return highest > 0 && second >= CONFIRMED_RATIO * highest ? highest : NAN;
}

int reservoir_init(struct reservoir *reservoir, size_t capacity)
{
    *reservoir = (struct reservoir){
        .values = malloc(capacity * sizeof(double)),
        .capacity = capacity,
        .random = 0x9e3779b97f4a7c15u,
    };
    if (!reservoir->values)
        return -1;
    /* Touched now, so that no page fault falls into the timed region. */
    memset(reservoir->values, 0xff, capacity * sizeof(double));
    return 0;
}

static uint64_t next_random(uint64_t *state) /* xorshift64, Marsaglia 2003 */
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

void reservoir_add(struct reservoir *reservoir, double value)
{
    reservoir->seen++;
    if (reservoir->kept < reservoir->capacity) {
        reservoir->values[reservoir->kept++] = value;
        return;
    }
    uint64_t place = next_random(&reservoir->random) % reservoir->seen;
    if (place < reservoir->capacity)
        reservoir->values[place] = value;
}

void reservoir_free(struct reservoir *reservoir)
{
    free(reservoir->values);
    reservoir->values = NULL;
}
