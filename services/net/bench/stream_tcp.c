/* TCP: copied from memory, sent from a file in memory, or without copying; received with or without
 * copying it out of the kernel. */
#define _GNU_SOURCE
#include "stream_tcp.h"

#include "endpoint.h"
#include "monotonic.h"
#include "pacing.h"
#include "stall.h"
#include "stream_role.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <math.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    /* A stream has no blocks: a receiver takes what has come, so small blocks do not slow it. */
    RECEIVE_LEAST = 131072,
    TRUNCATE_MOST = 4 << 20,
    UNREAPED_MOST = 32, /* calls without copy between two looks at what became of them */
};

static const double REAP_S = 2;

struct tcp_own {
    char *block;
    int file; /* the block's content, for sendfile(); -1: none */
    uint64_t reaped;
    uint64_t sent; /* calls with MSG_ZEROCOPY, of all phases */
};

/* ---- opening and closing -------------------------------------------------------------------- */

static int fill(int file, const char *block, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t wrote = write(file, block + done, bytes - done);
        if (wrote <= 0)
            return wrote < 0 ? errno : EIO;
        done += (size_t)wrote;
    }
    return 0;
}

static int open_file(struct stream *stream, struct tcp_own *own)
{
    own->file = memfd_create("net-bench block", MFD_CLOEXEC);
    int error = own->file < 0 ? errno : fill(own->file, own->block, stream->test->block_bytes);
    return error ? role_failed(stream, "making a file in memory for sendfile", error, NULL) : 0;
}

static int open_path(struct stream *stream, struct tcp_own *own)
{
    int on = 1;
    if (stream->role != ROLE_SEND)
        return 0;
    if (stream->test->send_path == SEND_SENDFILE)
        return open_file(stream, own);
    if (stream->test->send_path == SEND_ZEROCOPY &&
        setsockopt(stream->fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) != 0)
        return role_failed(stream, "switching zerocopy on", errno,
                           "use another --send-path: this kernel cannot");
    return 0;
}

int tcp_open(struct stream *stream)
{
    size_t bytes = stream->test->block_bytes;
    struct tcp_own *own = calloc(1, sizeof *own);
    stream->own = own;
    if (!own)
        return role_failed(stream, "setting up", ENOMEM, NULL);
    own->file = -1;
    if (stream->role == ROLE_RECEIVE && bytes < RECEIVE_LEAST)
        bytes = RECEIVE_LEAST;
    own->block = role_block(bytes);
    if (!own->block)
        return role_failed(stream, "setting up", ENOMEM, NULL);
    return open_path(stream, own);
}

void tcp_close(struct stream *stream)
{
    struct tcp_own *own = stream->own;
    if (!own)
        return;
    if (own->file >= 0)
        close(own->file);
    free(own->block);
    free(own);
    stream->own = NULL;
}

/* ---- sending without a copy ----------------------------------------------------------------- */

/* One message of the error queue: calls `first` to `last` are done with. */
static void note_done(struct stream *stream, const struct sock_extended_err *report)
{
    struct tcp_own *own = stream->own;
    if (report->ee_errno != 0 || report->ee_origin != SO_EE_ORIGIN_ZEROCOPY)
        return;
    uint32_t calls = report->ee_data - report->ee_info + 1;
    own->reaped += calls;
    if (report->ee_code & SO_EE_CODE_ZEROCOPY_COPIED)
        stream->counts.zerocopy_copied += calls;
}

static bool reap_one(struct stream *stream)
{
    char control[256];
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
    if (recvmsg(stream->fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
        return false;
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one)) {
        struct sock_extended_err report;
        memcpy(&report, CMSG_DATA(one), sizeof report);
        if ((one->cmsg_level == SOL_IP && one->cmsg_type == IP_RECVERR) ||
            (one->cmsg_level == SOL_IPV6 && one->cmsg_type == IPV6_RECVERR))
            note_done(stream, &report);
    }
    return true;
}

static void reap(struct stream *stream, int wait_ms)
{
    struct pollfd one = {.fd = stream->fd}; /* the error queue needs no requested event */
    if (wait_ms > 0)
        poll(&one, 1, wait_ms);
    while (reap_one(stream))
        ;
}

/* The phase's calls are counted with it: waits until the far end has acknowledged them. */
static void reap_all(struct stream *stream, const struct driver *driver)
{
    const struct tcp_own *own = stream->own;
    double until_s = now_s() + REAP_S;
    while (own->reaped < own->sent && now_s() < until_s && !driver->stopping(driver->context))
        reap(stream, 20);
}

static ssize_t send_zerocopy(struct stream *stream, const char *from, size_t bytes)
{
    struct tcp_own *own = stream->own;
    if (own->sent - own->reaped >= UNREAPED_MOST)
        reap(stream, 0);
    ssize_t sent = send(stream->fd, from, bytes, MSG_ZEROCOPY | MSG_NOSIGNAL);
    if (sent < 0 && errno == ENOBUFS) {
        /* As much as net.core.optmem_max allows is on its way. */
        reap(stream, 100);
        errno = EAGAIN;
        return -1;
    }
    own->sent += sent > 0;
    stream->counts.zerocopy_sent += sent > 0;
    return sent;
}

/* ---- sending -------------------------------------------------------------------------------- */

/* What is left of the block, then the block again. Where blocks are whole pages, a byte of the stream
 * then has the same place in a page at either end and, over the loopback, in the kernel: the copies
 * take up to a tenth longer where these places differ. */
static ssize_t send_some(struct stream *stream, uint64_t left)
{
    struct tcp_own *own = stream->own;
    uint32_t block = stream->test->block_bytes;
    off_t offset = (off_t)(stream->counts.bytes % block);
    size_t bytes = block - (size_t)offset;
    if (left < bytes)
        bytes = left;
    switch (stream->test->send_path) {
    case SEND_SENDFILE:
        return sendfile(stream->fd, own->file, &offset, bytes);
    case SEND_ZEROCOPY:
        return send_zerocopy(stream, own->block + offset, bytes);
    case SEND_COPY:
        break;
    }
    return send(stream->fd, own->block + offset, bytes, MSG_NOSIGNAL);
}

static int send_all(struct stream *stream, const struct driver *driver, struct pacing *pacing)
{
    struct stream_counts *counts = &stream->counts;
    uint64_t share = role_share(stream);
    struct stall stall = {0};
    double now = counts->first_s;
    while (counts->bytes < share && !driver->stopping(driver->context) &&
           !driver->over(driver->context, counts->bytes, now)) {
        if ((now = pacing_wait(pacing, driver, counts->bytes, now)) < 0)
            break;
        ssize_t sent = send_some(stream, share - counts->bytes);
        if (sent < 0 && !role_again(errno))
            return role_failed(stream, "sending", errno, NULL);
        now = now_s();
        if (sent <= 0 && stalled(&stall, stream->fd, counts->bytes, now))
            return role_failed(stream, "sending", ETIMEDOUT, STALL_REMEDY);
        if (sent <= 0)
            continue;
        stall.looked_s = 0;
        counts->bytes += (uint64_t)sent;
        pacing_sent(pacing, (uint64_t)sent, now);
        driver->moved(driver->context, counts->bytes);
    }
    return 0;
}

static void set_nodelay(int fd, int on)
{
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int tcp_send(struct stream *stream, const struct driver *driver)
{
    struct role_run run;
    role_begin(stream, &run);
    struct pacing pacing;
    set_nodelay(stream->fd, 0); /* small blocks share packets, as is TCP's default */
    stream->counts.first_s = now_s();
    pacing_begin(&pacing, stream->test->rate, stream->counts.first_s);
    int error = send_all(stream, driver, &pacing);
    stream->counts.last_s = now_s();
    set_nodelay(stream->fd, 1); /* the last of it goes out now */
    if (!error && stream->test->send_path == SEND_ZEROCOPY)
        reap_all(stream, driver);
    role_end(stream, &run);
    return error;
}

/* ---- receiving ------------------------------------------------------------------------------ */

static ssize_t receive_some(struct stream *stream)
{
    struct tcp_own *own = stream->own;
    uint32_t block = stream->test->block_bytes;
    if (block < RECEIVE_LEAST)
        block = RECEIVE_LEAST;
    size_t at = stream->counts.bytes % block;
    if (stream->test->truncate)
        return recv(stream->fd, NULL, TRUNCATE_MOST, MSG_TRUNC);
    return recv(stream->fd, own->block + at, block - at, 0);
}

static int receive_all(struct stream *stream, const struct driver *driver)
{
    struct stall stall = {0};
    for (;;) {
        uint64_t expected = atomic_load_explicit(&stream->expected, memory_order_relaxed);
        if (stream->counts.bytes >= expected || driver->stopping(driver->context))
            return 0;
        ssize_t got = receive_some(stream);
        if (got == 0)
            return role_failed(stream, "receiving", ECONNRESET, NULL);
        if (got < 0 && !role_again(errno))
            return role_failed(stream, "receiving", errno, NULL);
        if (got > 0)
            role_received(stream, driver, (uint64_t)got);
        else if (expected != STREAM_UNKNOWN &&
                 stalled(&stall, stream->fd, stream->counts.bytes, now_s()))
            return role_failed(stream, "receiving", ETIMEDOUT, STALL_REMEDY);
    }
}

int tcp_receive(struct stream *stream, const struct driver *driver)
{
    struct role_run run;
    role_begin(stream, &run);
    int error = receive_all(stream, driver);
    role_end(stream, &run);
    return error;
}
