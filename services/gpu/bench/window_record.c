#include "window_record.h"

#include <math.h>
#include <string.h>

enum { WINDOWS_MAX = 65536 }; /* a longer trial keeps a random sample of so many */

static const double WINDOW_S = 0.100; /* at least */

int window_record_open(struct window_record *record)
{
    return reservoir_init(&record->rates, WINDOWS_MAX);
}

void window_record_close(struct window_record *record)
{
    reservoir_free(&record->rates);
}

void window_record_begin(struct window_record *record, unsigned lanes)
{
    record->lanes = lanes;
    memset(record->window, 0, sizeof record->window);
    memset(record->whole, 0, sizeof record->whole);
    record->rates.kept = 0;
    record->rates.seen = 0;
    record->count = record->pieces = 0;
    record->best = record->first = NAN;
    record->sum = record->sum_of_squares = 0;
}

/* Lanes add up: each by its own time. NaN: none took any. */
static double rate_of(const struct window_record *record,
                      const struct lane_time times[WINDOWS_LANES_MAX])
{
    double rate = 0;
    for (unsigned i = 0; i < record->lanes; i++)
        rate += times[i].seconds > 0 ? times[i].work / times[i].seconds : 0;
    return rate > 0 ? rate : NAN;
}

static void end_window(struct window_record *record)
{
    double rate = rate_of(record, record->window);
    memset(record->window, 0, sizeof record->window);
    if (!isfinite(rate))
        return;
    if (record->count++ == 0)
        record->first = record->best = rate;
    record->best = fmax(record->best, rate);
    double off = rate - record->first;
    record->sum += off;
    record->sum_of_squares += off * off;
    reservoir_add(&record->rates, rate);
}

static bool is_full(const struct window_record *record)
{
    for (unsigned i = 0; i < record->lanes; i++)
        if (record->window[i].seconds < WINDOW_S)
            return false;
    return true;
}

void window_record_add(struct window_record *record, unsigned lane, double work, double seconds)
{
    struct lane_time *const both[] = {&record->window[lane], &record->whole[lane]};
    for (unsigned i = 0; i < 2; i++) {
        both[i]->work += work;
        both[i]->seconds += seconds;
    }
    record->pieces++;
    if (is_full(record))
        end_window(record);
}

static double cv_of(const struct window_record *record)
{
    double count = (double)record->count;
    if (record->count < 2)
        return NAN;
    double mean_off = record->sum / count;
    double variance = (record->sum_of_squares - count * mean_off * mean_off) / (count - 1);
    return sqrt(fmax(variance, 0)) / (record->first + mean_off);
}

struct windows_figures window_record_figures(struct window_record *record)
{
    if (record->count == 0)
        end_window(record); /* the whole is shorter than a window: it is one */
    struct windows_figures figures = {.count = record->count,
                                      .rate_median = NAN,
                                      .rate_best = record->best,
                                      .rate_cv = cv_of(record),
                                      .rate_whole = rate_of(record, record->whole),
                                      .pieces = record->pieces};
    if (record->count)
        figures.rate_median = median(record->rates.values, record->rates.kept);
    for (unsigned i = 0; i < record->lanes; i++) {
        figures.work += record->whole[i].work;
        figures.device_s += record->whole[i].seconds / record->lanes;
        figures.lane_rates[i] = record->whole[i].work / record->whole[i].seconds;
    }
    return figures;
}
