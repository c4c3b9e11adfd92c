#define _GNU_SOURCE
#include "disk_loop.h"

#include "content.h"
#include "engine.h"
#include "file.h"
#include "io_error.h"
#include "monotonic.h"
#include "pattern.h"
#include "steady.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* While what is left is waited for, the thread looks that often whether it has waited enough. */
static const double LOOK_AGAIN_S = 0.1;
/* Longer than the harness waits for threads before it tells why and ends the process. */
static const double DRAIN_S = 2;
/* An open loop sleeps in pieces, for its time may end before the next operation is due. */
static const double NAP_S = 0.01;

/* What an open loop has to do when its time is over, it goes on doing for that long at most. */
static const double BACKLOG_S = 1;
/* A transfer that was put off as often as this, one time after the other, will not be done. */
enum { PUT_OFF_MOST = 1000 };

/* Of the requested rate; below, operations were due faster than they were done. */
static const double REACHED = 0.98;

/* The requests of one thread. */
struct queue {
    struct engine_state engine;
    struct disk_job *job;
    struct request *requests;
    struct request **idle; /* those not in flight, a stack */
    unsigned idle_count;
    struct pattern patterns[2]; /* sequential mixes go through the file twice, as enum op says */
    uint64_t reads_below;       /* of 2^53: the share of reads */
    uint64_t coins;             /* … and the generator that decides */
    /* Chosen and not begun: its block is still in flight. */
    bool held;
    enum op held_op;
    uint64_t held_block;
};

/* One call of disk_loop(). */
struct phase {
    struct thread *thread;
    struct queue *queue;
    bool timed;
    double start_s;
    double now_s; /* the last reading of the clock */
    bool stale;   /* something has taken time since */
    uint64_t begun;
};

/* ---- opening -------------------------------------------------------------------------------- */

static int buffers_map(struct queue *queue)
{
    size_t bytes = engine_thread_bytes(queue->job), alignment = engine_alignment(queue->job);
    /* That much more than needed, so that they can begin where they should. */
    uint8_t *base =
        mmap(NULL, bytes + alignment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        run_reason(queue->engine.run,
                   "not enough memory for buffers of %zu bytes in each of %u threads: use a "
                   "smaller --block-bytes or --queue-depth, or fewer threads",
                   bytes, queue->job->threads);
        return EXIT_RESOURCE;
    }
    size_t before = -(uintptr_t)base % alignment;
    if (before)
        munmap(base, before);
    munmap(base + before + bytes, alignment - before);
    /* Of 4 KiB pages the kernel would have to pin 256 for each MiB of each transfer, and the device
     * would get it in pieces. Where there are no huge pages it is so all the same. */
    madvise(base + before, bytes, MADV_HUGEPAGE);
    queue->engine.buffers = base + before;
    return EXIT_OK;
}

/* Every buffer is written once, so that its pages are there; what is in it is what writes send. */
static void requests_prepare(struct queue *queue, unsigned index)
{
    const struct disk_job *job = queue->job;
    size_t stride = engine_buffer_bytes(job);
    for (unsigned i = 0; i < job->depth; i++) {
        struct request *request = &queue->requests[i];
        request->slot = i;
        request->buffer = queue->engine.buffers + i * stride;
        if (job->writes)
            content_fill(job, request->buffer, (uint64_t)index * job->depth + i, 0);
        else
            memset(request->buffer, 1, stride);
        queue->idle[i] = request;
    }
    queue->idle_count = job->depth;
}

static void patterns_prepare(struct queue *queue, unsigned index)
{
    for (int op = OP_READ; op <= OP_WRITE; op++)
        pattern_init(&queue->patterns[op], queue->job, index);
    queue->reads_below = (uint64_t)(queue->job->read_share * 0x1p53);
    queue->coins = random_seed(queue->job->threads + index);
}

/* A descriptor of its own: threads that share one share its read-ahead, and count its users. */
static int file_open(struct queue *queue)
{
    const struct disk_job *job = queue->job;
    queue->engine.fd = scratch_reopen(&job->scratch, job->open_flags);
    if (queue->engine.fd < 0) {
        run_reason(
            queue->engine.run,
            "opening the scratch file in each of %u threads: %s; use fewer threads, or raise "
            "ulimit -n",
            job->threads, strerror(errno));
        return EXIT_RESOURCE;
    }
    if (!job->direct)
        posix_fadvise(queue->engine.fd, 0, 0,
                      job->sequential ? POSIX_FADV_SEQUENTIAL : POSIX_FADV_RANDOM);
    return EXIT_OK;
}

static void queue_free(struct queue *queue)
{
    if (queue->engine.fd >= 0)
        close(queue->engine.fd);
    if (queue->engine.buffers)
        munmap(queue->engine.buffers, engine_thread_bytes(queue->job));
    free(queue->requests);
    free(queue->idle);
    free(queue);
}

static struct queue *queue_make(struct thread *thread)
{
    struct disk_job *job = disk_job_of(thread);
    struct queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return NULL;
    queue->job = job;
    queue->engine = (struct engine_state){.job = job, .run = thread->run, .fd = -1};
    queue->requests = calloc(job->depth, sizeof *queue->requests);
    queue->idle = calloc(job->depth, sizeof(struct request *));
    if (queue->requests && queue->idle)
        return queue;
    queue_free(queue);
    return NULL;
}

int disk_loop_open(struct thread *thread)
{
    struct queue *queue = queue_make(thread);
    if (!queue) {
        run_reason(thread->run, "not enough memory for the queues of %u threads: use fewer",
                   run_threads(thread->run));
        return EXIT_RESOURCE;
    }
    int failure = buffers_map(queue);
    if (!failure)
        failure = file_open(queue);
    if (!failure) {
        requests_prepare(queue, thread->index);
        patterns_prepare(queue, thread->index);
        failure = queue->job->engine->open(&queue->engine);
    }
    if (failure)
        queue_free(queue);
    else
        thread->state = queue;
    return failure;
}

void disk_loop_close(struct thread *thread)
{
    struct queue *queue = thread->state;
    queue->job->engine->close(&queue->engine);
    queue_free(queue);
}

/* ---- one operation -------------------------------------------------------------------------- */

static enum op choose_op(struct queue *queue)
{
    const struct disk_job *job = queue->job;
    if (job->reads && job->writes)
        return random_next(&queue->coins) >> 11 < queue->reads_below ? OP_READ : OP_WRITE;
    return job->reads ? OP_READ : OP_WRITE;
}

/* Random mixes share one order, so that a pass takes every block once. */
static uint64_t choose_block(struct queue *queue, enum op op)
{
    return pattern_next(&queue->patterns[queue->job->sequential ? op : OP_READ]);
}

static bool in_flight(const struct queue *queue, uint64_t block)
{
    for (unsigned i = 0; i < queue->job->depth; i++)
        if (queue->requests[i].under_way && queue->requests[i].block == block)
            return true;
    return false;
}

static void choose(struct queue *queue)
{
    queue->held = true;
    queue->held_op = choose_op(queue);
    queue->held_block = choose_block(queue, queue->held_op);
}

/* What is verified must not be in flight twice: a read would find half of a write. Two passes of an
 * order meet at their ends, and zipf repeats itself. */
static bool must_wait(const struct queue *queue)
{
    return queue->job->verify && in_flight(queue, queue->held_block);
}

static void retire(struct queue *queue, struct request *request)
{
    request->under_way = false;
    queue->idle[queue->idle_count++] = request;
}

/* `error` 0: nothing was transferred, and nothing more will be. */
static int fail(struct queue *queue, struct request *request, int error)
{
    retire(queue, request);
    return io_error(queue->engine.run, request->op, error, request_offset(request),
                    queue->job->block_bytes - request->moved, 0);
}

/* The kernel lacked the means at the moment, or was interrupted: nothing is wrong with the disk. */
static bool put_off(int error)
{
    return error == EAGAIN || error == EINTR;
}

/* Not an error: the run is to end. */
static int give_up(struct queue *queue, struct request *request)
{
    retire(queue, request);
    return EXIT_OK;
}

static int send(struct queue *queue, struct request *request)
{
    int error = -queue->job->engine->submit(&queue->engine, request);
    if (!error)
        return EXIT_OK;
    return put_off(error) && run_stopping(queue->engine.run) ? give_up(queue, request)
                                                             : fail(queue, request, error);
}

static int send_again(struct queue *queue, struct request *request)
{
    if (run_stopping(queue->engine.run))
        return give_up(queue, request);
    if (++request->put_off > PUT_OFF_MOST)
        return fail(queue, request, (int)-request->result);
    sched_yield();
    return send(queue, request);
}

/* When the thread's operation of this number is due; they count from 0. */
static double due_of(const struct phase *phase, uint64_t number)
{
    const struct disk_job *job = phase->queue->job;
    double turn = (double)number * job->threads + phase->thread->index;
    return phase->start_s + turn / job->rate;
}

static double due_s(const struct phase *phase)
{
    return due_of(phase, phase->begun);
}

static void read_clock(struct phase *phase)
{
    phase->now_s = now_s();
    phase->stale = false;
}

/* What stands in a block is no part of an operation's time, nor of that of the one before. */
static int write_content(struct phase *phase, struct request *request)
{
    struct engine_state *state = &phase->queue->engine;
    const struct engine *engine = phase->queue->job->engine;
    if (request->op == OP_READ)
        return EXIT_OK;
    int error = engine->hand_over ? -engine->hand_over(state) : 0;
    if (error)
        return io_error_of(state->run, "handing a request to the kernel", error);
    phase->stale = true;
    return content_next(phase->thread, request->buffer, request->block);
}

static int check_content(struct phase *phase, const struct request *request)
{
    if (!phase->queue->job->verify)
        return EXIT_OK;
    phase->stale = true;
    if (request->op == OP_WRITE) {
        content_written(phase->queue->job, request->buffer, request->block);
        return EXIT_OK;
    }
    return content_check(phase->thread, request->buffer, request->block);
}

/* Begins the operation that was chosen. */
static int begin(struct phase *phase)
{
    struct queue *queue = phase->queue;
    const struct disk_job *job = queue->job;
    struct request *request = queue->idle[queue->idle_count - 1];
    request->op = queue->held_op;
    request->block = queue->held_block;
    request->offset = request->block * job->block_bytes;
    request->moved = 0;
    request->put_off = 0;
    int failure = write_content(phase, request);
    if (failure)
        return failure;
    if (phase->stale)
        read_clock(phase);
    request->begun_s = job->rate > 0 ? due_s(phase) : phase->now_s;
    request->under_way = true;
    queue->held = false;
    queue->idle_count--;
    phase->begun++;
    phase->stale = true;
    return send(queue, request);
}

static int finish(struct phase *phase, struct request *request)
{
    struct queue *queue = phase->queue;
    const struct disk_job *job = queue->job;
    unsigned stream = job->reads && job->writes ? (unsigned)request->op : 0;
    double latency_s = phase->now_s - request->begun_s;
    run_loop_done(phase->thread, stream, latency_s > 0 ? (uint64_t)(latency_s * 1e9) : 0);
    if (phase->timed && job->steady_state)
        steady_done(phase->thread, phase->now_s);
    retire(queue, request);
    return check_content(phase, request);
}

/* Of a transfer that ended short, the rest is requested: the operation is done when all of it is. */
static int take(struct phase *phase, struct request *request)
{
    struct queue *queue = phase->queue;
    if (put_off((int)-request->result))
        return send_again(queue, request);
    if (request->result <= 0)
        return fail(queue, request, (int)-request->result);
    request->put_off = 0;
    request->moved += (size_t)request->result;
    return request->moved < queue->job->block_bytes ? send(queue, request) : finish(phase, request);
}

/* ---- the loop ------------------------------------------------------------------------------- */

static bool over_at(const struct phase *phase, double at_s)
{
    return run_loop_over(phase->thread, phase->begun, at_s);
}

/* In an open loop, what was due in time is begun even late: who leaves out what a stall at the end
 * has held up leaves out the worst latencies. */
static bool over(const struct phase *phase)
{
    if (!over_at(phase, phase->now_s))
        return false;
    return phase->queue->job->rate <= 0 || over_at(phase, due_s(phase)) ||
           over_at(phase, phase->now_s - BACKLOG_S);
}

/* How many operations of this thread were due in time and are not begun, when all is over. */
static uint64_t left_over(const struct phase *phase)
{
    const struct disk_job *job = phase->queue->job;
    if (job->rate <= 0 || over_at(phase, due_s(phase)))
        return 0;
    double most_s = phase->now_s - BACKLOG_S - due_s(phase);
    uint64_t from = phase->begun, to = from + (uint64_t)ceil(most_s * job->rate / job->threads);
    while (from < to) { /* for the first that was due too late */
        uint64_t middle = from + (to - from) / 2;
        if (over_at(phase, due_of(phase, middle)))
            to = middle;
        else
            from = middle + 1;
    }
    return from - phase->begun;
}

/* Whether the next operation may be begun as far as time is concerned. */
static bool is_due(const struct phase *phase)
{
    return phase->queue->job->rate <= 0 || due_s(phase) <= phase->now_s;
}

/* Begins what may begin. */
static int begin_all(struct phase *phase)
{
    struct queue *queue = phase->queue;
    int failure = EXIT_OK;
    while (!failure && queue->idle_count > 0 && !over(phase) && is_due(phase)) {
        if (!queue->held)
            choose(queue);
        if (must_wait(queue))
            break;
        failure = begin(phase);
    }
    return failure;
}

/* How long a completion may be waited for. Of a disk that never answers the harness's main thread
 * tells, and ends the process. */
static double patience_s(const struct phase *phase)
{
    const struct queue *queue = phase->queue;
    if (queue->job->rate <= 0 || queue->idle_count == 0 || queue->held || over(phase))
        return FOREVER_S;
    return fmin(fmax(due_s(phase) - phase->now_s, 0), NAP_S);
}

/* Waits for one that is done, and takes it. Only one, although more may be: it is begun anew before
 * the next is looked at, so that the queue is never less deep than requested. */
static int take_one(struct phase *phase)
{
    struct queue *queue = phase->queue;
    struct request *done;
    int count = queue->job->engine->reap(&queue->engine, &done, 1, patience_s(phase));
    read_clock(phase);
    if (count < 0)
        return io_error_of(queue->engine.run, "waiting for the disk", -count);
    return count > 0 ? take(phase, done) : EXIT_OK;
}

/* With nothing in flight, until the next operation is due. */
static void nap(struct phase *phase)
{
    double until_s = fmin(due_s(phase), phase->now_s + NAP_S);
    struct timespec until = {(time_t)until_s, (long)((until_s - floor(until_s)) * 1e9)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    read_clock(phase);
}

static bool any_in_flight(const struct queue *queue)
{
    return queue->idle_count < queue->job->depth;
}

/* What is in flight when the end comes early is waited for: the kernel would do so when the thread
 * ends, and meanwhile nothing would show why the process does not. */
static void drain(struct queue *queue)
{
    double until_s = now_s() + DRAIN_S;
    struct request *done;
    while (any_in_flight(queue) && now_s() < until_s)
        if (queue->job->engine->reap(&queue->engine, &done, 1, LOOK_AGAIN_S) > 0)
            retire(queue, done);
}

static int work(struct phase *phase)
{
    struct queue *queue = phase->queue;
    int failure = EXIT_OK;
    while (!failure && !run_stopping(phase->thread->run)) {
        failure = begin_all(phase);
        if (failure)
            break;
        if (any_in_flight(queue))
            failure = take_one(phase);
        else if (over(phase))
            break;
        else
            nap(phase);
    }
    drain(queue);
    return failure;
}

/* A timer may otherwise be late by 50 µs, which would all be latency. */
static void wake_in_time(const struct disk_job *job)
{
    if (job->rate > 0)
        prctl(PR_SET_TIMERSLACK, 1UL);
}

int disk_loop(struct thread *thread)
{
    struct queue *queue = thread->state;
    const struct engine *engine = queue->job->engine;
    struct phase phase = {
        .thread = thread,
        .queue = queue,
        .timed = run_loop_timed(thread),
        .start_s = now_s(),
    };
    phase.now_s = phase.start_s;
    wake_in_time(queue->job);
    int failure = work(&phase);
    if (failure || run_stopping(thread->run))
        return failure;
    if (phase.timed) {
        queue->job->own[thread->index].left_over = left_over(&phase);
        return file_sync(thread);
    }
    if (engine->let_go)
        engine->let_go(&queue->engine);
    return file_settle(thread);
}

double disk_loop_worked_s(const struct disk_job *job)
{
    double sync_s = 0;
    for (unsigned i = 0; i < job->threads; i++)
        sync_s = fmax(sync_s, job->own[i].sync_s);
    return run_loop_elapsed_s(job->run) - sync_s;
}

void disk_loop_report(const struct disk_job *job)
{
    double worked_s = disk_loop_worked_s(job);
    double done = (double)run_loop_operations(job->run, 0);
    uint64_t left = 0;
    if (job->reads && job->writes)
        done += (double)run_loop_operations(job->run, 1);
    disk_job_report_sample(job, done);
    for (unsigned i = 0; i < job->threads; i++)
        left += job->own[i].left_over;
    /* Each thread's last one may have been due at the very end. */
    if (job->rate <= 0 || (!left && done + job->threads >= REACHED * job->rate * worked_s))
        return;
    run_warning(job->run, "rate_not_reached",
                "%.6g operations a second of the %.6g that were due, and %" PRIu64
                " never begun: latencies hold the time spent waiting for others, and grow with the "
                "length of the run; use a lower --rate for those of the disk",
                done / worked_s, job->rate, left);
}
