/* From pieces of work to windows, and from windows to figures. */
#ifndef GPU_BENCH_WINDOW_RECORD_H
#define GPU_BENCH_WINDOW_RECORD_H

#include "job.h"
#include "statistics.h"

struct lane_time {
    double work, seconds; /* by the device's clock */
};

struct window_record {
    unsigned lanes;
    struct lane_time window[WINDOWS_LANES_MAX]; /* the one that is being filled */
    struct lane_time whole[WINDOWS_LANES_MAX];
    struct reservoir rates;
    uint64_t count, pieces;
    double best, sum, sum_of_squares; /* the latter two less the first window's rate, each */
    double first;
};

/* 0, or -1 without memory. */
int window_record_open(struct window_record *record);
void window_record_close(struct window_record *record);
/* A phase begins: nothing is done yet. */
void window_record_begin(struct window_record *record, unsigned lanes);
/* A piece of a lane is done. A window ends with the piece with which each lane has its 100 ms. */
void window_record_add(struct window_record *record, unsigned lane, double work, double seconds);
/* wall_s is left 0. Sorts what it keeps: once a phase. */
struct windows_figures window_record_figures(struct window_record *record);

#endif
