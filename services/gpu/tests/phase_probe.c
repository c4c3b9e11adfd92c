/* One trial of the measuring engine on a device that is made up: seconds that a unit of work takes in
 * calibration, seconds that it takes afterwards, and pieces after which the timed phase is over. Prints
 * the size of a piece after calibration and at the end, how often what is left was looked at, and the
 * warnings. */
#include "clocks.h"
#include "figures.h"
#include "lane.h"
#include "telemetry.h"
#include "windows.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static double unit_s;
static long pieces_left;
static unsigned looked;
static struct gpu_job job;

/* ---- what the engine calls ------------------------------------------------------------------- */

int lane_open(struct lane *lane, struct gpu_job *of, unsigned index)
{
    (void)of;
    *lane = (struct lane){.index = index};
    return EXIT_OK;
}

void lane_close(struct lane *lane)
{
    (void)lane;
}

int lane_enqueue(struct lane *lane, struct gpu_job *of, uint64_t size)
{
    (void)of;
    lane->pieces_ahead[(lane->first + lane->queued++) % WINDOWS_AHEAD].size = size;
    lane->pieces++;
    lane->total += size;
    pieces_left--;
    return EXIT_OK;
}

int lane_done(const struct lane *lane, bool *done)
{
    *done = lane->queued;
    return EXIT_OK;
}

int lane_wait(const struct lane *lane)
{
    (void)lane;
    return EXIT_OK;
}

int lane_take(struct lane *lane, double *seconds, uint64_t *size)
{
    uint64_t taken = lane->pieces_ahead[lane->first].size;
    lane->first = (lane->first + 1) % WINDOWS_AHEAD;
    lane->queued--;
    *seconds = (double)taken * unit_s;
    if (size)
        *size = taken;
    return EXIT_OK;
}

void clocks_begin(struct gpu_job *of)
{
    (void)of;
}

int clocks_end(struct gpu_job *of)
{
    (void)of;
    return EXIT_OK;
}

void telemetry_begin(struct telemetry *telemetry)
{
    (void)telemetry;
}

void telemetry_end(struct telemetry *telemetry)
{
    (void)telemetry;
}

void figures_report(struct gpu_job *of)
{
    (void)of;
}

void gpu_pause(void)
{
}

int gpu_wait(const struct gpu_event *event)
{
    (void)event;
    return EXIT_OK;
}

void *run_shared(const struct run *run)
{
    (void)run;
    return &job;
}

bool run_stopping(const struct run *run)
{
    (void)run;
    return false;
}

bool run_loop_timed(const struct thread *thread)
{
    (void)thread;
    return true;
}

bool run_loop_over(const struct thread *thread, uint64_t begun, double at_s)
{
    (void)thread, (void)begun, (void)at_s;
    return pieces_left <= 0;
}

void run_bulk_done(struct thread *thread, uint64_t work, double rate)
{
    (void)thread, (void)work, (void)rate;
}

void run_bulk_rate(struct run *run, double rate)
{
    (void)run, (void)rate;
}

void run_reason(struct run *run, const char *format, ...)
{
    (void)run, (void)format;
}

void run_warning(const struct run *run, const char *code, const char *format, ...)
{
    (void)run, (void)format;
    printf("warning %s\n", code);
}

/* ---- a trial --------------------------------------------------------------------------------- */

static int look(struct gpu_job *of)
{
    (void)of;
    looked++;
    return EXIT_OK;
}

int main(int count, char **words)
{
    static const struct gpu_kind kind = {.verify = look};
    struct thread thread = {0};
    if (count != 4)
        return 1;
    unit_s = atof(words[1]);
    job = (struct gpu_job){
        .kind = &kind,
        .work = {.lanes = 1, .work_per_size = 1, .size_min = 1, .size_max = 1 << 20}};
    if (windows_open(&job))
        return 1;
    printf("calibrated %" PRIu64 "\n", windows_size(&job));
    unit_s = atof(words[2]);
    if (windows_prepare(&thread))
        return 1;
    pieces_left = atol(words[3]);
    if (windows_loop(&thread) || windows_verify(&thread, 0))
        return 1;
    windows_finish(&thread);
    printf("size %" PRIu64 "\nlooked %u\n", windows_size(&job), looked);
    windows_close(&job);
    windows_free(&job);
    return 0;
}
