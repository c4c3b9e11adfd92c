#include "near_loop.h"

#include "monotonic.h"
#include "net.h"
#include "rr.h"
#include "stream_run.h"
#include "sums.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

/* What broke a data socket often stands in a message that the control connection brings a moment
 * later. */
static const double REASON_WITHIN_S = 0.3;

/* ---- what a role checks and reports ------------------------------------------------------------- */

static bool stopping(void *context)
{
    struct near_thread *own = context;
    return run_stopping(own->job->run) || session_lost(own->job->session);
}

static bool over(void *context, uint64_t moved, double at_s)
{
    struct near_thread *own = context;
    return run_loop_over(own->thread, moved, at_s) || session_lost(own->job->session);
}

static void moved(void *context, uint64_t bytes)
{
    struct near_thread *own = context;
    atomic_store_explicit(&own->moved, bytes, memory_order_relaxed);
}

static void done(void *context, uint64_t latency_ns)
{
    struct near_thread *own = context;
    own->done++;
    run_loop_done(own->thread, 0, latency_ns);
}

static bool load_stopping(void *context)
{
    struct net_job *job = context;
    return run_stopping(job->run) || session_lost(job->session);
}

int near_setup(struct thread *thread)
{
    struct net_job *job = net_job_of(thread);
    struct near_thread *own = &job->own[thread->index];
    own->thread = thread;
    own->job = job;
    own->place = test_place(&job->test, thread->index);
    own->stream = session_stream(job->session, thread->index);
    own->driver = (struct driver){
        .context = own, .over = over, .stopping = stopping, .moved = moved, .done = done};
    thread->state = own;
    if (thread->index > 0)
        return EXIT_OK;
    run_set_unit(thread->run, 1, 1);
    if (job->test.kind != KIND_STREAM)
        run_set_block_bytes(thread->run, 2 * (uint64_t)job->test.block_bytes);
    return EXIT_OK;
}

uint64_t near_moved(const struct thread *thread, double *at_s)
{
    const struct near_thread *own = thread->state;
    const struct net_job *job = own->job;
    *at_s = 0;
    if (!atomic_load(&job->timed))
        return 0;
    if (own->place.near == ROLE_SEND)
        return session_far_moved(job->session, own->place.index, at_s);
    *at_s = now_s();
    return atomic_load_explicit(&own->moved, memory_order_relaxed);
}

/* ---- failures ------------------------------------------------------------------------------- */

static bool lost_soon(const struct session *session)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    for (double until_s = now_s() + REASON_WITHIN_S; now_s() < until_s; nanosleep(&moment, NULL))
        if (session_lost(session))
            return true;
    return session_lost(session);
}

/* An exit_code with its reason. `error`: a negative errno. */
static int stream_failed(struct net_job *job, const struct stream *stream, int error)
{
    if (lost_soon(job->session))
        return session_fail(job->session);
    run_reason(job->run, "%s", stream->what);
    return error == -EBADMSG ? EXIT_WRONG : error == -ENOMEM ? EXIT_RESOURCE : EXIT_FAILED;
}

/* ---- a phase -------------------------------------------------------------------------------- */

static int load_starts(struct net_job *job)
{
    struct load_stream streams[2 * LOAD_STREAMS_MOST];
    unsigned own = test_own_sockets(&job->test), count = test_sockets(&job->test) - own;
    if (count == 0)
        return EXIT_OK;
    for (unsigned i = 0; i < count; i++)
        streams[i] = (struct load_stream){
            .stream = session_stream(job->session, own + i),
            .sends = test_place(&job->test, own + i).near == ROLE_SEND,
        };
    int error = load_begin(&job->load, streams, count, &job->load_cpus, load_stopping, job);
    if (!error)
        return EXIT_OK;
    run_reason(job->run, "the threads of %u load streams did not start (%s): use fewer", count,
               strerror(-error));
    return EXIT_RESOURCE;
}

static int load_ends(struct net_job *job)
{
    struct stream *failed = NULL;
    struct load *load = job->load;
    job->load = NULL;
    if (!load)
        return EXIT_OK;
    int error = load_join(load, &failed);
    return error ? stream_failed(job, failed, error) : EXIT_OK;
}

/* By thread 0, when all have cleared their counts. */
static int open_phase(struct net_job *job, unsigned phase)
{
    for (unsigned i = test_own_sockets(&job->test); i < test_sockets(&job->test); i++)
        stream_begin_phase(session_stream(job->session, i), (uint8_t)phase);
    int failure = session_begin_phase(job->session, phase);
    return failure ? failure : load_starts(job);
}

/* By thread 0, when all roles have ended. */
static int close_phase(struct net_job *job)
{
    if (job->load)
        load_stop(job->load);
    int failure = session_end_phase(job->session);
    int also = load_ends(job);
    return failure ? failure : also;
}

static int begin(struct thread *thread, unsigned phase)
{
    struct near_thread *own = thread->state;
    stream_begin_phase(own->stream, (uint8_t)phase);
    atomic_store(&own->moved, 0);
    own->done = 0;
    if (!run_meet(thread))
        return EXIT_OK;
    int failure = thread->index == 0 ? open_phase(own->job, phase) : EXIT_OK;
    if (failure)
        return failure;
    run_meet(thread);
    return EXIT_OK;
}

static int end(struct thread *thread)
{
    struct net_job *job = net_job_of(thread);
    if (!run_meet(thread))
        return EXIT_OK;
    int failure = thread->index == 0 ? close_phase(job) : EXIT_OK;
    if (failure)
        return failure;
    run_meet(thread);
    return EXIT_OK;
}

static int ask(struct near_thread *own)
{
    const struct session *session = own->job->session;
    if (own->job->test.kind == KIND_RR)
        return rr_ask(own->stream, &own->driver);
    return crr_ask(own->stream, session_crr_far(session, own->place.index),
                   session_near_address(session), session_key(session, own->place.index),
                   &own->driver);
}

static int play_role(struct thread *thread)
{
    struct near_thread *own = thread->state;
    if (thread->index == 0)
        session_start_phase(own->job->session);
    int error = own->place.near == ROLE_ASK ? ask(own) : stream_run(own->stream, &own->driver);
    if (run_stopping(thread->run))
        return EXIT_OK;
    if (session_lost(own->job->session))
        return session_fail(own->job->session);
    return error ? stream_failed(own->job, own->stream, error) : EXIT_OK;
}

int near_loop(struct thread *thread)
{
    if (run_loop_timed(thread))
        return play_role(thread); /* near_prepare() and near_verify() are around it */
    int failure = begin(thread, PHASE_RAMP);
    if (failure || run_stopping(thread->run))
        return failure;
    failure = play_role(thread);
    return failure ? failure : end(thread);
}

int near_prepare(struct thread *thread)
{
    int failure = begin(thread, PHASE_TIMED);
    if (!failure && thread->index == 0)
        atomic_store(&net_job_of(thread)->timed, true);
    return failure;
}

/* ---- whether both ends agree ---------------------------------------------------------------- */

static int wrong(struct near_thread *own, uint64_t sent, uint64_t received, const char *what)
{
    run_reason(own->job->run,
               "stream %u: %" PRIu64 " %s sent and %" PRIu64
               " received: this host, the far one or something between them does not work "
               "correctly; do not trust its figures",
               own->place.index, sent, what, received);
    return EXIT_WRONG;
}

static int compare_stream(struct near_thread *own)
{
    const struct stream_counts *sender = net_job_sender(own->job, own->place.index);
    const struct stream_counts *receiver = net_job_receiver(own->job, own->place.index);
    if (own->job->test.protocol == PROTOCOL_TCP && sender->bytes != receiver->bytes)
        return wrong(own, sender->bytes, receiver->bytes, "bytes");
    /* Without a number a duplicate is a datagram as any other; figures.c warns of it. */
    bool numbered = own->job->test.block_bytes >= STREAM_HEADER_BYTES;
    if (numbered && sender->datagrams < receiver->datagrams)
        return wrong(own, sender->datagrams, receiver->datagrams, "datagrams");
    return EXIT_OK;
}

/* Any free thread answers the next connection, so only the sum over all of them can be compared. */
static int compare_connections(struct near_thread *own)
{
    uint64_t requests = 0, answered = 0;
    for (unsigned i = 0; i < test_own_sockets(&own->job->test); i++) {
        requests += net_job_sender(own->job, i)->datagrams;
        answered += net_job_receiver(own->job, i)->datagrams;
    }
    return requests == answered ? EXIT_OK
                                : wrong(own, requests, answered, "requests of all streams");
}

static int compare_round_trips(struct near_thread *own)
{
    const struct stream_counts *asker = net_job_sender(own->job, own->place.index);
    const struct stream_counts *answerer = net_job_receiver(own->job, own->place.index);
    if (asker->datagrams - asker->lost_operations != own->done)
        return wrong(own, asker->datagrams - asker->lost_operations, own->done, "round trips");
    if (own->job->test.kind == KIND_CRR)
        return compare_connections(own);
    if (own->job->test.protocol == PROTOCOL_TCP && asker->datagrams != answerer->datagrams)
        return wrong(own, asker->datagrams, answerer->datagrams, "requests");
    return EXIT_OK;
}

int near_verify(struct thread *thread, uint64_t units)
{
    struct near_thread *own = thread->state;
    (void)units; /* a loop has none */
    int failure = end(thread);
    if (failure || run_stopping(thread->run))
        return failure;
    if (own->job->test.kind != KIND_STREAM)
        return compare_round_trips(own);
    const struct stream_counts *receiver = net_job_receiver(own->job, own->place.index);
    run_bulk_done(thread, receiver->bytes, receiver_rate(receiver));
    return compare_stream(own);
}
