#include "loop.h"

#include "slices.h"
#include "totals.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum {
    ALIGNMENT = 128, /* no cache line of two threads */
    STREAMS_MAX = 4,
};

bool loop_in_bulk(const struct workload *workload)
{
    return workload->moved;
}

unsigned loop_streams(const struct workload *workload)
{
    unsigned count = 0;
    if (loop_in_bulk(workload))
        return 0;
    while (workload->streams && workload->streams[count])
        count++;
    assert(count <= STREAMS_MAX);
    return count ? count : 1;
}

size_t loop_bytes(const struct run *run)
{
    size_t bytes = sizeof(struct loop) + loop_streams(run->workload) * sizeof(struct histogram);
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

int loop_allocate(struct worker *worker)
{
    const struct run *run = worker->thread.run;
    worker->loop = aligned_alloc(ALIGNMENT, loop_bytes(run));
    if (!worker->loop)
        return -1;
    *worker->loop = (struct loop){.share = UINT64_MAX};
    /* Touched now, so that no page fault falls into the timed region. */
    for (unsigned i = 0; i < loop_streams(run->workload); i++)
        histogram_clear(&worker->loop->streams[i]);
    return 0;
}

void loop_free(struct worker *worker)
{
    free(worker->loop);
}

/* ---- what the workload's loop checks and reports ------------------------------------------------ */

static const struct loop *loop_of(const struct thread *thread)
{
    return ((const struct worker *)thread)->loop; /* a thread is the first member of its worker */
}

bool run_loop_timed(const struct thread *thread)
{
    return loop_of(thread)->timed;
}

bool run_loop_over(const struct thread *thread, uint64_t begun, double at_s)
{
    const struct loop *loop = loop_of(thread);
    return begun >= loop->share || at_s >= loop->end_s || run_stopping(thread->run);
}

void run_loop_done(struct thread *thread, unsigned stream, uint64_t latency_ns)
{
    struct loop *loop = ((struct worker *)thread)->loop;
    if (loop->timed)
        histogram_add(&loop->streams[stream], latency_ns);
}

const char *loop_no_rate(const struct worker *worker)
{
    const char *why = worker->loop->no_rate;
    return why ? why : "too little was done to tell it";
}

void run_bulk_none(struct thread *thread, uint64_t work, const char *why)
{
    ((struct worker *)thread)->loop->no_rate = why;
    run_bulk_done(thread, work, NAN);
}

void run_bulk_done(struct thread *thread, uint64_t work, double rate)
{
    struct worker *worker = (struct worker *)thread;
    worker->loop->rate = rate;
    worker->progress.operations = work;
}

/* ---- the two phases ------------------------------------------------------------------------- */

static const struct value *option(const struct worker *worker, const char *param)
{
    return options_get(&worker->thread.run->options, param);
}

int loop_ramp(struct worker *worker)
{
    worker->loop->end_s = now_s() + option(worker, "warmup_s")->number;
    return worker->thread.run->workload->loop(&worker->thread);
}

static uint64_t operations_of(const struct worker *worker)
{
    uint64_t operations = 0;
    for (unsigned i = 0; i < loop_streams(worker->thread.run->workload); i++)
        operations += histogram_count(&worker->loop->streams[i]);
    return operations;
}

int loop_run(struct worker *worker)
{
    const struct run *run = worker->thread.run;
    const struct value *duration = option(worker, "duration_s");
    struct loop *loop = worker->loop;
    loop->share = slices_share_of_work(worker);
    loop->timed = true;
    const struct thread_usage before = slices_begin(worker);
    loop->end_s = duration->set ? worker->start_s + duration->number : INFINITY;
    int failure = run->workload->loop(&worker->thread);
    slices_end(worker, &before);
    if (!loop_in_bulk(run->workload))
        worker->progress.operations = operations_of(worker) * run->unit_operations;
    return failure;
}

/* ---- figures -------------------------------------------------------------------------------- */

struct thread_figures loop_figures(const struct worker *worker)
{
    const struct run *run = worker->thread.run;
    struct thread_figures figures = {NAN, NAN, NAN, NAN, NAN};
    struct histogram all;
    if (worker->progress.operations == 0)
        return figures;
    figures.rate_whole = loop_in_bulk(run->workload)
                             ? worker->loop->rate
                             : (double)worker->progress.operations / worker->measured_s;
    if (!run->workload->rate.time || loop_in_bulk(run->workload))
        return figures;
    histogram_clear(&all);
    for (unsigned i = 0; i < loop_streams(run->workload); i++)
        histogram_merge(&all, &worker->loop->streams[i]);
    /* A thread's time is reported as its rate. */
    figures.rate_whole = 1e9 / histogram_quantile_ns(&all, 0.5);
    return figures;
}

void loop_merge(const struct trial *trial, unsigned stream, struct histogram *into)
{
    for (unsigned i = 0; i < trial->run->threads; i++)
        histogram_merge(into, &trial->workers[i].loop->streams[stream]);
}

void loop_merge_all(const struct trial *trial, struct histogram *into)
{
    for (unsigned i = 0; i < loop_streams(trial->run->workload); i++)
        loop_merge(trial, i, into);
}

double loop_block_bytes(const struct run *run)
{
    return (double)(rate_in_bytes(&run->workload->rate) ? run->unit_operations : run->block_bytes);
}

uint64_t run_loop_operations(const struct run *run, unsigned stream)
{
    uint64_t operations = 0;
    for (unsigned i = 0; i < run->threads; i++)
        operations += histogram_count(&run->trial->workers[i].loop->streams[stream]);
    return operations;
}

double run_loop_elapsed_s(const struct run *run)
{
    struct totals totals = totals_collect(run->trial);
    totals_free(&totals);
    return totals.last_stop_s - totals.first_start_s;
}
