/* One bulk stream between two sockets of this process, which may lie in different network
 * namespaces, and what both of its ends counted, as JSON, for the tests. */
#define _GNU_SOURCE
#include "endpoint.h"
#include "monotonic.h"
#include "stream_run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct test test = {.kind = KIND_STREAM, .streams = 1, .block_bytes = 1472};
static struct {
    const char *near_ns, *far_ns, *near, *far;
    unsigned drop; /* every so many-th datagram is kept from the receiver; 0: none */
    double ramp_s;
    bool gone; /* no thread receives, and the socket is closed */
    bool mute; /* no thread receives */
    unsigned tail, again;
    int send_cpu, receive_cpu; /* -1: any */
} call = {.send_cpu = -1, .receive_cpu = -1, .near = "127.0.0.1", .far = "127.0.0.1"};

static double end_s;

static void fail(const char *what, int error)
{
    fprintf(stderr, "%s: %s\n", what, error ? strerror(error) : "");
    exit(1);
}

/* ---- drivers -------------------------------------------------------------------------------- */

static bool over(void *context, uint64_t moved, double now)
{
    (void)context, (void)moved;
    return end_s > 0 && now >= end_s;
}

static bool never(void *context)
{
    (void)context;
    return false;
}

static void moved(void *context, uint64_t bytes)
{
    (void)context, (void)bytes;
}

static const struct driver driver = {.over = over, .stopping = never, .moved = moved};

/* ---- sockets -------------------------------------------------------------------------------- */

static void enter(const char *namespace)
{
    int fd = open(namespace, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0)
        fail(namespace, errno);
    close(fd);
}

static int listening(uint16_t *port)
{
    struct endpoint local;
    if (!endpoint_parse(call.far, 0, &local))
        fail(call.far, EINVAL);
    if (call.far_ns)
        enter(call.far_ns);
    int fd = endpoint_listen(test.protocol, &local, 1, port);
    if (fd < 0)
        fail("listening", -fd);
    endpoint_prepare(fd, &test);
    return fd;
}

static int connected(uint16_t port)
{
    struct endpoint to;
    endpoint_parse(call.far, port, &to);
    if (call.near_ns)
        enter(call.near_ns);
    int fd = endpoint_connect_for(&test, test.protocol, &to, 5);
    return fd < 0 ? fail("connecting", -fd), -1 : fd;
}

static int accepted(int listener, int near)
{
    struct endpoint peer;
    if (test.protocol == PROTOCOL_TCP)
        return endpoint_accept(listener, 5, NULL);
    endpoint_of_socket(near, &peer);
    if (connect(listener, (struct sockaddr *)&peer.address, peer.length) != 0)
        fail("connecting back", errno);
    return listener;
}

/* Keeps every `drop`-th datagram away: its number is the second word behind the UDP header. */
static void drop_some(int fd)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 8 + 4),
        BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, call.drop),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    if (call.drop && setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0)
        fail("attaching a filter", errno);
}

/* ---- phases --------------------------------------------------------------------------------- */

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu < 0 ? 0 : (size_t)cpu, &set);
    if (cpu >= 0 && sched_setaffinity(0, sizeof set, &set) != 0)
        fail("pinning", errno);
}

static void *receive(void *stream)
{
    pin(call.receive_cpu);
    int error = stream_run(stream, &driver);
    return (void *)(intptr_t)error;
}

/* The first datagrams of the phase once more, as a network may bring them. */
static void send_again(struct stream *sender)
{
    char datagram[65536] = {0};
    for (unsigned i = 0; i < call.again; i++) {
        datagram[7] = (char)i;
        datagram[8] = (char)sender->phase;
        memcpy(datagram + 9, "netflow", 7);
        send(sender->fd, datagram, test.block_bytes, 0);
    }
}

static void run_phase(struct stream *sender, struct stream *receiver, uint8_t phase,
                      double duration_s)
{
    pthread_t thread;
    void *received;
    stream_begin_phase(sender, phase);
    stream_begin_phase(receiver, phase);
    if (!call.gone && !call.mute && pthread_create(&thread, NULL, receive, receiver) != 0)
        fail("starting a thread", errno);
    pin(call.send_cpu);
    end_s = duration_s > 0 ? now_s() + duration_s : 0;
    int error = stream_run(sender, &driver);
    if (error)
        fail(sender->what, 0);
    send_again(sender);
    /* What the path has lost at the end was sent all the same. */
    sender->counts.datagrams += call.tail;
    atomic_store(&receiver->expected,
                 test.protocol == PROTOCOL_TCP ? sender->counts.bytes : sender->counts.datagrams);
    if (call.gone || call.mute)
        return;
    pthread_join(thread, &received);
    if (received)
        fail(receiver->what, 0);
}

static void show(const char *name, const struct stream *stream, const char *behind)
{
    const struct stream_counts *c = &stream->counts;
    printf("\"%s\": {\"bytes\": %" PRIu64 ", \"datagrams\": %" PRIu64, name, c->bytes,
           c->datagrams);
    printf(", \"duplicated\": %" PRIu64 ", \"reordered\": %" PRIu64, c->duplicated, c->reordered);
    printf(", \"refused\": %" PRIu64 ", \"dropped_by_receiver\": %" PRIu64, c->refused,
           c->dropped_by_receiver);
    printf(", \"first_bytes\": %" PRIu64 ", \"first_s\": %.9f, \"last_s\": %.9f", c->first_bytes,
           c->first_s, c->last_s);
    printf(", \"cpu_s\": %.6f, \"retransmits\": %" PRIu64, c->cpu_s, c->retransmits);
    printf(", \"congestion_window_bytes\": %u, \"path_mtu_bytes\": %u, \"mss_bytes\": %u",
           c->congestion_window_bytes, c->path_mtu_bytes, c->mss_bytes);
    printf(", \"tcp_rtt_s\": %.6f, \"send_buffer_bytes\": %u, \"receive_buffer_bytes\": %u",
           c->tcp_rtt_s, c->send_buffer_bytes, c->receive_buffer_bytes);
    printf(", \"zerocopy_sent\": %" PRIu64 ", \"zerocopy_copied\": %" PRIu64, c->zerocopy_sent,
           c->zerocopy_copied);
    printf(", \"gso_segments\": %u, \"gro\": %u}%s", c->gso_segments, c->gro, behind);
}

/* ---- the call ------------------------------------------------------------------------------- */

static bool take_path(const char *value)
{
    const char *tcp[] = {"copy", "sendfile", "zerocopy"}, *udp[] = {"single", "mmsg", "gso"};
    for (int i = 0; i < 3; i++) {
        if (!strcmp(value, tcp[i])) {
            test.send_path = (enum send_path)i;
            return true;
        }
        if (!strcmp(value, udp[i])) {
            test.protocol = PROTOCOL_UDP;
            test.udp_path = (enum udp_path)i;
            return true;
        }
    }
    return false;
}

static bool take_number(const char *name, double value)
{
    if (!strcmp(name, "block"))
        test.block_bytes = (uint32_t)value;
    else if (!strcmp(name, "rate"))
        test.rate = value;
    else if (!strcmp(name, "duration"))
        test.duration_s = value;
    else if (!strcmp(name, "ramp"))
        call.ramp_s = value;
    else if (!strcmp(name, "work"))
        test.work_bytes = (uint64_t)value;
    else if (!strcmp(name, "truncate"))
        test.truncate = value != 0;
    else if (!strcmp(name, "buffers"))
        test.send_buffer_bytes = test.receive_buffer_bytes = (uint32_t)value;
    else if (!strcmp(name, "drop"))
        call.drop = (unsigned)value;
    else if (!strcmp(name, "gone"))
        call.gone = value != 0;
    else if (!strcmp(name, "mute"))
        call.mute = value != 0;
    else if (!strcmp(name, "tail"))
        call.tail = (unsigned)value;
    else if (!strcmp(name, "again"))
        call.again = (unsigned)value;
    else if (!strcmp(name, "send_cpu"))
        call.send_cpu = (int)value;
    else if (!strcmp(name, "receive_cpu"))
        call.receive_cpu = (int)value;
    else
        return false;
    return true;
}

static bool take(const char *name, const char *value)
{
    if (!strcmp(name, "path"))
        return take_path(value);
    if (!strcmp(name, "near_ns"))
        call.near_ns = value;
    else if (!strcmp(name, "far_ns"))
        call.far_ns = value;
    else if (!strcmp(name, "far"))
        call.far = value;
    else if (!strcmp(name, "congestion"))
        snprintf(test.congestion, sizeof test.congestion, "%s", value);
    else
        return take_number(name, strtod(value, NULL));
    return true;
}

/* stream_probe NAME=VALUE ... */
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (!value)
            return 2;
        *value++ = '\0';
        if (!take(argv[i], value))
            return 2;
    }
    uint16_t port;
    signal(SIGPIPE, SIG_IGN);
    int listener = listening(&port), near = connected(port), far = accepted(listener, near);
    struct stream sender = {.test = &test, .fd = near, .role = ROLE_SEND};
    struct stream receiver = {.test = &test, .fd = far, .role = ROLE_RECEIVE};
    if (stream_open(&sender) != 0 || stream_open(&receiver) != 0)
        fail(sender.what[0] ? sender.what : receiver.what, 0);
    drop_some(far);
    if (call.gone)
        close(far);
    if (call.ramp_s > 0)
        run_phase(&sender, &receiver, PHASE_RAMP, call.ramp_s);
    run_phase(&sender, &receiver, PHASE_TIMED, test.duration_s);
    printf("{");
    show("sender", &sender, ", ");
    show("receiver", &receiver, "}\n");
    stream_close(&sender);
    stream_close(&receiver);
    return 0;
}
