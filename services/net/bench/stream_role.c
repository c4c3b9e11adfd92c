#define _GNU_SOURCE
#include "stream_role.h"

#include "endpoint.h"
#include "monotonic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

/* So often a blocked call comes back, and the role looks whether to stop. Receivers look more often:
 * it is how they learn that no more will come. */
enum { SEND_LOOK_MS = 100, RECEIVE_LOOK_MS = 20 };

static void set_timeouts(int fd, unsigned look_ms)
{
    struct timeval look = {.tv_usec = (suseconds_t)look_ms * 1000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &look, sizeof look);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof look);
}

/* Sets time limits on the socket where there is no timer: a user may have only so many. */
void role_begin(struct stream *stream, struct role_run *run)
{
    unsigned look_ms = stream->role == ROLE_SEND ? SEND_LOOK_MS : RECEIVE_LOOK_MS;
    run->ticking = ticks_begin(&run->ticks, look_ms);
    if (!run->ticking)
        set_timeouts(stream->fd, look_ms);
    run->before_cpu_s = seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

static void report_tcp(struct stream *stream)
{
    struct stream_counts *counts = &stream->counts;
    struct endpoint_tcp tcp;
    if (!endpoint_tcp(stream->fd, &tcp))
        return;
    counts->retransmits = (uint32_t)(tcp.retransmits - stream->retransmits_before);
    counts->congestion_window_bytes = tcp.congestion_window_bytes;
    counts->path_mtu_bytes = tcp.path_mtu_bytes;
    counts->mss_bytes = tcp.mss_bytes;
    counts->tcp_rtt_s = tcp.rtt_s;
}

void role_end(struct stream *stream, struct role_run *run)
{
    struct stream_counts *counts = &stream->counts;
    counts->cpu_s = seconds_of(CLOCK_THREAD_CPUTIME_ID) - run->before_cpu_s;
    if (run->ticking)
        ticks_end(&run->ticks);
    endpoint_buffers_in_force(stream->fd, &counts->send_buffer_bytes,
                              &counts->receive_buffer_bytes);
    if (stream->test->protocol == PROTOCOL_TCP) {
        report_tcp(stream);
        return;
    }
    counts->path_mtu_bytes = endpoint_path_mtu(stream->fd);
    if (stream->role == ROLE_RECEIVE)
        counts->dropped_by_receiver = (uint32_t)(endpoint_drops(stream->fd) - stream->drops_before);
}

static const char *usual_remedy(int error)
{
    switch (error) {
    case ECONNRESET:
    case EPIPE:
        return "the other end is gone: check its host and its log";
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
        return "the path to the other end is broken: check links and routes";
    case EPERM:
        return "a firewall of this host forbids it";
    case ENOMEM:
    case ENOBUFS:
        return "the kernel does not have enough memory for it: use fewer --streams";
    default:
        return NULL;
    }
}

int role_failed(struct stream *stream, const char *doing, int error, const char *remedy)
{
    if (!remedy)
        remedy = usual_remedy(error);
    snprintf(stream->what, sizeof stream->what, "stream %u: %s: %s%s%s", stream->index, doing,
             strerror(error), remedy ? ": " : "", remedy ? remedy : "");
    return -error;
}

bool role_again(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

void role_received(struct stream *stream, const struct driver *driver, uint64_t bytes)
{
    struct stream_counts *counts = &stream->counts;
    double now = now_s();
    if (counts->bytes == 0) {
        counts->first_s = now;
        counts->first_bytes = bytes;
    }
    counts->last_s = now;
    counts->bytes += bytes;
    driver->moved(driver->context, counts->bytes);
}

uint64_t role_share(const struct stream *stream)
{
    return stream->phase == PHASE_TIMED ? test_share_bytes(stream->test, stream->index)
                                        : UINT64_MAX;
}

char *role_block(size_t bytes)
{
    enum { PAGE = 4096 };
    size_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
    uint64_t *words = aligned_alloc(PAGE, whole), state = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; words && i < whole / sizeof *words; i++) {
        state ^= state << 13; /* xorshift64, Marsaglia 2003 */
        state ^= state >> 7;
        state ^= state << 17;
        words[i] = state;
    }
    return (char *)words;
}
