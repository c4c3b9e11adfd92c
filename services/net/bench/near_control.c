#define _GNU_SOURCE
#include "near_control.h"

#include "monotonic.h"
#include "workload.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Together well under the 5 s in which an unreachable far end is to be reported. */
static const double CONNECT_S = 2.5;
static const double ANSWER_S = 1.5;
static const double SEND_S = 1;

void near_control_lost(struct near_control *control, int exit_code, const char *format, ...)
{
    va_list arguments;
    pthread_mutex_lock(&control->lock);
    if (!atomic_load(&control->lost)) {
        va_start(arguments, format);
        vsnprintf(control->reason, sizeof control->reason, format, arguments);
        va_end(arguments);
        control->exit_code = exit_code;
        atomic_store(&control->lost, true);
    }
    pthread_cond_broadcast(&control->changed);
    pthread_mutex_unlock(&control->lock);
}

static void silent(struct near_control *control)
{
    near_control_lost(control, EXIT_FAILED,
                      "the far end at %s has been silent for %g s: check whether its host and the "
                      "network path to it are up",
                      control->far_text, HEARTBEAT_LOST_S);
}

static void closed(struct near_control *control)
{
    near_control_lost(control, EXIT_FAILED,
                      "the far end at %s has closed the connection: see the log of its host's net "
                      "service for why",
                      control->far_text);
}

static void malformed(struct near_control *control, const char *what)
{
    near_control_lost(control, EXIT_FAILED,
                      "the far end at %s sent %s: install the same hostbench on both hosts",
                      control->far_text, what);
}

void near_control_send(struct near_control *control, struct frame *frame)
{
    pthread_mutex_lock(&control->sending);
    int error = frame_send(frame, control->fd, SEND_S);
    pthread_mutex_unlock(&control->sending);
    /* A far end that has closed may have sent the reason: that is still to be read. */
    if (error == -ETIMEDOUT)
        silent(control);
}

/* ---- the handshake -------------------------------------------------------------------------- */

static int exit_code_of(enum refusal refusal)
{
    switch (refusal) {
    case REFUSAL_TEST:
    case REFUSAL_CAP:
        return EXIT_USAGE;
    case REFUSAL_RESOURCE:
        return EXIT_RESOURCE;
    case REFUSAL_UNSUPPORTED:
        return EXIT_UNSUPPORTED;
    default:
        return EXIT_FAILED;
    }
}

static void refused(struct near_control *control, struct reader *body)
{
    struct message_refused refused;
    if (control_read_refused(body, &refused))
        near_control_lost(control, exit_code_of(refused.refusal),
                          "the far end at %s ends the session: %s", control->far_text,
                          refused.text);
    else
        malformed(control, "a malformed REFUSED");
}

/* The next message, which must be of this type; false when it is lost meanwhile. */
static bool answer(struct near_control *control, unsigned wanted, struct reader *body)
{
    const double until_s = now_s() + ANSWER_S;
    unsigned type = 0;
    int next;
    while ((next = inbox_next(&control->inbox, &type, body)) == 0) {
        struct pollfd fd = {.fd = control->fd, .events = POLLIN};
        double left_s = until_s - now_s();
        if (left_s <= 0) {
            near_control_lost(control, EXIT_FAILED,
                              "port %u of %s does not answer as a far end within %g s: give the "
                              "address and port of a session",
                              endpoint_port(&control->far), control->far_text, ANSWER_S);
            return false;
        }
        poll(&fd, 1, (int)(left_s * 1e3) + 1);
        if (inbox_fill(&control->inbox, control->fd) < 0) {
            closed(control);
            return false;
        }
    }
    if (next > 0 && type == MESSAGE_REFUSED)
        refused(control, body);
    else if (next < 0 || type != wanted)
        near_control_lost(
            control, EXIT_FAILED,
            "port %u of %s is not a far end of hostbench: give the address and port of a session",
            endpoint_port(&control->far), control->far_text);
    return !atomic_load(&control->lost);
}

static void prove(struct near_control *control, const struct token *token)
{
    struct message_hello hello = {.version = CONTROL_VERSION};
    uint8_t far_nonce[NONCE_BYTES], mac[MAC_BYTES];
    struct message_ready ready;
    struct reader body;
    struct frame frame;
    if (!token_random(hello.nonce, NONCE_BYTES)) {
        near_control_lost(control, EXIT_RESOURCE, "libcrypto gives no random numbers");
        return;
    }
    control_put_hello(&frame, &hello);
    near_control_send(control, &frame);
    if (!answer(control, MESSAGE_CHALLENGE, &body))
        return;
    if (!control_read_challenge(&body, far_nonce)) {
        malformed(control, "a malformed CHALLENGE");
        return;
    }
    token_mac(token, "near", hello.nonce, far_nonce, mac);
    control_put_proof(&frame, mac);
    near_control_send(control, &frame);
    if (!answer(control, MESSAGE_READY, &body))
        return;
    token_mac(token, "far", hello.nonce, far_nonce, mac);
    if (!control_read_ready(&body, &ready) || !token_equal(mac, ready.mac, MAC_BYTES))
        near_control_lost(control, EXIT_FAILED,
                          "the far end at %s does not know the token: it is not the one that the "
                          "session was opened with",
                          control->far_text);
    control->caps = ready.caps;
}

static void no_connection(struct near_control *control, int error)
{
    unsigned port = endpoint_port(&control->far);
    if (error == -ECONNREFUSED)
        near_control_lost(control, EXIT_FAILED,
                          "port %u of the far host %s refuses the connection: the session has "
                          "expired or ended; open another",
                          port, control->far_text);
    else
        near_control_lost(control, EXIT_FAILED,
                          "the far host cannot be reached at port %u of %s (%s): check its "
                          "address, the network between, and what a firewall lets through",
                          port, control->far_text, strerror(-error));
}

void near_control_init(struct near_control *control)
{
    pthread_condattr_t monotonic;
    *control = (struct near_control){.fd = -1, .stop_fd = -1, .begun = -1, .ended = -1};
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&control->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&control->lock, NULL);
    pthread_mutex_init(&control->sending, NULL);
}

int near_control_open(struct near_control *control, const struct grant *grant)
{
    control->far = grant->address;
    endpoint_format(&control->far, control->far_text);
    int fd = endpoint_connect(PROTOCOL_TCP, &control->far, CONNECT_S);
    if (fd < 0) {
        no_connection(control, fd);
        return control->exit_code;
    }
    control->fd = fd;
    endpoint_of_socket(fd, &control->near);
    prove(control, &grant->token);
    return control->exit_code;
}

/* ---- what the far end reports ----------------------------------------------------------------- */

/* All of these with the lock held; false when the message is malformed. */
static bool take_listening(struct near_control *control, struct reader *body)
{
    static struct message_listening listening; /* of the one thread that reads */
    if (!control_read_listening(body, &listening) ||
        listening.first != control->openings_reported ||
        listening.first + listening.count > control->count)
        return false;
    memcpy(control->openings + listening.first, listening.openings,
           listening.count * sizeof *listening.openings);
    control->openings_reported += listening.count;
    return true;
}

static bool take_sent(struct near_control *control, struct reader *body)
{
    struct message_sent sent;
    if (!control_read_sent(body, &sent) || sent.index >= control->count || !control->streams)
        return false;
    struct stream *stream = control->streams[sent.index];
    if (stream->role != ROLE_RECEIVE)
        return false;
    bool in_bytes = stream->test->protocol == PROTOCOL_TCP;
    atomic_store_explicit(&stream->expected, in_bytes ? sent.bytes : sent.datagrams,
                          memory_order_release);
    return true;
}

static bool take_counts(struct near_control *control, struct reader *body)
{
    struct message_counts message;
    if (!control_read_counts(body, &message) || message.index >= control->count)
        return false;
    control->counts[message.index] = message.counts;
    return true;
}

static bool take_heartbeat(struct near_control *control, struct reader *body)
{
    static struct message_progress progress; /* of the one thread that reads */
    if (!control_read_heartbeat(body, &progress))
        return false;
    for (unsigned i = 0; i < progress.count; i++)
        atomic_store_explicit(&control->moved[progress.first + i], progress.moved[i],
                              memory_order_relaxed);
    atomic_store_explicit(&control->progress_s, now_s(), memory_order_relaxed);
    return true;
}

/* Progress reported before is the last phase's. */
static bool take_begun(struct near_control *control, struct reader *body)
{
    uint8_t phase;
    if (!control_read_phase(body, &phase))
        return false;
    control->begun = phase;
    atomic_store_explicit(&control->progress_s, 0, memory_order_relaxed);
    for (unsigned i = 0; i < control->count; i++)
        atomic_store_explicit(&control->moved[i], 0, memory_order_relaxed);
    return true;
}

static bool take_result(struct near_control *control, struct reader *body)
{
    if (!control_read_result(body, &control->result))
        return false;
    control->ended = control->result.phase;
    return true;
}

static bool take(struct near_control *control, unsigned type, struct reader *body)
{
    switch (type) {
    case MESSAGE_LISTENING:
        return take_listening(control, body);
    case MESSAGE_CONNECTED:
        control->connected = true;
        return control_read_connected(body, &control->facts);
    case MESSAGE_BEGUN:
        return take_begun(control, body);
    case MESSAGE_SENT:
        return take_sent(control, body);
    case MESSAGE_COUNTS:
        return take_counts(control, body);
    case MESSAGE_RESULT:
        return take_result(control, body);
    case MESSAGE_HEARTBEAT:
        return take_heartbeat(control, body);
    default:
        return false;
    }
}

static void take_messages(struct near_control *control)
{
    unsigned type;
    struct reader body;
    int next = 0;
    while (!atomic_load(&control->lost) && (next = inbox_next(&control->inbox, &type, &body)) > 0) {
        if (type == MESSAGE_REFUSED) {
            refused(control, &body);
            return;
        }
        pthread_mutex_lock(&control->lock);
        bool good = take(control, type, &body);
        pthread_cond_broadcast(&control->changed);
        pthread_mutex_unlock(&control->lock);
        if (!good)
            malformed(control, "a message that is malformed or out of order");
    }
    if (next < 0)
        malformed(control, "a message that is too long");
}

/* ---- the thread ----------------------------------------------------------------------------- */

static void send_heartbeat(struct near_control *control)
{
    struct frame frame;
    control_put_heartbeat(&frame, NULL);
    near_control_send(control, &frame);
}

static void *control_thread(void *context)
{
    struct near_control *control = context;
    double heard_s = now_s(), beat_s = heard_s, looked_s = heard_s;
    struct pollfd fds[2] = {{.fd = control->fd, .events = POLLIN},
                            {.fd = control->stop_fd, .events = POLLIN}};
    take_messages(control);
    while (!atomic_load(&control->lost)) {
        double at_s = now_s();
        if (at_s >= beat_s) {
            send_heartbeat(control);
            beat_s = at_s + HEARTBEAT_EVERY_S;
        }
        poll(fds, 2, (int)(fmax(0, beat_s - at_s) * 1e3) + 1);
        if (fds[1].revents)
            break;
        int count = fds[0].revents ? inbox_fill(&control->inbox, control->fd) : 0;
        if (count < 0)
            closed(control);
        if (count > 0) {
            heard_s = now_s();
            take_messages(control);
        }
        heard_s = heartbeat_heard(heard_s, looked_s, now_s());
        looked_s = now_s();
        if (looked_s > heard_s + HEARTBEAT_LOST_S)
            silent(control);
    }
    return NULL;
}

int near_control_ask(struct near_control *control, const struct test *test)
{
    struct frame frame;
    control->count = test_sockets(test);
    control->stop_fd = eventfd(0, EFD_CLOEXEC);
    int error = control->stop_fd < 0
                    ? errno
                    : pthread_create(&control->thread, NULL, control_thread, control);
    if (error) {
        near_control_lost(control, EXIT_RESOURCE, "a thread cannot be started: %s",
                          strerror(error));
        return control->exit_code;
    }
    control->threaded = true;
    control_put_test(&frame, test);
    near_control_send(control, &frame);
    return EXIT_OK;
}

void near_control_wait(struct near_control *control, double wait_s)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    long nanoseconds = until.tv_nsec + (long)(fmod(wait_s, 1) * 1e9);
    until.tv_sec += (time_t)wait_s + nanoseconds / 1000000000;
    until.tv_nsec = nanoseconds % 1000000000;
    pthread_cond_timedwait(&control->changed, &control->lock, &until);
}

void near_control_close(struct near_control *control)
{
    struct frame frame;
    if (control->fd >= 0 && !atomic_load(&control->lost)) {
        control_put_bye(&frame);
        near_control_send(control, &frame);
    }
    if (control->threaded) {
        eventfd_write(control->stop_fd, 1);
        pthread_join(control->thread, NULL);
    }
    if (control->stop_fd >= 0)
        close(control->stop_fd);
    if (control->fd >= 0)
        close(control->fd);
    pthread_cond_destroy(&control->changed);
    pthread_mutex_destroy(&control->lock);
    pthread_mutex_destroy(&control->sending);
}
