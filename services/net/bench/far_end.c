#define _GNU_SOURCE
#include "far_end.h"

#include "control.h"
#include "door.h"
#include "ending.h"
#include "far_agreement.h"
#include "far_roles.h"
#include "far_sockets.h"
#include "json.h"
#include "monotonic.h"
#include "output.h"
#include "workload.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* The main thread looks at caps and silence that often. */
static const double LOOK_S = 0.1;
/* The control connection takes little; a near end that takes nothing for that long is gone. */
static const double SEND_S = 1;
/* Receivers that still wait for something, when the near end has sent it all, and get nothing for
 * that long, will not get it. */
static const double STUCK_S = 5;
/* From one step of the opening to the next; a near end gives up sooner. */
static const double AGREE_S = 5;
/* What is open besides the sockets of the test and what their streams need. */
enum { DESCRIPTORS_BESIDES = 64 + CALLERS_MOST + PENDING_MOST };
/* What is left to do at the end is done within a second: threads give up, and the near end reads
 * why it was refused. */
static const double STOP_S = 0.5;
static const double FAREWELL_S = 0.2;
/* A rate is held in the long run; a burst is not over the cap. */
static const double BURST_S = 0.5;
static const double TOLERANCE = 1.05;

enum state {
    STATE_WAITING, /* for the proof */
    STATE_PROVEN,  /* for the test */
    STATE_OPENING, /* for the data sockets */
    STATE_IDLE,    /* for a phase */
    STATE_RUNNING,
    STATE_ENDING, /* the phase is over, receivers drain */
};

enum { FDS_MOST = ENDING_FDS + DOOR_FDS + 2 + FAR_SOCKETS_FDS };

struct far_end {
    struct grant grant;
    struct ending ending;
    struct door door;
    struct caller *control;
    enum state state;
    struct test test;
    struct far_sockets sockets;
    struct far_roles roles;
    uint8_t next_phase;
    double opened_s, proven_s;
    double opening_step_s; /* when the near end last went a step on in opening the test */
    double heard_s;        /* from the near end */
    double looked_s;       /* at the clock */
    double beat_s;         /* when the next heartbeat is due */
    uint64_t moved_before; /* in phases that are over */
    uint64_t stuck_at;     /* while ending: what had been moved … */
    double stuck_s;        /* … since then */
    const char *outcome;   /* NULL: it goes on */
    char reason[512];
    struct pollfd fds[FDS_MOST];
};

/* ---- how it ends ---------------------------------------------------------------------------- */

/* The first outcome counts. `refusal` 0: nothing is sent to the near end. */
__attribute__((format(printf, 4, 5))) static void
finish(struct far_end *far, const char *outcome, enum refusal refusal, const char *format, ...)
{
    struct frame frame;
    va_list arguments;
    if (far->outcome)
        return;
    far->outcome = outcome;
    va_start(arguments, format);
    vsnprintf(far->reason, sizeof far->reason, format, arguments);
    va_end(arguments);
    if (!refusal || !far->control)
        return;
    char text[sizeof((struct message_refused *)NULL)->text];
    snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1, far->reason);
    control_put_refused(&frame, refusal, text);
    frame_send(&frame, far->control->fd, FAREWELL_S);
}

static void lost(struct far_end *far, const char *how)
{
    finish(far, "lost", 0, "the near end %s", how);
}

static void send_frame(struct far_end *far, struct frame *frame)
{
    if (!far->outcome && frame_send(frame, far->control->fd, SEND_S))
        lost(far, "takes no more messages");
}

static void wrong_message(struct far_end *far, const char *what)
{
    finish(far, "refused", REFUSAL_PROTOCOL, "the near end sent %s", what);
}

/* ---- agreeing on a test --------------------------------------------------------------------- */

static void send_openings(struct far_end *far)
{
    struct message_listening listening;
    struct frame frame;
    for (unsigned i = 0; i < far->sockets.count; i += listening.count) {
        unsigned left = far->sockets.count - i;
        listening.first = (uint16_t)i;
        listening.count = (uint16_t)(left < OPENINGS_A_FRAME ? left : OPENINGS_A_FRAME);
        for (unsigned j = 0; j < listening.count; j++) {
            const struct far_socket *socket = &far->sockets.sockets[i + j];
            listening.openings[j].port = socket->port;
            memcpy(listening.openings[j].key, socket->key, KEY_BYTES);
        }
        control_put_listening(&frame, &listening);
        send_frame(far, &frame);
    }
}

/* A sender has a file besides its socket. */
static bool enough_descriptors(struct far_end *far)
{
    struct rlimit limit;
    unsigned needed = 2 * test_sockets(&far->test) + DESCRIPTORS_BESIDES;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= needed)
        return true;
    finish(far, "refused", REFUSAL_RESOURCE,
           "the far end may have %llu files open and needs %u for %u sockets: use fewer streams, "
           "or raise its limit (ulimit -Hn, LimitNOFILE of the service)",
           (unsigned long long)limit.rlim_cur, needed, test_sockets(&far->test));
    return false;
}

/* NULL, or what this kernel lacks for the test. */
static const char *unsupported(const struct test *test)
{
    return *test->congestion ? endpoint_congestion_unsupported(test->congestion) : NULL;
}

static void take_test(struct far_end *far, struct reader *body)
{
    const char *why;
    char line[400];
    struct endpoint local;
    if (!control_read_test(body, &far->test, &why)) {
        finish(far, "refused", REFUSAL_TEST, "the far end refuses the test: %s", why);
        return;
    }
    if (!agreement_within(&far->test, &far->grant.caps, line, sizeof line)) {
        finish(far, "refused", REFUSAL_CAP, "%s", line);
        return;
    }
    if (!agreement_place(&far->test, line, sizeof line)) {
        finish(far, "refused", REFUSAL_TEST, "%s", line);
        return;
    }
    if ((why = unsupported(&far->test))) {
        finish(far, "refused", REFUSAL_UNSUPPORTED, "congestion %s at the far end: %s",
               far->test.congestion, why);
        return;
    }
    if (!enough_descriptors(far))
        return;
    int error = endpoint_of_socket(far->control->fd, &local)
                    ? far_sockets_open(&far->sockets, &far->test, &local, &far->control->from)
                    : -ENOTCONN;
    if (error) {
        finish(far, "refused", REFUSAL_RESOURCE, "the far end cannot open %u sockets: %s",
               test_sockets(&far->test), strerror(-error));
        return;
    }
    far->state = STATE_OPENING;
    far->opening_step_s = now_s();
    send_openings(far);
}

/* All data sockets are there. */
static void connected(struct far_end *far)
{
    struct far_facts facts;
    struct frame frame;
    char why[400];
    if (far_roles_open(&far->roles, &far->test, &far->sockets, why, sizeof why)) {
        finish(far, "refused", REFUSAL_RESOURCE, "the far end cannot do the test: %s", why);
        return;
    }
    agreement_facts(&far->test, &far->sockets, far->control->fd, &facts);
    control_put_connected(&frame, &facts);
    far->state = STATE_IDLE;
    send_frame(far, &frame);
}

/* ---- the phases ----------------------------------------------------------------------------- */

static void take_begin(struct far_end *far, struct reader *body)
{
    uint8_t phase;
    char why[400];
    struct frame frame;
    if (!control_read_phase(body, &phase) || phase != far->next_phase) {
        wrong_message(far, "a BEGIN that is malformed or out of order");
        return;
    }
    far_sockets_drain(&far->sockets);
    far->state = STATE_RUNNING;
    far->next_phase++;
    if (far_roles_begin(&far->roles, phase, why, sizeof why)) {
        finish(far, "failed", REFUSAL_RESOURCE, "the far end cannot begin: %s", why);
        return;
    }
    control_put_phase(&frame, MESSAGE_BEGUN, phase);
    send_frame(far, &frame);
}

static void take_start(struct far_end *far, struct reader *body)
{
    uint8_t phase;
    if (control_read_phase(body, &phase) && phase == far->roles.phase &&
        !atomic_load(&far->roles.started))
        far_roles_start(&far->roles);
    else
        wrong_message(far, "a START that is malformed or out of order");
}

static bool near_end_sends(const struct far_roles *roles, unsigned index)
{
    return index < roles->count && roles->roles[index].place.far != ROLE_SEND;
}

static void take_sent(struct far_end *far, struct reader *body)
{
    struct message_sent sent;
    if (control_read_sent(body, &sent) && near_end_sends(&far->roles, sent.index))
        far_roles_expect(&far->roles, sent.index, sent.bytes, sent.datagrams);
    else
        wrong_message(far, "a SENT that is malformed");
}

static void send_results(struct far_end *far)
{
    struct frame frame;
    struct far_roles *roles = &far->roles;
    struct message_result result = {.phase = roles->phase,
                                    .cpu_s =
                                        seconds_of(CLOCK_PROCESS_CPUTIME_ID) - roles->cpu_before_s,
                                    .wall_s = now_s() - roles->begun_s,
                                    .strangers = far->door.strangers + far->sockets.strangers};
    for (unsigned i = 0; i < roles->count; i++) {
        struct message_counts message = {.index = (uint16_t)i,
                                         .counts = roles->roles[i].stream.counts};
        control_put_counts(&frame, &message);
        send_frame(far, &frame);
    }
    control_put_result(&frame, &result);
    send_frame(far, &frame);
}

static void end_phase_when_drained(struct far_end *far)
{
    if (far->outcome || far->state != STATE_ENDING || !far_roles_all_ended(&far->roles))
        return;
    far_roles_join(&far->roles);
    far->moved_before += far_roles_moved(&far->roles);
    far->state = STATE_IDLE;
    send_results(far);
}

static void take_end(struct far_end *far, struct reader *body)
{
    uint8_t phase;
    if (!control_read_phase(body, &phase) || phase != far->roles.phase) {
        wrong_message(far, "an END that is malformed or out of order");
        return;
    }
    for (unsigned i = 0; i < far->roles.count; i++)
        if (near_end_sends(&far->roles, i) &&
            atomic_load(&far->roles.roles[i].stream.expected) == STREAM_UNKNOWN) {
            wrong_message(far, "END before it reported what it has sent");
            return;
        }
    atomic_store(&far->roles.stop_sending, true);
    far->state = STATE_ENDING;
    far->stuck_at = far_roles_moved(&far->roles);
    far->stuck_s = now_s();
    end_phase_when_drained(far);
}

static bool control_closed(const struct far_end *far)
{
    char byte;
    ssize_t count = recv(far->control->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

/* A near end that dies takes its data sockets with it. */
static void role_failed(struct far_end *far, const struct far_role *role)
{
    if (control_closed(far))
        lost(far, "has closed the control connection");
    else
        finish(far, "failed", REFUSAL_FAILED, "the far end: %s%s", role->place.load ? "load " : "",
               role->stream.what);
}

static void take_ended_roles(struct far_end *far)
{
    eventfd_t count;
    struct far_role *role;
    struct frame frame;
    eventfd_read(far->roles.wake_fd, &count);
    while (!far->outcome && (role = far_roles_next_ended(&far->roles))) {
        if (role->error) {
            role_failed(far, role);
        } else if (role->place.far == ROLE_SEND) {
            const struct stream_counts *counts = &role->stream.counts;
            struct message_sent sent = {(uint16_t)role->place.index, counts->bytes,
                                        counts->datagrams};
            control_put_sent(&frame, &sent);
            send_frame(far, &frame);
        }
    }
    end_phase_when_drained(far);
}

/* ---- messages ------------------------------------------------------------------------------- */

static void take_bye(struct far_end *far)
{
    if (far->state == STATE_IDLE && far->next_phase > PHASE_TIMED)
        finish(far, "done", 0, "%s", "");
    else
        finish(far, "lost", 0, "the near end left before the test was over");
}

static void take_heartbeat(struct far_end *far, struct reader *body)
{
    static struct message_progress progress;
    if (!control_read_heartbeat(body, &progress))
        wrong_message(far, "a HEARTBEAT that is malformed");
}

static void take_message(struct far_end *far, unsigned type, struct reader *body)
{
    if (type == MESSAGE_HEARTBEAT)
        take_heartbeat(far, body);
    else if (type == MESSAGE_BYE)
        take_bye(far);
    else if (type == MESSAGE_TEST && far->state == STATE_PROVEN)
        take_test(far, body);
    else if (type == MESSAGE_BEGIN && far->state == STATE_IDLE)
        take_begin(far, body);
    else if (type == MESSAGE_START && far->state == STATE_RUNNING)
        take_start(far, body);
    else if (type == MESSAGE_SENT && far->state == STATE_RUNNING)
        take_sent(far, body);
    else if (type == MESSAGE_END && far->state == STATE_RUNNING)
        take_end(far, body);
    else
        wrong_message(far, "a message that is unknown or out of order");
}

static void take_messages(struct far_end *far)
{
    unsigned type;
    struct reader body;
    int next = 0;
    while (!far->outcome && (next = inbox_next(&far->control->inbox, &type, &body)) > 0)
        take_message(far, type, &body);
    if (next < 0)
        wrong_message(far, "a message that is too long");
}

static void hear(struct far_end *far)
{
    int count = inbox_fill(&far->control->inbox, far->control->fd);
    if (count < 0) {
        lost(far, "has closed the control connection");
        return;
    }
    if (count > 0)
        far->heard_s = now_s();
    take_messages(far);
}

/* ---- what time brings ----------------------------------------------------------------------- */

static void send_heartbeat(struct far_end *far)
{
    static struct message_progress progress;
    struct frame frame;
    progress.first = 0;
    progress.count = (uint16_t)far->roles.count;
    for (unsigned i = 0; i < far->roles.count; i++)
        progress.moved[i] = atomic_load_explicit(&far->roles.roles[i].moved, memory_order_relaxed);
    control_put_heartbeat(&frame, &progress);
    send_frame(far, &frame);
}

static void check_caps(struct far_end *far, double at_s)
{
    const struct caps *caps = &far->grant.caps;
    uint64_t moved = far->roles.running ? far_roles_moved(&far->roles) : 0;
    double burst = 2.0 * far->test.block_bytes * far->sockets.count + caps->rate * BURST_S;
    if (at_s > far->proven_s + caps->duration_s)
        finish(far, "capped", REFUSAL_CAP,
               "the session has lasted the %g s it may: open one with a longer duration_s",
               caps->duration_s);
    else if (caps->bytes > 0 && far->moved_before + moved > caps->bytes)
        finish(far, "capped", REFUSAL_CAP,
               "the session has moved more than the %.15g bytes it may: open one with more",
               (double)caps->bytes);
    else if (caps->rate > 0 && far->roles.running &&
             (double)moved > caps->rate * (at_s - far->roles.begun_s) * TOLERANCE + burst)
        finish(far, "capped", REFUSAL_CAP,
               "the test is faster than the %.9g byte/s the session may: set a lower rate",
               caps->rate);
}

static void check_stuck(struct far_end *far, double at_s)
{
    uint64_t moved = far_roles_moved(&far->roles);
    if (moved != far->stuck_at) {
        far->stuck_at = moved;
        far->stuck_s = at_s;
    } else if (at_s > far->stuck_s + STUCK_S) {
        finish(far, "failed", REFUSAL_FAILED,
               "the far end waits for what the near end has sent, and nothing has come for %g s",
               STUCK_S);
    }
}

/* Heartbeats alone do not keep a session that comes to nothing. */
static void check_opening(struct far_end *far, double at_s)
{
    if (at_s <= far->opening_step_s + AGREE_S)
        return;
    if (far->state == STATE_PROVEN)
        finish(far, "lost", REFUSAL_LOST, "the near end requested no test within %g s", AGREE_S);
    else if (far->state == STATE_OPENING)
        finish(far, "lost", REFUSAL_LOST,
               "the near end did not connect all data sockets within %g s", AGREE_S);
}

static void look_at_clock(struct far_end *far)
{
    const double at_s = now_s();
    far->heard_s = heartbeat_heard(far->heard_s, far->looked_s, at_s);
    far->looked_s = at_s;
    if (far->state == STATE_WAITING) {
        if (at_s > far->opened_s + far->grant.expiry_s)
            finish(far, "expired", 0, "no near end proved the token within %g s",
                   far->grant.expiry_s);
        return;
    }
    check_caps(far, at_s);
    if (at_s > far->heard_s + HEARTBEAT_LOST_S)
        finish(far, "lost", REFUSAL_LOST, "the near end was silent for %g s", HEARTBEAT_LOST_S);
    check_opening(far, at_s);
    if (far->state == STATE_ENDING)
        check_stuck(far, at_s);
    if (!far->outcome && at_s >= far->beat_s) {
        far->beat_s = at_s + HEARTBEAT_EVERY_S;
        send_heartbeat(far);
    }
}

/* ---- the loop ------------------------------------------------------------------------------- */

static void take_door(struct far_end *far, const struct pollfd *fds, unsigned count)
{
    struct caller *caller = door_serve(&far->door, fds, count);
    if (caller) {
        far->control = caller;
        far->state = STATE_PROVEN;
        far->proven_s = far->opening_step_s = far->heard_s = far->beat_s = now_s();
        take_messages(far);
    }
    if (far->door.wrong_proofs >= WRONG_PROOFS_MOST && !far->door.burnt)
        finish(far, "refused", 0, "%d proofs of the token were wrong", WRONG_PROOFS_MOST);
}

static void take_sockets(struct far_end *far, const struct pollfd *fds, unsigned count)
{
    if (far->state != STATE_OPENING || far->outcome)
        return;
    far_sockets_serve(&far->sockets, fds, count);
    if (far_sockets_all_open(&far->sockets))
        connected(far);
}

static void wait_and_serve(struct far_end *far)
{
    struct pollfd *own = far->fds + ENDING_FDS;
    ending_fds(&far->ending, far->fds);
    own[0] = (struct pollfd){.fd = far->control ? far->control->fd : -1, .events = POLLIN};
    own[1] = (struct pollfd){.fd = far->roles.running ? far->roles.wake_fd : -1, .events = POLLIN};
    unsigned at_door = door_fds(&far->door, own + 2);
    struct pollfd *data = own + 2 + at_door;
    unsigned sockets = far->state == STATE_OPENING ? far_sockets_fds(&far->sockets, data) : 0;
    if (poll(far->fds, ENDING_FDS + 2 + at_door + sockets, (int)(LOOK_S * 1e3)) < 0)
        return;
    ending_take(&far->ending, far->fds);
    if (far->ending.why)
        finish(far, "ended", REFUSAL_ENDED, "the far end was %s", far->ending.why);
    if (own[0].revents && !far->outcome)
        hear(far);
    if (own[1].revents && !far->outcome)
        take_ended_roles(far);
    if (!far->outcome)
        take_door(far, own + 2, at_door);
    take_sockets(far, data, sockets);
    if (!far->outcome)
        look_at_clock(far);
}

/* ---- what it says --------------------------------------------------------------------------- */

/* One JSON object; a caller that has closed the pipe does not get it. */
static void print_listening(const struct far_end *far)
{
    char *text = NULL, address[ENDPOINT_TEXT];
    size_t length = 0;
    struct json json = {.stream = open_memstream(&text, &length)};
    if (!json.stream)
        return;
    endpoint_format(&far->door.address, address);
    json_open_object(&json, NULL);
    json_string(&json, "event", "listening");
    json_string(&json, "address", address);
    json_count(&json, "port", endpoint_port(&far->door.address));
    json_close_object(&json);
    fputc('\n', json.stream);
    if (fclose(json.stream) == 0)
        output_write(text, length);
    free(text);
}

static void print_end(const struct far_end *far)
{
    char *text = NULL;
    size_t length = 0;
    struct json json = {.stream = open_memstream(&text, &length)};
    if (!json.stream)
        return;
    json_open_object(&json, NULL);
    json_string(&json, "event", "session_end");
    json_string(&json, "outcome", far->outcome);
    json_string(&json, "reason", *far->reason ? far->reason : NULL);
    json_count(&json, "strangers", far->door.strangers + far->sockets.strangers);
    json_number(&json, "cpu_s", seconds_of(CLOCK_PROCESS_CPUTIME_ID));
    json_close_object(&json);
    fputc('\n', json.stream);
    if (fclose(json.stream) == 0)
        output_write(text, length);
    free(text);
}

/* ---- from beginning to end ------------------------------------------------------------------ */

/* A connection that is closed with bytes unread is reset, and the last message is lost with it. */
static void farewell(struct far_end *far)
{
    const double until_s = now_s() + FAREWELL_S;
    char bytes[4096];
    if (!far->control)
        return;
    shutdown(far->control->fd, SHUT_WR);
    for (double left_s; (left_s = until_s - now_s()) > 0;) {
        struct pollfd fd = {.fd = far->control->fd, .events = POLLIN};
        poll(&fd, 1, (int)(left_s * 1e3) + 1);
        ssize_t count = recv(fd.fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
            break;
    }
}

static void close_all(struct far_end *far)
{
    bool stopped = !far->roles.running || far_roles_stop(&far->roles, STOP_S);
    farewell(far);
    print_end(far);
    if (!stopped)
        _exit(EXIT_FAILED); /* threads that were not joined end with the process */
    if (far->roles.roles)
        far_roles_close(&far->roles);
    far_sockets_close(&far->sockets);
    door_close(&far->door);
    caller_free(far->control);
    test_free(&far->test);
}

static void cannot_listen(struct far_end *far, int error)
{
    char address[ENDPOINT_TEXT];
    endpoint_format(&far->grant.address, address);
    if (error == -EADDRINUSE)
        finish(far, "failed", 0, "port %u of %s is taken: choose another, or 0 for a free one",
               endpoint_port(&far->grant.address), address);
    else if (error == -EADDRNOTAVAIL)
        finish(far, "failed", 0, "%s is not an address of this host: bind to one it has", address);
    else
        finish(far, "failed", 0, "cannot listen on %s: %s", address, strerror(-error));
}

static int serve(struct far_end *far)
{
    far->opened_s = now_s();
    int error = door_open(&far->door, &far->grant);
    if (error)
        cannot_listen(far, error);
    else
        print_listening(far);
    while (!far->outcome)
        wait_and_serve(far);
    close_all(far);
    return strcmp(far->outcome, "done") ? EXIT_FAILED : EXIT_OK;
}

static int refuse(const char *line)
{
    fprintf(stderr, "net-bench far-end: %s\n", line);
    return EXIT_USAGE;
}

/* "--name N" or "--name=N": how many words it took; 0: it is another, or no descriptor. */
static int take_descriptor(int argc, char **argv, const char *name, int *fd)
{
    size_t length = strlen(name);
    const char *value = NULL;
    int words = 1;
    if (strncmp(*argv, name, length))
        return 0;
    if ((*argv)[length] == '=') {
        value = *argv + length + 1;
    } else if (!(*argv)[length] && argc > 1) {
        value = argv[1];
        words = 2;
    }
    char *end = NULL;
    long number = value ? strtol(value, &end, 10) : -1;
    if (!value || !*value || *end || number < 0 || number > INT_MAX)
        return 0;
    *fd = (int)number;
    return words;
}

/* The usual soft limit is below what a test of many streams needs. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int far_end_main(int argc, char **argv)
{
    static struct far_end far = {
        .door.listener = -1, .roles.wake_fd = -1, .roles.start_fd = -1, .sockets.listener = -1};
    int session_fd = -1;
    char text[GRANT_MOST], why[300];
    far.ending = (struct ending){.signal_fd = -1, .lifeline_fd = -1};
    for (int words; argc > 0; argc -= words, argv += words)
        if (!(words = take_descriptor(argc, argv, "--session-fd", &session_fd)) &&
            !(words = take_descriptor(argc, argv, "--lifeline-fd", &far.ending.lifeline_fd)))
            return refuse("usage: net-bench far-end --session-fd N [--lifeline-fd N], N open "
                          "descriptors");
    const char *unsupported = token_unsupported();
    if (unsupported) {
        refuse(unsupported);
        return EXIT_UNSUPPORTED;
    }
    if (session_fd < 0)
        return refuse("no --session-fd: pass a descriptor of the grant (a memfd or a pipe)");
    if (!grant_read(session_fd, text, why, sizeof why) ||
        !grant_parse_far(text, &far.grant, why, sizeof why))
        return refuse(why);
    explicit_bzero(text, sizeof text);
    close(session_fd);
    if (!ending_catch_signals(&far.ending))
        return refuse("the kernel gives no signalfd");
    output_watch(&far.ending);
    raise_descriptor_limit();
    return serve(&far);
}
