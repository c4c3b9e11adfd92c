/* Autocorrelation, by a Fourier transform (Wiener and Khinchin), of ever coarser bins: what comes a
 * little early or late is regular only in bins that are longer than that. */
#include "period.h"

#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum {
    LAG_LEAST = 4, /* below, the neighbouring bins would count for the lag itself */
    REPEATS = 3,   /* a lag must be found again at twice and three times its length */
    PERIODS_LEAST = 2 * REPEATS,
    LOSSES_LEAST = 12,
};

/* Correlation at the lag above that at half a lag more and less. Random losses reach 0.25 in a bin
 * or two; bursts correlate at all short lags alike. */
static const double REGULAR = 0.35;
/* Of the best lag's: at its multiples correlation is as high, and the shortest is the period. */
static const double AS_GOOD = 0.8;
/* Than in finer bins, which tell a period more exactly. */
static const double BETTER = 1.6;
/* Of the time lost that a longer lag must still find again, to make the period more exact. */
static const double STILL_THERE = 0.15;
/* Lags are looked at up to this share of the whole: few pairs are farther apart. */
static const double LAGS_RATIO = 0.75;

static const char NO_LOSSES[] = "too few interruptions";
static const char IRREGULAR[] = "the interruptions are not regular";
static const char NO_MEMORY[] = "not enough memory for the autocorrelation";
static const char TOO_SHORT[] = "the run was too short";

struct correlation {
    size_t bins, size; /* size: of the transform, a power of two of at least twice the bins */
    double complex *values;
    double *at; /* by lag, that of lag 0 being 1 */
};

static bool correlation_allocate(struct correlation *correlation, size_t bins)
{
    correlation->size = 1;
    while (correlation->size < 2 * bins)
        correlation->size *= 2;
    correlation->values = calloc(correlation->size, sizeof *correlation->values);
    correlation->at = calloc(bins, sizeof *correlation->at);
    return correlation->values && correlation->at;
}

static void correlation_free(struct correlation *correlation)
{
    free(correlation->values);
    free(correlation->at);
}

static void reorder(double complex *x, size_t n)
{
    for (size_t i = 1, j = 0; i < n; i++) {
        size_t bit = n / 2;
        for (; j & bit; bit /= 2)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            double complex other = x[i];
            x[i] = x[j];
            x[j] = other;
        }
    }
}

/* Of numbers, not of infinities: what `*` looks out for takes three times as long. */
static inline double complex product(double complex a, double complex b)
{
    return creal(a) * creal(b) - cimag(a) * cimag(b) +
           I * (creal(a) * cimag(b) + cimag(a) * creal(b));
}

/* Cooley and Tukey, 1965, in place; n is a power of two. */
static void transform(double complex *x, size_t n)
{
    reorder(x, n);
    for (size_t length = 2; length <= n; length *= 2) {
        double complex turn = cexp(-2 * M_PI * I / (double)length);
        for (size_t first = 0; first < n; first += length) {
            double complex factor = 1;
            for (size_t i = first; i < first + length / 2; i++) {
                double complex other = product(factor, x[i + length / 2]);
                x[i + length / 2] = x[i] - other;
                x[i] += other;
                factor = product(factor, turn);
            }
        }
    }
}

/* Of series less their mean; false: they are all alike. */
static bool correlate(struct correlation *correlation, const float *series, size_t bins)
{
    double mean = 0;
    correlation->bins = bins;
    correlation->size = 1;
    while (correlation->size < 2 * bins)
        correlation->size *= 2;
    for (size_t i = 0; i < bins; i++)
        mean += series[i] / (double)bins;
    for (size_t i = 0; i < correlation->size; i++)
        correlation->values[i] = i < bins ? series[i] - mean : 0;
    transform(correlation->values, correlation->size);
    for (size_t i = 0; i < correlation->size; i++) {
        double power = cabs(correlation->values[i]);
        correlation->values[i] = power * power;
    }
    /* The power is the same forwards and backwards, so this is the inverse transform. */
    transform(correlation->values, correlation->size);
    double whole = creal(correlation->values[0]) / (double)bins;
    for (size_t lag = 0; lag < bins && whole > 0; lag++)
        correlation->at[lag] = creal(correlation->values[lag]) / (double)(bins - lag) / whole;
    return whole > 0;
}

/* The most near a lag: what is no whole number of bins falls into two neighbours. */
static double around(const struct correlation *correlation, size_t lag, size_t reach)
{
    double most = correlation->at[lag - reach];
    for (size_t each = lag - reach + 1; each <= lag + reach; each++) {
        double one = correlation->at[each], other = correlation->at[each - 1];
        most = fmax(most, fmax(one, one + other));
    }
    return fmin(1, most);
}

static double score(const struct correlation *correlation, size_t lag)
{
    double least = 1;
    for (size_t n = 1; n <= REPEATS; n++)
        least = fmin(least, around(correlation, n * lag, n));
    double between =
        fmax(around(correlation, lag / 2, 1), around(correlation, lag + (lag + 1) / 2, 1));
    return least - fmax(0, between);
}

struct found {
    size_t lag; /* 0: none is good */
    double score;
};

/* The shortest lag that is nearly as good as the best, or rather the best of its neighbours. */
static struct found regular_lag(const struct correlation *correlation)
{
    size_t end = correlation->bins / PERIODS_LEAST, lag = LAG_LEAST;
    double best = 0;
    for (size_t each = lag; each < end; each++)
        best = fmax(best, score(correlation, each));
    if (best < REGULAR)
        return (struct found){0, 0};
    while (score(correlation, lag) < AS_GOOD * best)
        lag++;
    while (lag + 1 < end && score(correlation, lag + 1) > score(correlation, lag))
        lag++;
    return (struct found){lag, score(correlation, lag)};
}

/* The middle of what is correlated near a lag; NaN: too little is. */
static double middle(const struct correlation *correlation, double lag, size_t reach)
{
    size_t centre = (size_t)(lag + 0.5);
    double sum = 0, moment = 0;
    for (size_t each = centre - reach; each <= centre + reach; each++) {
        double weight = fmax(0, correlation->at[each]);
        sum += weight;
        moment += weight * (double)each;
    }
    return sum >= STILL_THERE ? moment / sum : NAN;
}

/* From a lag that is right within a bin: of twice as many periods a bin is half as much, and so on as
 * long as they are found. */
static double refined(const struct correlation *correlation, size_t lag)
{
    double period = middle(correlation, (double)lag, 1);
    for (double periods = 2; periods * period < LAGS_RATIO * (double)correlation->bins;
         periods *= 2) {
        double found = middle(correlation, periods * period, 2);
        if (isnan(found))
            break;
        period = found / periods;
    }
    return period;
}

/* In bins of the given series, which is made ever coarser; NaN: none. */
static double search(struct correlation *correlation, float *series, size_t bins)
{
    double period = NAN, best = 0;
    for (double width = 1; bins >= PERIOD_BINS_LEAST; width *= 2, bins /= 2) {
        struct found found = {0, 0};
        if (correlate(correlation, series, bins))
            found = regular_lag(correlation);
        if (found.score > BETTER * best) {
            period = width * refined(correlation, found.lag);
            best = found.score;
        }
        for (size_t i = 0; i < bins / 2; i++)
            series[i] = series[2 * i] + series[2 * i + 1];
    }
    return period;
}

static double search_both(struct correlation *correlation, const float *lost_s, float *series,
                          size_t bins)
{
    double period = NAN;
    for (int alike = 0; alike < 2 && isnan(period); alike++) {
        for (size_t i = 0; i < bins; i++)
            series[i] = alike ? (float)(lost_s[i] > 0) : lost_s[i];
        period = search(correlation, series, bins);
    }
    return period;
}

static size_t losses_of(const float *lost_s, size_t bins)
{
    size_t losses = 0;
    for (size_t i = 0; i < bins; i++)
        losses += lost_s[i] > 0;
    return losses;
}

struct period period_find(const float *lost_s, size_t bins, double bin_s)
{
    if (bins < PERIOD_BINS_LEAST)
        return (struct period){NAN, TOO_SHORT};
    if (losses_of(lost_s, bins) < LOSSES_LEAST)
        return (struct period){NAN, NO_LOSSES};
    struct correlation correlation = {0};
    float *series = calloc(bins, sizeof *series);
    double period = NAN;
    bool enough = correlation_allocate(&correlation, bins) && series;
    if (enough)
        period = search_both(&correlation, lost_s, series, bins);
    correlation_free(&correlation);
    free(series);
    if (isnan(period))
        return (struct period){NAN, enough ? IRREGULAR : NO_MEMORY};
    return (struct period){period * bin_s, NULL};
}
