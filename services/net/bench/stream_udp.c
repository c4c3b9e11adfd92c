/* UDP: datagrams one at a time, many in a system call, or many in one buffer that the kernel cuts up
 * (GSO) and joins again (GRO). */
#define _GNU_SOURCE
#include "stream_udp.h"

#include "endpoint.h"
#include "monotonic.h"
#include "pacing.h"
#include "sequence.h"
#include "stream_role.h"

#include <endian.h>
#include <errno.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    MMSG_MOST = 64,
    MMSG_BYTES = 512 << 10, /* of the buffers of a call */
    GRO_MESSAGES = 8,
    GRO_BYTES = 65536,
    SLEEPS = 16,
    TOO_LONG_MOST = 3, /* that EMSGSIZE in a row is no news of the path any more */
};

static const double SOON_S = 10e-6;
static const double QUIET_S = 0.1, DRAIN_S = 2;

/* Of datagrams of STREAM_HEADER_BYTES and more, in network byte order. */
struct header {
    uint64_t number;
    uint8_t phase;
    char mark[7]; /* what is left over from opening the stream does not have it */
};
_Static_assert(sizeof(struct header) == STREAM_HEADER_BYTES, "the header's length");

static const char MARK[7] = "netflow";

struct udp_own {
    char *buffer;
    unsigned messages;    /* of a call */
    size_t message_bytes; /* of the buffer of one */
    unsigned segments;    /* datagrams of a send with GSO; otherwise 0 */
    bool gro;
    struct mmsghdr *calls;
    struct iovec *parts;
    char (*control)[CMSG_SPACE(sizeof(int))]; /* where GRO tells the datagrams' length */
    struct sequence *sequence;
    unsigned sleeps;   /* that a receiver of single datagrams still does without looking again */
    uint64_t received; /* messages with datagrams of ours, of this phase */
};

static bool numbered(const struct stream *stream)
{
    return stream->test->block_bytes >= STREAM_HEADER_BYTES;
}

/* ---- opening and closing -------------------------------------------------------------------- */

static unsigned segments_of(const struct test *test)
{
    unsigned fit = UDP_BLOCK_MOST / test->block_bytes;
    return fit < STREAM_GSO_MOST ? fit : STREAM_GSO_MOST;
}

/* No more than the caches take: large datagrams gain nothing by being many in a call. */
static unsigned messages_of(const struct test *test)
{
    unsigned fit = MMSG_BYTES / test->block_bytes;
    return fit < 1 ? 1 : fit < MMSG_MOST ? fit : MMSG_MOST;
}

static void choose_sender(const struct test *test, struct udp_own *own)
{
    own->messages = test->udp_path == UDP_SINGLE ? 1 : messages_of(test);
    own->message_bytes = test->block_bytes;
    if (test->udp_path == UDP_GSO)
        own->messages = own->segments = segments_of(test);
}

static void choose_receiver(const struct stream *stream, struct udp_own *own)
{
    const struct test *test = stream->test;
    int on = 1;
    own->gro = test->udp_path == UDP_GSO &&
               setsockopt(stream->fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on) == 0;
    own->messages = test->udp_path == UDP_SINGLE ? 1 : own->gro ? GRO_MESSAGES : messages_of(test);
    /* One byte more shows what is longer than ours. */
    own->message_bytes = own->gro ? GRO_BYTES : test->block_bytes + 1;
}

static bool allocate(struct stream *stream, struct udp_own *own)
{
    own->buffer = role_block(own->messages * own->message_bytes);
    own->calls = calloc(own->messages, sizeof *own->calls);
    own->parts = calloc(own->messages, sizeof *own->parts);
    own->control = calloc(own->messages, sizeof *own->control);
    if (stream->role == ROLE_RECEIVE)
        own->sequence = calloc(1, sizeof *own->sequence);
    return own->buffer && own->calls && own->parts && own->control &&
           (own->sequence || stream->role != ROLE_RECEIVE);
}

static void lay_out(struct udp_own *own)
{
    for (unsigned i = 0; i < own->messages; i++) {
        own->parts[i] = (struct iovec){own->buffer + i * own->message_bytes, own->message_bytes};
        own->calls[i].msg_hdr = (struct msghdr){.msg_iov = &own->parts[i], .msg_iovlen = 1};
    }
}

int udp_open(struct stream *stream)
{
    struct udp_own *own = calloc(1, sizeof *own);
    stream->own = own;
    if (!own)
        return role_failed(stream, "setting up", ENOMEM, NULL);
    if (stream->role == ROLE_SEND)
        choose_sender(stream->test, own);
    else
        choose_receiver(stream, own);
    if (!allocate(stream, own))
        return role_failed(stream, "setting up", ENOMEM, NULL);
    lay_out(own);
    return 0;
}

void udp_close(struct stream *stream)
{
    struct udp_own *own = stream->own;
    if (!own)
        return;
    free(own->buffer);
    free(own->calls);
    free(own->parts);
    free(own->control);
    free(own->sequence);
    free(own);
    stream->own = NULL;
}

/* ---- sending -------------------------------------------------------------------------------- */

static void write_marks(struct stream *stream)
{
    const struct udp_own *own = stream->own;
    struct header header = {.phase = stream->phase};
    memcpy(header.mark, MARK, sizeof header.mark);
    for (unsigned i = 0; numbered(stream) && i < own->messages; i++)
        memcpy(own->buffer + i * own->message_bytes, &header, sizeof header);
}

static void write_numbers(struct stream *stream, unsigned count)
{
    const struct udp_own *own = stream->own;
    for (unsigned i = 0; numbered(stream) && i < count; i++) {
        uint64_t number = htobe64(stream->counts.datagrams + i);
        memcpy(own->buffer + i * own->message_bytes, &number, sizeof number);
    }
}

/* How many datagrams went out, or -1 with errno. What kept sendmmsg() from sending more, when it has
 * sent some, the kernel does not tell. */
static int send_batch(struct stream *stream, unsigned count)
{
    const struct udp_own *own = stream->own;
    if (stream->test->udp_path == UDP_MMSG)
        return sendmmsg(stream->fd, own->calls, count, MSG_NOSIGNAL);
    size_t bytes = count * own->message_bytes;
    if (send(stream->fd, own->buffer, bytes, MSG_NOSIGNAL) < 0)
        return -1;
    if (own->segments > 0 && count > stream->counts.gso_segments)
        stream->counts.gso_segments = count;
    return (int)count;
}

/* Switched off outside of a phase, for the other senders on this socket. */
static int set_segment(struct stream *stream, uint32_t bytes)
{
    int size = (int)bytes;
    const struct udp_own *own = stream->own;
    if (own->segments == 0 ||
        setsockopt(stream->fd, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof size) == 0)
        return 0;
    return role_failed(stream, "switching GSO on", errno, "use --udp-path mmsg");
}

static int too_long(struct stream *stream, int error)
{
    const struct udp_own *own = stream->own;
    struct endpoint peer;
    uint32_t mtu = endpoint_path_mtu(stream->fd);
    if (own->segments == 0 || !endpoint_of_peer(stream->fd, &peer))
        return role_failed(stream, "sending", error, "use a smaller --block-bytes");
    snprintf(stream->what, sizeof stream->what,
             "stream %u: GSO: datagrams of %u bytes do not fit the path's MTU of %u: use "
             "--block-bytes %u at most, or --udp-path mmsg",
             stream->index, stream->test->block_bytes, mtu, mtu - endpoint_udp_header_bytes(&peer));
    return -error;
}

/* What a send that failed means: 0 to go on, or a negative errno. */
static int judge(struct stream *stream, int error, unsigned *too_long_seen)
{
    if (role_again(error))
        return 0;
    if (error == ECONNREFUSED) { /* an earlier one's */
        stream->counts.refused++;
        return 0;
    }
    if (error == ENOBUFS) { /* the interface's queue is full; nothing went out */
        sched_yield();
        return 0;
    }
    const struct udp_own *own = stream->own;
    if (error == EMSGSIZE && ++*too_long_seen < TOO_LONG_MOST)
        return 0;
    if (error == EMSGSIZE || (error == EINVAL && own->segments > 0))
        return too_long(stream, error);
    return role_failed(stream, "sending", error, NULL);
}

static uint64_t share_of(const struct stream *stream)
{
    uint64_t share = role_share(stream), block = stream->test->block_bytes;
    return share == UINT64_MAX ? share : (share + block - 1) / block;
}

static int send_all(struct stream *stream, const struct driver *driver, struct pacing *pacing)
{
    struct stream_counts *counts = &stream->counts;
    uint64_t share = share_of(stream), block = stream->test->block_bytes;
    const struct udp_own *own = stream->own;
    unsigned most = pacing_batch(pacing, stream->test->block_bytes, own->messages), refusals = 0;
    double now = counts->first_s;
    while (counts->datagrams < share && !driver->stopping(driver->context) &&
           !driver->over(driver->context, counts->bytes, now)) {
        if ((now = pacing_wait(pacing, driver, counts->bytes, now)) < 0)
            break;
        uint64_t left = share - counts->datagrams;
        unsigned count = left < most ? (unsigned)left : most;
        write_numbers(stream, count);
        int sent = send_batch(stream, count);
        int error = sent < 0 ? judge(stream, errno, &refusals) : 0;
        if (error)
            return error;
        now = now_s();
        if (sent <= 0)
            continue;
        refusals = 0;
        counts->datagrams += (unsigned)sent;
        counts->bytes += (unsigned)sent * block;
        pacing_sent(pacing, (unsigned)sent * block, now);
        driver->moved(driver->context, counts->bytes);
    }
    return 0;
}

int udp_send(struct stream *stream, const struct driver *driver)
{
    struct role_run run;
    role_begin(stream, &run);
    struct pacing pacing;
    int error = set_segment(stream, stream->test->block_bytes);
    write_marks(stream);
    stream->counts.first_s = now_s();
    pacing_begin(&pacing, stream->test->rate, stream->counts.first_s);
    if (!error)
        error = send_all(stream, driver, &pacing);
    stream->counts.last_s = now_s();
    if (!error)
        error = set_segment(stream, 0);
    role_end(stream, &run);
    return error;
}

/* ---- receiving ------------------------------------------------------------------------------ */

/* Whether this one is of this phase and new. */
static bool take_one(struct stream *stream, const char *datagram)
{
    const struct udp_own *own = stream->own;
    struct header header;
    if (!numbered(stream))
        return true;
    memcpy(&header, datagram, sizeof header);
    uint64_t number = be64toh(header.number);
    if (memcmp(header.mark, MARK, sizeof header.mark) != 0 || header.phase != stream->phase ||
        number == UINT64_MAX)
        return false;
    return sequence_add(own->sequence, number) == ARRIVAL_NEW;
}

/* How long the datagrams of a message are: what GRO has joined are of one length but for the last. */
static size_t datagram_bytes(struct msghdr *message, size_t bytes)
{
    for (struct cmsghdr *one = CMSG_FIRSTHDR(message); one; one = CMSG_NXTHDR(message, one)) {
        int size;
        if (one->cmsg_level != IPPROTO_UDP || one->cmsg_type != UDP_GRO)
            continue;
        memcpy(&size, CMSG_DATA(one), sizeof size);
        return size > 0 ? (size_t)size : bytes;
    }
    return bytes;
}

/* The new datagrams of one message. What is not as long as ours is none of ours. */
static unsigned take_message(struct stream *stream, struct mmsghdr *call)
{
    struct udp_own *own = stream->own;
    size_t block = stream->test->block_bytes, bytes = call->msg_len;
    unsigned taken = 0;
    if (datagram_bytes(&call->msg_hdr, bytes) != block)
        return 0;
    const char *at = call->msg_hdr.msg_iov->iov_base;
    for (; bytes >= block; bytes -= block, at += block)
        taken += take_one(stream, at);
    own->received += taken > 0;
    return taken;
}

/* Asleep between any two datagrams, a receiver would have the sender wake it for each, which takes
 * the sender longer than the datagram. So it looks again for about as long as that takes; where
 * nothing comes so soon, it is left for a while. */
static ssize_t receive_soon(struct stream *stream)
{
    struct udp_own *own = stream->own;
    if (own->sleeps > 0) {
        own->sleeps--;
        return -1;
    }
    double until_s = now_s() + SOON_S;
    do {
        ssize_t got = recv(stream->fd, own->buffer, own->message_bytes, MSG_DONTWAIT);
        if (got >= 0 || !role_again(errno))
            return got;
    } while (now_s() < until_s);
    own->sleeps = SLEEPS;
    return -1;
}

static ssize_t receive_one(struct stream *stream)
{
    const struct udp_own *own = stream->own;
    ssize_t got = recv(stream->fd, own->buffer, own->message_bytes, MSG_DONTWAIT);
    if (got < 0 && role_again(errno))
        got = receive_soon(stream);
    if (got < 0 && role_again(errno))
        got = recv(stream->fd, own->buffer, own->message_bytes, 0);
    return got;
}

/* How many messages came, or -1 with errno. */
static int receive_batch(struct stream *stream)
{
    struct udp_own *own = stream->own;
    if (stream->test->udp_path == UDP_SINGLE) {
        ssize_t got = receive_one(stream);
        own->calls->msg_len = got < 0 ? 0 : (unsigned)got;
        return got < 0 ? -1 : 1;
    }
    for (unsigned i = 0; own->gro && i < own->messages; i++) {
        own->calls[i].msg_hdr.msg_control = own->control[i];
        own->calls[i].msg_hdr.msg_controllen = sizeof own->control[i];
    }
    return recvmmsg(stream->fd, own->calls, own->messages, MSG_WAITFORONE, NULL);
}

static void take_batch(struct stream *stream, const struct driver *driver, int messages)
{
    struct udp_own *own = stream->own;
    uint64_t taken = 0;
    for (int i = 0; i < messages; i++)
        taken += take_message(stream, &own->calls[i]);
    stream->counts.datagrams += taken;
    if (taken > 0)
        role_received(stream, driver, taken * stream->test->block_bytes);
}

/* Whether there is no more to come. */
struct drain {
    double total_known_s, last_s; /* when the sender's count was seen; when something came */
};

static bool drained(struct stream *stream, struct drain *drain, bool came)
{
    uint64_t expected = atomic_load_explicit(&stream->expected, memory_order_relaxed);
    if (expected == STREAM_UNKNOWN)
        return false;
    if (stream->counts.datagrams >= expected)
        return true;
    double now = now_s();
    if (drain->total_known_s == 0)
        drain->total_known_s = drain->last_s = now;
    if (came)
        drain->last_s = now;
    return now - drain->last_s >= QUIET_S || now - drain->total_known_s >= DRAIN_S;
}

static int receive_all(struct stream *stream, const struct driver *driver)
{
    struct drain drain = {0};
    bool came = false;
    while (!drained(stream, &drain, came) && !driver->stopping(driver->context)) {
        int messages = receive_batch(stream);
        came = messages > 0;
        if (came)
            take_batch(stream, driver, messages);
        else if (errno == ECONNREFUSED)
            stream->counts.refused++;
        else if (!role_again(errno))
            return role_failed(stream, "receiving", errno, NULL);
    }
    return 0;
}

static void note_dropped_datagrams(struct stream *stream)
{
    const struct udp_own *own = stream->own;
    struct stream_counts *counts = &stream->counts;
    if (own->gro && own->received > 0)
        counts->dropped_by_receiver =
            udp_dropped(counts->dropped_by_receiver, own->received, counts->datagrams,
                        atomic_load(&stream->expected));
}

int udp_receive(struct stream *stream, const struct driver *driver)
{
    struct udp_own *own = stream->own;
    struct role_run run;
    role_begin(stream, &run);
    sequence_clear(own->sequence);
    own->received = 0;
    int error = receive_all(stream, driver);
    stream->counts.duplicated = own->sequence->duplicated;
    stream->counts.reordered = own->sequence->reordered;
    stream->counts.gro = own->gro;
    role_end(stream, &run);
    note_dropped_datagrams(stream);
    return error;
}
