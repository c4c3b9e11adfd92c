#include "stream_run.h"

#include "endpoint.h"
#include "stream_role.h"
#include "stream_tcp.h"
#include "stream_udp.h"

#include <string.h>

static bool bulk(const struct stream *stream)
{
    return stream->role == ROLE_SEND || stream->role == ROLE_RECEIVE;
}

static int set_options(struct stream *stream)
{
    const struct test *test = stream->test;
    endpoint_buffers(stream->fd, test->send_buffer_bytes, test->receive_buffer_bytes);
    if (test->protocol != PROTOCOL_TCP || test->congestion[0] == '\0')
        return 0;
    int error = -endpoint_congestion(stream->fd, test->congestion);
    if (error)
        return role_failed(stream, "setting the congestion control", error,
                           "this end's kernel does not have or allow it");
    return 0;
}

int stream_open(struct stream *stream)
{
    int error = set_options(stream);
    if (error || !bulk(stream))
        return error;
    atomic_store(&stream->expected, STREAM_UNKNOWN);
    return stream->test->protocol == PROTOCOL_TCP ? tcp_open(stream) : udp_open(stream);
}

void stream_close(struct stream *stream)
{
    if (!bulk(stream))
        return;
    if (stream->test->protocol == PROTOCOL_TCP)
        tcp_close(stream);
    else
        udp_close(stream);
}

void stream_begin_phase(struct stream *stream, uint8_t phase)
{
    stream->phase = phase;
    memset(&stream->counts, 0, sizeof stream->counts);
    atomic_store(&stream->expected, STREAM_UNKNOWN);
    struct endpoint_tcp tcp = {0};
    if (stream->test->protocol == PROTOCOL_TCP)
        endpoint_tcp(stream->fd, &tcp);
    else
        stream->drops_before = endpoint_drops(stream->fd);
    stream->retransmits_before = tcp.retransmits;
}

int stream_run(struct stream *stream, const struct driver *driver)
{
    bool tcp = stream->test->protocol == PROTOCOL_TCP;
    if (stream->role == ROLE_SEND)
        return tcp ? tcp_send(stream, driver) : udp_send(stream, driver);
    return tcp ? tcp_receive(stream, driver) : udp_receive(stream, driver);
}
