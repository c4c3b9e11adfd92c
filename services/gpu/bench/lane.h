/* Pieces of work that are under way one behind another: the queue of the measuring engine. */
#ifndef GPU_BENCH_LANE_H
#define GPU_BENCH_LANE_H

#include "job.h"

enum { WINDOWS_AHEAD = 4 }; /* pieces queued at most, of a lane */

struct lane_piece {
    struct gpu_event *begin, *end;
    uint64_t size;
    double host_s; /* that queueing it took */
};

struct lane {
    unsigned index;
    struct lane_piece pieces_ahead[WINDOWS_AHEAD]; /* a ring */
    unsigned first, queued;
    uint64_t pieces, total; /* since the trial began: how many, and their sizes together */
    const struct gpu_backend *backend;
    bool by_host_clock;
};

int lane_open(struct lane *lane, struct gpu_job *job, unsigned index);
void lane_close(struct lane *lane);
/* There is room: queued < WINDOWS_AHEAD. */
int lane_enqueue(struct lane *lane, struct gpu_job *job, uint64_t size);
/* Whether the first of those under way is done; false where none is. */
int lane_done(const struct lane *lane, bool *done);
/* Until it is; or the run is to stop. */
int lane_wait(const struct lane *lane);
/* Takes it out: how long the device took, and its size (may be NULL). */
int lane_take(struct lane *lane, double *seconds, uint64_t *size);

#endif
