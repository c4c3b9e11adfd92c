/* A load between two ends in one process, over the loopback: prints what each of its streams moved.
 *
 * load_probe SENDING RECEIVING SECONDS [break|stop]
 *   as many streams of the near end; `break`: the far end closes one first; `stop`: both have to
 *   give up instead of ending in order */
#define _GNU_SOURCE
#include "endpoint.h"
#include "load.h"
#include "stream_run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 16 };

struct end {
    struct stream streams[MOST];
    struct load_stream of[MOST];
    struct load *load;
};

static struct test test = {
    .protocol = PROTOCOL_TCP,
    .kind = KIND_STREAM,
    .streams = MOST,
    .block_bytes = 128 << 10,
};
static atomic_bool stop_requested;

static bool stopping(void *context)
{
    (void)context;
    return atomic_load(&stop_requested);
}

static void must(bool done, const char *what)
{
    if (done)
        return;
    perror(what);
    exit(3);
}

static void open_stream(struct end *end, unsigned index, int fd, bool sends)
{
    struct stream *stream = &end->streams[index];
    stream->test = &test;
    stream->index = index;
    stream->fd = fd;
    stream->role = sends ? ROLE_SEND : ROLE_RECEIVE;
    must(!stream_open(stream), "stream_open");
    stream_begin_phase(stream, PHASE_TIMED);
    end->of[index] = (struct load_stream){stream, sends};
}

static void connect_pair(struct end *near, struct end *far, unsigned index, bool near_sends)
{
    struct endpoint at;
    uint16_t port;
    must(endpoint_parse("127.0.0.1", 0, &at), "endpoint_parse");
    int listener = endpoint_listen(PROTOCOL_TCP, &at, 1, &port);
    must(listener >= 0, "endpoint_listen");
    endpoint_set_port(&at, port);
    int one = endpoint_connect(PROTOCOL_TCP, &at, 1), other = endpoint_accept(listener, 1, NULL);
    must(one >= 0 && other >= 0, "connect");
    close(listener);
    open_stream(near, index, one, near_sends);
    open_stream(far, index, other, !near_sends);
}

static void begin(struct end *end, unsigned count)
{
    const struct cpulist anywhere = {0};
    must(!load_begin(&end->load, end->of, count, &anywhere, stopping, NULL), "load_begin");
}

/* What the senders of one end have sent, the receivers of the other are to have. */
static void pass_totals(const struct end *from, struct end *to, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (from->of[i].sends)
            atomic_store(&to->streams[i].expected, from->streams[i].counts.bytes);
}

static int join(struct end *end, const char *name)
{
    struct stream *failed;
    int result = load_join(end->load, &failed);
    printf("\"%s_failed\": \"%s\", ", name, result ? strerrorname_np(-result) : "");
    printf("\"%s_failed_stream\": %d, ", name, failed ? (int)failed->index : -1);
    return result;
}

static void print_streams(const struct end *near, const struct end *far, unsigned count)
{
    printf("\"streams\": [");
    for (unsigned i = 0; i < count; i++) {
        bool sends = near->of[i].sends;
        const struct stream *from = sends ? &near->streams[i] : &far->streams[i];
        const struct stream *to = sends ? &far->streams[i] : &near->streams[i];
        double rate = load_rate(&to->counts);
        printf("%s{\"sent\": %" PRIu64 ", \"received\": %" PRIu64 ", \"rate\": %.0f}",
               i ? ", " : "", from->counts.bytes, to->counts.bytes, rate > 0 ? rate : 0);
    }
    printf("]}\n");
}

int main(int argc, char **argv)
{
    static struct end near, far;
    if (argc < 4)
        return 2;
    unsigned sending = (unsigned)atoi(argv[1]), count = sending + (unsigned)atoi(argv[2]);
    double seconds = strtod(argv[3], NULL);
    const char *how = argc > 4 ? argv[4] : "";
    for (unsigned i = 0; i < count; i++)
        connect_pair(&near, &far, i, i < sending);
    if (!strcmp(how, "break"))
        shutdown(far.streams[count - 1].fd, SHUT_RDWR);
    begin(&near, count);
    begin(&far, count);
    struct timespec time = {(time_t)seconds, (long)((seconds - (int)seconds) * 1e9)};
    nanosleep(&time, NULL);
    uint64_t moved = load_moved(near.load);
    if (strcmp(how, ""))
        atomic_store(&stop_requested, true);
    load_stop(near.load);
    pass_totals(&near, &far, count);
    load_stop(far.load);
    pass_totals(&far, &near, count);
    printf("{\"moved\": %" PRIu64 ", ", moved);
    join(&near, "near");
    join(&far, "far");
    print_streams(&near, &far, count);
    for (unsigned i = 0; i < count; i++) {
        stream_close(&near.streams[i]);
        stream_close(&far.streams[i]);
    }
    return 0;
}
