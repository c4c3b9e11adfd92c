#define _GNU_SOURCE
#include "session.h"

#include "child.h"
#include "monotonic.h"
#include "near_control.h"
#include "near_sockets.h"
#include "stream_run.h"
#include "workload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All of the opening. */
static const double OPEN_S = 4.5;
/* A far end that works begins at once. */
static const double BEGIN_S = 3;
/* Who waits looks that often whether the run is to stop. */
static const double LOOK_S = 0.05;
/* A far end of our own is granted no more than its test needs. */
static const double CHILD_EXPIRY_S = 10;
static const double CHILD_DURATION_S = 1e6;

struct session {
    struct run *run;
    const struct test *test;
    struct test load;
    struct child child;
    struct near_control control;
    struct near_sockets sockets;
    struct stream *streams;                  /* one a socket */
    struct stream *of_sockets[SOCKETS_MOST]; /* … by its index */
    unsigned opened;                         /* so many streams were */
    struct far_report report;
    struct endpoint crr_far;
};

/* ---- opening -------------------------------------------------------------------------------- */

static int failed(struct session *session)
{
    run_reason(session->run, "%s", session->control.reason);
    return session->control.exit_code ? session->control.exit_code : EXIT_FAILED;
}

static int start_child(struct session *session, int ip_version, struct grant *grant)
{
    char why[300];
    *grant = (struct grant){
        .caps = {.duration_s = CHILD_DURATION_S, .streams = test_sockets(session->test)},
        .expiry_s = CHILD_EXPIRY_S};
    endpoint_parse(ip_version == 6 ? "::1" : "127.0.0.1", 0, &grant->address);
    if (child_start(&session->child, grant, why, sizeof why) == 0)
        return EXIT_OK;
    run_reason(session->run, "%s", why);
    return EXIT_RESOURCE;
}

static int reach(struct session *session, const struct session_where *where)
{
    struct grant grant;
    int failure = where->grant ? EXIT_OK : start_child(session, where->ip_version, &grant);
    if (failure)
        return failure;
    failure = near_control_open(&session->control, where->grant ? where->grant : &grant);
    explicit_bzero(&grant, sizeof grant);
    if (!failure)
        failure = near_control_ask(&session->control, session->test);
    return failure ? failed(session) : EXIT_OK;
}

/* Waits until `reached` is true; false when the control connection is lost or it is too late. */
static bool wait_until(struct session *session, bool (*reached)(const struct session *),
                       double until_s)
{
    struct near_control *control = &session->control;
    pthread_mutex_lock(&control->lock);
    while (!reached(session) && !atomic_load(&control->lost) && now_s() < until_s &&
           !run_stopping(session->run))
        near_control_wait(control, LOOK_S);
    bool good = reached(session) && !atomic_load(&control->lost);
    pthread_mutex_unlock(&control->lock);
    return good;
}

static bool all_openings(const struct session *session)
{
    return session->control.openings_reported == session->control.count;
}

static bool all_connected(const struct session *session)
{
    return session->control.connected;
}

static int too_late(struct session *session, const char *what)
{
    unsigned unanswered = near_sockets_unanswered(&session->sockets);
    if (unanswered > 0)
        near_control_lost(&session->control, EXIT_FAILED,
                          "the far end at %s has not answered on %u of %u UDP sockets within %g s: "
                          "check whether a firewall lets UDP through, both ways",
                          session->control.far_text, unanswered, session->sockets.count, OPEN_S);
    else
        near_control_lost(&session->control, EXIT_FAILED, "the far end at %s did not %s in time",
                          session->control.far_text, what);
    return failed(session);
}

static int connect_sockets(struct session *session, double until_s)
{
    char why[300];
    if (!wait_until(session, all_openings, until_s))
        return too_late(session, "open ports for the test");
    if (near_sockets_open(&session->sockets, session->test, &session->control.far,
                          session->control.openings, until_s, why, sizeof why)) {
        near_control_lost(&session->control, EXIT_FAILED, "%s", why);
        return failed(session);
    }
    /* The greeting takes its time by itself; over TCP there is nothing but to wait. */
    double look_s = session->test->protocol == PROTOCOL_UDP ? 0 : until_s;
    do
        near_sockets_greet(&session->sockets);
    while (!wait_until(session, all_connected, look_s) && now_s() < until_s &&
           !session_lost(session) && !run_stopping(session->run));
    return wait_until(session, all_connected, 0) ? EXIT_OK
                                                 : too_late(session, "take the data sockets");
}

static void take_facts(struct session *session)
{
    const struct far_facts *facts = &session->control.facts;
    struct far_report *report = &session->report;
    memcpy(report->host_name, facts->host_name, sizeof report->host_name);
    memcpy(report->interface, facts->interface, sizeof report->interface);
    memcpy(report->network_mode, facts->network_mode, sizeof facts->network_mode);
    memcpy(report->congestion, facts->congestion, sizeof report->congestion);
    memcpy(report->cpus, facts->cpus, sizeof report->cpus);
    report->interface_mtu = facts->interface_mtu_bytes;
    report->sockets = session->control.count;
    report->counts = session->control.counts;
    session->crr_far = session->control.far;
    endpoint_set_port(&session->crr_far, session->control.openings[0].port);
}

static int open_stream(struct session *session, unsigned index)
{
    struct place place = test_place(session->test, index);
    struct stream *stream = &session->streams[index];
    unsigned own = test_own_sockets(session->test);
    stream->test = place.load ? &session->load : session->test;
    stream->index = place.load ? index - own : index;
    stream->fd = session->sockets.sockets[index].fd;
    stream->role = place.near;
    session->of_sockets[index] = stream;
    if (stream->fd < 0)
        return EXIT_OK;
    int error = stream_open(stream);
    if (!error)
        return EXIT_OK;
    run_reason(session->run, "%s%s", place.load ? "load " : "", stream->what);
    stream->fd = -1; /* nothing to be closed */
    return error == -ENOENT || error == -EPERM ? EXIT_UNSUPPORTED : EXIT_RESOURCE;
}

static int open_streams(struct session *session)
{
    session->load = test_of_load(session->test);
    session->streams = calloc(session->sockets.count, sizeof *session->streams);
    if (!session->streams) {
        run_reason(session->run, "not enough memory for %u streams", session->sockets.count);
        return EXIT_RESOURCE;
    }
    for (; session->opened < session->sockets.count; session->opened++) {
        int failure = open_stream(session, session->opened);
        if (failure)
            return failure;
    }
    pthread_mutex_lock(&session->control.lock);
    session->control.streams = session->of_sockets;
    pthread_mutex_unlock(&session->control.lock);
    return EXIT_OK;
}

int session_open(struct run *run, const struct test *test, const struct session_where *where,
                 struct session **opened)
{
    const double until_s = now_s() + OPEN_S;
    struct session *session = calloc(1, sizeof *session);
    *opened = NULL;
    if (!session) {
        run_reason(run, "not enough memory for a session");
        return EXIT_RESOURCE;
    }
    *session =
        (struct session){.run = run, .test = test, .child = {.lifeline_fd = -1, .output_fd = -1}};
    near_control_init(&session->control);
    int failure = reach(session, where);
    if (!failure)
        failure = connect_sockets(session, until_s);
    if (!failure)
        failure = open_streams(session);
    if (failure) {
        session_close(session);
        return failure;
    }
    take_facts(session);
    *opened = session;
    return EXIT_OK;
}

void session_close(struct session *session)
{
    if (!session)
        return;
    near_control_close(&session->control);
    for (unsigned i = 0; i < session->opened; i++)
        if (session->streams[i].fd >= 0)
            stream_close(&session->streams[i]);
    near_sockets_close(&session->sockets);
    child_end(&session->child);
    free(session->streams);
    free(session);
}

/* ---- phases --------------------------------------------------------------------------------- */

static bool begun_ramp(const struct session *session)
{
    return session->control.begun >= PHASE_RAMP;
}

static bool begun_timed(const struct session *session)
{
    return session->control.begun >= PHASE_TIMED;
}

static bool ended_ramp(const struct session *session)
{
    return session->control.ended >= PHASE_RAMP;
}

static bool ended_timed(const struct session *session)
{
    return session->control.ended >= PHASE_TIMED;
}

int session_begin_phase(struct session *session, unsigned phase)
{
    struct near_control *control = &session->control;
    struct frame frame;
    near_sockets_drain(&session->sockets);
    control_put_phase(&frame, MESSAGE_BEGIN, (uint8_t)phase);
    near_control_send(control, &frame);
    if (wait_until(session, phase == PHASE_RAMP ? begun_ramp : begun_timed, now_s() + BEGIN_S) ||
        run_stopping(session->run))
        return EXIT_OK;
    near_control_lost(control, EXIT_FAILED, "the far end at %s did not begin within %g s",
                      control->far_text, BEGIN_S);
    return failed(session);
}

static void *send_start(void *context)
{
    struct session *session = context;
    struct frame frame;
    control_put_phase(&frame, MESSAGE_START, (uint8_t)session->control.begun);
    near_control_send(&session->control, &frame);
    return NULL;
}

/* The kernel appends what a thread sends over TCP to a page that it keeps for the thread, and begins
 * at the page's begin once all in it is acknowledged. BEGIN has been answered by now, START is not
 * before the stream begins, and its bytes would shift all copies of the stream. So another thread
 * sends START where this one, the first, sends a stream. */
void session_start_phase(struct session *session)
{
    pthread_t thread;
    bool streams = session->test->protocol == PROTOCOL_TCP && session->streams[0].role == ROLE_SEND;
    if (!streams || pthread_create(&thread, NULL, send_start, session))
        send_start(session);
    else
        pthread_join(thread, NULL);
}

/* What the near end has sent, and its round trips. */
static void send_totals(struct session *session)
{
    struct frame frame;
    for (unsigned i = 0; i < session->control.count; i++) {
        const struct stream *stream = &session->streams[i];
        if (stream->role != ROLE_SEND && stream->role != ROLE_ASK)
            continue; /* it may be at work still */
        struct message_sent sent = {(uint16_t)i, stream->counts.bytes, stream->counts.datagrams};
        control_put_sent(&frame, &sent);
        near_control_send(&session->control, &frame);
    }
}

int session_end_phase(struct session *session)
{
    struct near_control *control = &session->control;
    bool (*ended)(const struct session *) = control->begun == PHASE_RAMP ? ended_ramp : ended_timed;
    struct frame frame;
    send_totals(session);
    control_put_phase(&frame, MESSAGE_END, (uint8_t)control->begun);
    near_control_send(control, &frame);
    /* No bound but the heartbeats': how long a slow path takes to drain is unknown. The far end
     * gives up when nothing comes any more. */
    while (!wait_until(session, ended, now_s() + 1) && !session_lost(session))
        if (run_stopping(session->run))
            return EXIT_OK;
    if (session_lost(session))
        return failed(session);
    pthread_mutex_lock(&control->lock);
    session->report.cpu_s = control->result.cpu_s;
    session->report.wall_s = control->result.wall_s;
    session->report.strangers = control->result.strangers;
    pthread_mutex_unlock(&control->lock);
    return EXIT_OK;
}

/* ---- calls of workloads -------------------------------------------------------------------- */

struct stream *session_stream(struct session *session, unsigned index)
{
    return &session->streams[index];
}

const struct sockaddr_storage *session_crr_far(const struct session *session, unsigned index)
{
    (void)index; /* all come to one port */
    return &session->crr_far.address;
}

const uint8_t *session_key(const struct session *session, unsigned index)
{
    return session->control.openings[index].key;
}

const struct sockaddr_storage *session_near_address(const struct session *session)
{
    return &session->control.near.address;
}

const struct far_report *session_report(const struct session *session)
{
    return &session->report;
}

uint64_t session_far_moved(const struct session *session, unsigned index, double *at_s)
{
    *at_s = atomic_load_explicit(&session->control.progress_s, memory_order_relaxed);
    return atomic_load_explicit(&session->control.moved[index], memory_order_relaxed);
}

bool session_lost(const struct session *session)
{
    return atomic_load_explicit(&session->control.lost, memory_order_relaxed);
}

int session_fail(struct session *session)
{
    return failed(session);
}
