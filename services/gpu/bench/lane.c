#include "lane.h"

#include "monotonic.h"

int lane_open(struct lane *lane, struct gpu_job *job, unsigned index)
{
    *lane = (struct lane){
        .index = index, .backend = job->backend, .by_host_clock = job->work.by_host_clock};
    int failure = EXIT_OK;
    for (unsigned i = 0; i < WINDOWS_AHEAD && !failure; i++) {
        failure = job->backend->event(&job->gpu, &lane->pieces_ahead[i].begin);
        if (!failure)
            failure = job->backend->event(&job->gpu, &lane->pieces_ahead[i].end);
    }
    return failure;
}

void lane_close(struct lane *lane)
{
    for (unsigned i = 0; lane->backend && i < WINDOWS_AHEAD; i++) {
        lane->backend->release_event(lane->pieces_ahead[i].begin);
        lane->backend->release_event(lane->pieces_ahead[i].end);
    }
}

int lane_enqueue(struct lane *lane, struct gpu_job *job, uint64_t size)
{
    struct lane_piece *piece = &lane->pieces_ahead[(lane->first + lane->queued) % WINDOWS_AHEAD];
    double begun_s = now_s();
    piece->size = size;
    int failure = job->work.enqueue(job, lane->index, size, piece->begin, piece->end);
    piece->host_s = now_s() - begun_s;
    if (failure)
        return failure;
    lane->queued++;
    lane->pieces++;
    lane->total += size;
    return EXIT_OK;
}

int lane_done(const struct lane *lane, bool *done)
{
    *done = lane->queued && lane->by_host_clock;
    if (!lane->queued || lane->by_host_clock)
        return EXIT_OK;
    return lane->backend->done(lane->pieces_ahead[lane->first].end, done);
}

int lane_wait(const struct lane *lane)
{
    return lane->by_host_clock ? EXIT_OK : gpu_wait(lane->pieces_ahead[lane->first].end);
}

int lane_take(struct lane *lane, double *seconds, uint64_t *size)
{
    const struct lane_piece *piece = &lane->pieces_ahead[lane->first];
    lane->first = (lane->first + 1) % WINDOWS_AHEAD;
    lane->queued--;
    if (size)
        *size = piece->size;
    if (lane->by_host_clock) {
        *seconds = piece->host_s;
        return EXIT_OK;
    }
    return lane->backend->elapsed(piece->begin, piece->end, seconds);
}
