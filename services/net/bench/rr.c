#define _GNU_SOURCE
#include "rr.h"

#include "checked.h"
#include "endpoint.h"
#include "monotonic.h"
#include "stall.h"
#include "ticks.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* What waits is woken that often, and looks whether to go on waiting. */
enum { LOOK_MS = 20 };
/* What does not sleep looks after so many tries, and lets others have the CPU after so many. */
enum { LOOK_TRIES = 1024, YIELD_TRIES = 32 };
/* So many streams have a table of descriptors each. */
enum { OWN_TABLES_MOST = 16 };
/* Of UDP, after the near end reported its end. */
static const double QUIET_S = 0.1;
/* For one connection with all it is made for; a lost SYN alone takes 1 s, two take 3 s. */
static const double CONNECTION_S = 4;
/* Until a caller that has connected has shown the key. */
static const double KEY_S = 2;

/* A role in a phase. */
struct trips {
    struct stream *stream;
    const struct driver *driver;
    size_t bytes; /* of a request, and of an answer */
    uint8_t *request, *answered;
    uint64_t number; /* of this round trip */
    uint64_t at_ns;  /* the last reading of the clock */
    struct stall stall;
    unsigned tries;       /* in vain, one after the other */
    uint64_t retransmits; /* of the socket, before the phase */
    struct ticks ticks;
    bool ticking;
};

/* What a role that waits checks: 0 goes on waiting. */
typedef int look(struct trips *trips, size_t moved, double since_s);

/* ---- common to all roles -------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

__attribute__((format(printf, 3, 4))) static int failed(const struct trips *trips, int error,
                                                        const char *doing, ...)
{
    va_list arguments;
    va_start(arguments, doing);
    vsnprintf(trips->stream->what, sizeof trips->stream->what, doing, arguments);
    va_end(arguments);
    size_t used = strlen(trips->stream->what);
    if (error != EBADMSG) /* which says all itself */
        snprintf(trips->stream->what + used, sizeof trips->stream->what - used, ": %s",
                 strerror(error));
    return -error;
}

static bool stopping(const struct trips *trips)
{
    return trips->driver->stopping(trips->driver->context);
}

static bool over(const struct trips *trips)
{
    return trips->driver->over(trips->driver->context, trips->stream->counts.datagrams,
                               (double)trips->at_ns * 1e-9);
}

static uint64_t expected(const struct trips *trips)
{
    return atomic_load_explicit(&trips->stream->expected, memory_order_acquire);
}

/* The kernel counts users of a descriptor at each call when several threads share the table, which
 * is 1 % of a round trip within a host. What is open stays so until the thread ends. Where it is not
 * allowed (containers), it is not needed, nor with many streams: each would copy a long table. The
 * thread sanitizer takes equal numbers in two tables for one descriptor. */
static void own_descriptors(const struct test *test)
{
#if !defined(__SANITIZE_THREAD__)
    if (test->streams <= OWN_TABLES_MOST)
        unshare(CLONE_FILES);
#else
    (void)test;
#endif
}

static int trips_begin(struct trips *trips, size_t key_bytes)
{
    own_descriptors(trips->stream->test);
    trips->bytes = trips->stream->test->block_bytes;
    /* One byte more, so that a datagram that is too long is seen. */
    trips->request = malloc(2 * (key_bytes + trips->bytes + 1));
    if (!trips->request)
        return failed(trips, ENOMEM, "making room for two blocks of %zu bytes", trips->bytes);
    trips->answered = trips->request + key_bytes + trips->bytes + 1;
    for (size_t i = 0; i < key_bytes + trips->bytes; i++) {
        trips->request[i] = (uint8_t)(i * 131 + trips->stream->index);
        trips->answered[i] = 0;
    }
    /* No phase's first is the other's, not even in one byte. */
    trips->number = (uint64_t)trips->stream->phase << 63 | (uint64_t)trips->stream->phase << 7;
    trips->at_ns = now_ns();
    trips->stream->counts.first_s = now_s();
    trips->stream->counts.cpu_s = -seconds_of(CLOCK_THREAD_CPUTIME_ID);
    return 0;
}

static int trips_end(struct trips *trips, int failure)
{
    trips->stream->counts.cpu_s += seconds_of(CLOCK_THREAD_CPUTIME_ID);
    trips->stream->counts.last_s = now_s();
    if (trips->ticking)
        ticks_end(&trips->ticks);
    free(trips->request);
    return failure == -ECANCELED ? 0 : failure;
}

/* What the kernel says of the socket: with `after` of the phase that is over. */
static void read_socket(struct trips *trips, int fd, bool after)
{
    struct stream_counts *counts = &trips->stream->counts;
    struct endpoint_tcp tcp = {0};
    bool known = trips->stream->test->protocol == PROTOCOL_TCP && endpoint_tcp(fd, &tcp);
    if (!after) {
        trips->retransmits = tcp.retransmits;
        return;
    }
    endpoint_buffers_in_force(fd, &counts->send_buffer_bytes, &counts->receive_buffer_bytes);
    counts->path_mtu_bytes = known ? tcp.path_mtu_bytes : endpoint_path_mtu(fd);
    counts->retransmits = tcp.retransmits - trips->retransmits;
    counts->congestion_window_bytes = tcp.congestion_window_bytes;
    counts->mss_bytes = tcp.mss_bytes;
    counts->tcp_rtt_s = tcp.rtt_s;
}

static int set_timeouts(int fd)
{
    struct timeval look = {.tv_usec = LOOK_MS * 1000};
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof look) ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &look, sizeof look))
        return -errno;
    return 0;
}

/* Ticks in the place of the limit on what is received, which is what round trips wait for. */
static void begin_ticks(struct trips *trips)
{
    static const struct timeval none;
    if (trips->stream->test->spin || !ticks_begin(&trips->ticks, LOOK_MS))
        return;
    trips->ticking = true;
    setsockopt(trips->stream->fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
}

/* Every call is to come back by itself, and a small block to leave at once. */
static int socket_prepare(struct trips *trips)
{
    int fd = trips->stream->fd, flags = fcntl(fd, F_GETFL), on = 1;
    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) || set_timeouts(fd))
        return failed(trips, errno, "preparing the socket");
    begin_ticks(trips);
    if (trips->stream->test->protocol == PROTOCOL_TCP &&
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on))
        return failed(trips, errno, "setting TCP_NODELAY");
    return 0;
}

/* Whether a call that had nothing to do is to be made again at once. A call that sleeps has slept
 * LOOK_MS; of others, `look` comes up now and then. */
static bool again_at_once(struct trips *trips)
{
    if (!trips->stream->test->spin)
        return false;
    trips->tries++;
    if (trips->tries % YIELD_TRIES == 0)
        sched_yield(); /* it may be the other end that wants this CPU */
    return trips->tries % LOOK_TRIES != 0;
}

static bool nothing_there(int error)
{
    return error == EAGAIN || error == EINTR;
}

/* ---- TCP ------------------------------------------------------------------------------------ */

static int too_long(struct trips *trips, const char *doing)
{
    return failed(trips, ETIMEDOUT, "%s: " STALL_REMEDY, doing);
}

/* All of a block. */
static int tcp_put(struct trips *trips, int fd, const uint8_t *from, size_t bytes)
{
    while (bytes > 0) {
        ssize_t moved = send(fd, from, bytes, MSG_NOSIGNAL);
        if (moved >= 0) {
            from += moved;
            bytes -= (size_t)moved;
        } else if (!nothing_there(errno))
            return failed(trips, errno, "sending");
        else if (stopping(trips))
            return -ECANCELED;
        else if (stalled(&trips->stall, fd, bytes, now_s()))
            return too_long(trips, "sending");
    }
    trips->stall.looked_s = 0;
    return 0;
}

/* All of a block; `look` says whether to go on waiting. */
static int tcp_take(struct trips *trips, int fd, uint8_t *into, size_t bytes, look *look)
{
    int flags = trips->stream->test->spin ? MSG_DONTWAIT : MSG_WAITALL;
    double since_s = 0;
    size_t taken = 0;
    trips->tries = 0;
    while (taken < bytes) {
        ssize_t moved = recv(fd, into + taken, bytes - taken, flags);
        if (moved > 0) {
            taken += (size_t)moved;
            continue;
        }
        if (moved == 0)
            return taken ? failed(trips, ECONNRESET, "receiving: the far end has closed") : -EPIPE;
        if (!nothing_there(errno))
            return failed(trips, errno, "receiving");
        if (again_at_once(trips))
            continue;
        since_s = since_s > 0 ? since_s : now_s();
        int end = look(trips, taken, since_s);
        if (end)
            return end;
    }
    return 0;
}

static int look_for_stop(struct trips *trips, size_t moved, double since_s)
{
    (void)moved, (void)since_s;
    return stopping(trips) ? -ECANCELED : 0;
}

/* Of an answer. */
static int look_for_answer(struct trips *trips, size_t moved, double since_s)
{
    (void)since_s;
    if (stopping(trips))
        return -ECANCELED;
    return stalled(&trips->stall, trips->stream->fd, moved, now_s())
               ? too_long(trips, "waiting for an answer")
               : 0;
}

/* Between two round trips the answerer ends when there are no more. */
static int look_for_end(struct trips *trips, size_t moved, double since_s)
{
    (void)since_s;
    if (stopping(trips))
        return -ECANCELED;
    return !moved && trips->stream->counts.datagrams >= expected(trips) ? -EPIPE : 0;
}

/* ---- one round trip ------------------------------------------------------------------------- */

static size_t mark_bytes(const struct trips *trips)
{
    return trips->bytes < sizeof trips->number ? trips->bytes : sizeof trips->number;
}

static void mark(struct trips *trips, uint8_t *block)
{
    memcpy(block, &trips->number, mark_bytes(trips));
}

/* Outside the time of a round trip, for it may take as long as one. */
static int check(struct trips *trips, const uint8_t *request)
{
    if (RESULTS_ARE_CHECKED && memcmp(request, trips->answered, trips->bytes))
        return failed(trips, EBADMSG, "an answer of %zu bytes is not what was requested",
                      trips->bytes);
    return 0;
}

static int done(struct trips *trips, const uint8_t *request, uint64_t began_ns)
{
    trips->at_ns = now_ns();
    trips->stream->counts.bytes += trips->bytes;
    trips->driver->done(trips->driver->context, trips->at_ns - began_ns);
    trips->number++;
    return check(trips, request);
}

static int tcp_trip(struct trips *trips)
{
    int fd = trips->stream->fd;
    mark(trips, trips->request);
    trips->stream->counts.datagrams++;
    uint64_t began_ns = now_ns();
    int failure = tcp_put(trips, fd, trips->request, trips->bytes);
    if (!failure)
        failure = tcp_take(trips, fd, trips->answered, trips->bytes, look_for_answer);
    trips->stall.looked_s = 0;
    if (failure == -EPIPE)
        return failed(trips, ECONNRESET, "receiving: the far end has closed");
    return failure ? failure : done(trips, trips->request, began_ns);
}

/* A refusal is of an earlier datagram, and whatever was to be sent has to be sent again. */
static int udp_put(struct trips *trips, const uint8_t *from)
{
    for (;;) {
        ssize_t moved = send(trips->stream->fd, from, trips->bytes, MSG_NOSIGNAL);
        if (moved >= 0)
            return 0;
        if (errno == ECONNREFUSED)
            trips->stream->counts.refused++;
        else if (errno == EMSGSIZE)
            return failed(trips, errno, "sending a datagram of %zu bytes", trips->bytes);
        else if (!nothing_there(errno) && errno != ENOBUFS)
            return failed(trips, errno, "sending");
        else if (stopping(trips))
            return -ECANCELED;
    }
}

/* One datagram: its length, -EAGAIN when it is time to look whether to go on, or a failure. */
static ssize_t udp_take(struct trips *trips, uint8_t *into)
{
    int flags = trips->stream->test->spin ? MSG_DONTWAIT : 0;
    for (;;) {
        ssize_t moved = recv(trips->stream->fd, into, trips->bytes + 1, flags);
        if (moved >= 0)
            return moved;
        if (errno == ECONNREFUSED) {
            trips->stream->counts.refused++;
            return -EAGAIN;
        }
        if (!nothing_there(errno))
            return failed(trips, errno, "receiving");
        if (!again_at_once(trips))
            return -EAGAIN;
    }
}

static bool is_answer(const struct trips *trips, ssize_t length)
{
    return (size_t)length == trips->bytes &&
           !memcmp(trips->answered, trips->request, mark_bytes(trips));
}

/* 0: the answer is there; -ETIMEDOUT: it is lost. */
static int udp_await(struct trips *trips, uint64_t began_ns)
{
    trips->tries = 0;
    for (;;) {
        ssize_t length = udp_take(trips, trips->answered);
        if (length >= 0 && is_answer(trips, length))
            return 0;
        if (length >= 0)
            trips->stream->counts.duplicated++;
        else if (length != -EAGAIN)
            return (int)length;
        if (stopping(trips))
            return -ECANCELED;
        if ((double)(now_ns() - began_ns) >= RR_ANSWER_S * 1e9)
            return -ETIMEDOUT;
    }
}

static int udp_trip(struct trips *trips)
{
    mark(trips, trips->request);
    trips->stream->counts.datagrams++;
    uint64_t began_ns = now_ns();
    int failure = udp_put(trips, trips->request);
    if (!failure)
        failure = udp_await(trips, began_ns);
    if (failure == -ETIMEDOUT) {
        trips->stream->counts.lost_operations++;
        trips->number++;
        trips->at_ns = now_ns();
        return 0;
    }
    return failure ? failure : done(trips, trips->request, began_ns);
}

/* ---- asking --------------------------------------------------------------------------------- */

int rr_ask(struct stream *stream, const struct driver *driver)
{
    struct trips trips = {.stream = stream, .driver = driver};
    int (*trip)(struct trips *) = stream->test->protocol == PROTOCOL_TCP ? tcp_trip : udp_trip;
    int failure = trips_begin(&trips, 0);
    if (failure)
        return failure;
    failure = socket_prepare(&trips);
    read_socket(&trips, stream->fd, false);
    while (!failure && !over(&trips))
        failure = trip(&trips);
    read_socket(&trips, stream->fd, true);
    return trips_end(&trips, failure);
}

/* ---- answering ------------------------------------------------------------------------------ */

static void answered(struct trips *trips)
{
    struct stream_counts *counts = &trips->stream->counts;
    counts->datagrams++;
    counts->bytes += trips->bytes;
    trips->driver->moved(trips->driver->context, counts->bytes);
}

static int tcp_answer(struct trips *trips)
{
    int fd = trips->stream->fd;
    int failure = tcp_take(trips, fd, trips->request, trips->bytes, look_for_end);
    if (!failure)
        failure = tcp_put(trips, fd, trips->request, trips->bytes);
    if (!failure)
        answered(trips);
    return failure ? failure : look_for_stop(trips, 0, 0);
}

/* -EPIPE: there are no more. Never more is sent than was received. */
static int udp_answer(struct trips *trips, double *quiet_since_s)
{
    const struct stream_counts *counts = &trips->stream->counts;
    ssize_t length = udp_take(trips, trips->request);
    if (length < 0 && length != -EAGAIN)
        return (int)length;
    if (stopping(trips))
        return -ECANCELED;
    if (length >= 0) {
        *quiet_since_s = 0;
        trips->tries = 0;
        int failure = (size_t)length == trips->bytes ? udp_put(trips, trips->request) : 0;
        if ((size_t)length == trips->bytes && !failure)
            answered(trips);
        return failure;
    }
    if (counts->datagrams >= expected(trips))
        return -EPIPE;
    if (expected(trips) == STREAM_UNKNOWN)
        return 0;
    if (*quiet_since_s <= 0)
        *quiet_since_s = now_s();
    return now_s() - *quiet_since_s >= QUIET_S ? -EPIPE : 0;
}

int rr_answer(struct stream *stream, const struct driver *driver)
{
    struct trips trips = {.stream = stream, .driver = driver};
    double quiet_since_s = 0;
    int failure = trips_begin(&trips, 0);
    if (failure)
        return failure;
    failure = socket_prepare(&trips);
    read_socket(&trips, stream->fd, false);
    while (!failure)
        failure = stream->test->protocol == PROTOCOL_TCP ? tcp_answer(&trips)
                                                         : udp_answer(&trips, &quiet_since_s);
    read_socket(&trips, stream->fd, true);
    return trips_end(&trips, failure == -EPIPE ? 0 : failure);
}

/* ---- a connection each ---------------------------------------------------------------------- */

static socklen_t address_length(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in);
}

static int look_for_connection(struct trips *trips, size_t moved, double since_s)
{
    (void)moved;
    if (stopping(trips))
        return -ECANCELED;
    if (now_s() - since_s < CONNECTION_S)
        return 0;
    return failed(trips, ETIMEDOUT, "nothing from the far end for %.0f s", CONNECTION_S);
}

/* connect() came back before it was through. */
static int await_connection(struct trips *trips, int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    double since_s = now_s();
    while (poll(&ready, 1, LOOK_MS) <= 0) {
        int end = look_for_connection(trips, 0, since_s);
        if (end)
            return end;
    }
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length))
        error = errno;
    return error ? failed(trips, error, "connecting") : 0;
}

/* Closed at once, without waiting for anything. */
static int crr_options(int fd, const struct sockaddr_storage *near)
{
    struct linger none = {.l_onoff = 1};
    int on = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none) ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) || set_timeouts(fd))
        return -errno;
    if (!near)
        return 0;
    /* The port is chosen when it is known where to: else there would be only one use of each. */
    struct sockaddr_storage from = *near;
    *(from.ss_family == AF_INET6 ? &((struct sockaddr_in6 *)&from)->sin6_port
                                 : &((struct sockaddr_in *)&from)->sin_port) = 0;
    if (setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on) ||
        bind(fd, (const struct sockaddr *)&from, address_length(&from)))
        return -errno;
    return 0;
}

/* Where to and where from. */
struct crr {
    const struct sockaddr_storage *far, *near;
};

static int crr_connect(struct trips *trips, const struct crr *crr, int fd)
{
    const struct test *test = trips->stream->test;
    int failure = crr_options(fd, crr->near);
    if (failure)
        return failed(trips, -failure, "preparing a connection");
    if (test->congestion[0] && (failure = endpoint_congestion(fd, test->congestion)))
        return failed(trips, -failure, "setting congestion control %s", test->congestion);
    if (!connect(fd, (const struct sockaddr *)crr->far, address_length(crr->far)))
        return 0;
    if (errno == EINPROGRESS || errno == EINTR)
        return await_connection(trips, fd);
    return failed(trips, errno, "connecting");
}

/* The end of the far end's half. */
static int await_close(struct trips *trips, int fd)
{
    uint8_t more;
    int end = tcp_take(trips, fd, &more, 1, look_for_connection);
    if (end == -EPIPE)
        return 0;
    return end ? end : failed(trips, EBADMSG, "an answer is longer than what was requested");
}

static int crr_talk(struct trips *trips, int fd)
{
    int failure = tcp_put(trips, fd, trips->request, RR_KEY_BYTES + trips->bytes);
    if (!failure)
        failure = tcp_take(trips, fd, trips->answered, trips->bytes, look_for_connection);
    if (failure == -EPIPE)
        return failed(trips, ECONNRESET, "receiving: the far end has closed");
    return failure ? failure : await_close(trips, fd);
}

static int crr_trip(struct trips *trips, const struct crr *crr)
{
    mark(trips, trips->request + RR_KEY_BYTES);
    trips->stream->counts.datagrams++;
    uint64_t began_ns = now_ns();
    int fd = socket(crr->far->ss_family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
    if (fd < 0)
        return failed(trips, errno, "opening a socket");
    int failure = crr_connect(trips, crr, fd);
    if (!failure)
        failure = crr_talk(trips, fd);
    /* The first one stands for all: it is the slowest anyway. */
    if (!failure && trips->stream->counts.datagrams == 1)
        read_socket(trips, fd, true);
    close(fd);
    return failure ? failure : done(trips, trips->request + RR_KEY_BYTES, began_ns);
}

int crr_ask(struct stream *stream, const struct sockaddr_storage *far,
            const struct sockaddr_storage *near, const uint8_t key[RR_KEY_BYTES],
            const struct driver *driver)
{
    struct trips trips = {.stream = stream, .driver = driver};
    const struct crr crr = {far, near};
    int failure = trips_begin(&trips, RR_KEY_BYTES);
    if (failure)
        return failure;
    memcpy(trips.request, key, RR_KEY_BYTES);
    while (!failure && !over(&trips))
        failure = crr_trip(&trips, &crr);
    return trips_end(&trips, failure);
}

/* ---- answering connections ------------------------------------------------------------------ */

/* Who may connect. */
struct door {
    int listen_fd;
    struct endpoint allowed;
    const uint8_t *key;
    _Atomic uint64_t *strangers;
};

static void turn_away(const struct door *door)
{
    atomic_fetch_add_explicit(door->strangers, 1, memory_order_relaxed);
}

static int look_for_key(struct trips *trips, size_t moved, double since_s)
{
    (void)moved;
    if (stopping(trips))
        return -ECANCELED;
    return now_s() - since_s < KEY_S ? 0 : -ETIMEDOUT;
}

/* In a time that does not depend on where they differ. */
static bool same_key(const uint8_t *one, const uint8_t *other)
{
    volatile uint8_t differs = 0;
    for (unsigned i = 0; i < RR_KEY_BYTES; i++)
        differs |= one[i] ^ other[i];
    return !differs;
}

/* Whatever becomes of one connection is its asker's to tell; here it is only not answered. */
static int answer_connection(struct trips *trips, const struct door *door, int fd)
{
    int end = tcp_take(trips, fd, trips->request, RR_KEY_BYTES, look_for_key);
    if (!end && !same_key(trips->request, door->key))
        end = -EACCES;
    if (end && end != -ECANCELED)
        turn_away(door);
    if (!end)
        end = tcp_take(trips, fd, trips->request, trips->bytes, look_for_key);
    if (!end)
        end = tcp_put(trips, fd, trips->request, trips->bytes);
    if (!end && trips->stream->counts.datagrams == 0)
        read_socket(trips, fd, true);
    if (!end)
        answered(trips);
    return end == -ECANCELED ? end : 0;
}

/* Errors of a connection that was gone before it was accepted; accept(2) names them. */
static bool connections_own(int error)
{
    return error == ECONNABORTED || error == EPROTO || error == ENOPROTOOPT || error == EHOSTDOWN ||
           error == ENONET || error == EHOSTUNREACH || error == EOPNOTSUPP ||
           error == ENETUNREACH || error == ENETDOWN;
}

/* Only who has not been accepted yet can still be answered. */
static int look_for_last(struct trips *trips, double *quiet_since_s)
{
    if (stopping(trips))
        return -ECANCELED;
    if (expected(trips) == STREAM_UNKNOWN)
        return 0;
    if (*quiet_since_s <= 0)
        *quiet_since_s = now_s();
    bool all = trips->stream->counts.datagrams >= expected(trips);
    return all || now_s() - *quiet_since_s >= QUIET_S ? -EPIPE : 0;
}

static int answer_next(struct trips *trips, const struct door *door, double *quiet_since_s)
{
    struct endpoint from = {.length = sizeof from.address};
    int fd = accept4(door->listen_fd, (struct sockaddr *)&from.address, &from.length, SOCK_CLOEXEC);
    if (fd < 0 && !nothing_there(errno) && !connections_own(errno))
        return failed(trips, errno, "accepting a connection");
    if (fd < 0)
        return nothing_there(errno) && again_at_once(trips) ? 0
                                                            : look_for_last(trips, quiet_since_s);
    int end = 0;
    *quiet_since_s = 0;
    /* Who came before the listening socket had its time limits has inherited none. */
    if (set_timeouts(fd))
        end = failed(trips, errno, "preparing a connection");
    else if (endpoint_same_host(&from, &door->allowed))
        end = answer_connection(trips, door, fd);
    else
        turn_away(door);
    close(fd);
    return end ? end : look_for_stop(trips, 0, 0);
}

/* Timeouts let accept() sleep only where it blocks, which it does not while the test is opened. */
static int wait_for_opening(const struct trips *trips, int listen_fd)
{
    int flags = fcntl(listen_fd, F_GETFL);
    if (flags < 0)
        return -1;
    flags = trips->stream->test->spin ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    return fcntl(listen_fd, F_SETFL, flags);
}

int crr_answer(int listen_fd, struct stream *stream, const struct sockaddr_storage *allowed,
               const uint8_t key[RR_KEY_BYTES], _Atomic uint64_t *strangers,
               const struct driver *driver)
{
    struct trips trips = {.stream = stream, .driver = driver};
    const struct door door = {listen_fd, {*allowed, address_length(allowed)}, key, strangers};
    double quiet_since_s = 0;
    int failure = trips_begin(&trips, RR_KEY_BYTES), on = 1;
    if (failure)
        return failure;
    /* accept() is to come back, and what is accepted inherits the other option. */
    if (wait_for_opening(&trips, listen_fd) ||
        setsockopt(listen_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) || set_timeouts(listen_fd))
        failure = failed(&trips, errno, "preparing the listening socket");
    while (!failure)
        failure = answer_next(&trips, &door, &quiet_since_s);
    return trips_end(&trips, failure == -EPIPE ? 0 : failure);
}
