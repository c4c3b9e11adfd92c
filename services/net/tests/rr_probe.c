/* Round trips between two processes on the loopback, for the tests and for comparisons of their
 * speed: prints what each end counted.
 *
 * rr_probe tcp|udp|crr [OPTION=VALUE ...]
 *   block=1 operations=1000 seconds=0 (whichever is reached first; 0: not) version=4 spin=0
 *   cpus=NEAR,FAR     where the two ends are pinned
 *   drop=K            UDP: a filter at the far end drops each K-th request; a power of 2
 *   stop=S            seconds until both ends are to give up
 *   far=answer        or corrupt, vanish (after one answer), silent
 *   early=K           UDP: the far end sends K datagrams of its own first
 *   wait=0            crr: 1: prints {"port": …} and waits for a line before the near end begins,
 *                     2: before either end begins
 *   phase=1           */
#define _GNU_SOURCE
#include "endpoint.h"
#include "histogram.h"
#include "monotonic.h"
#include "rr.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char **options;

static const char *option(const char *name, const char *initial)
{
    for (char **one = options; *one; one++)
        if (!strncmp(*one, name, strlen(name)) && (*one)[strlen(name)] == '=')
            return *one + strlen(name) + 1;
    return initial;
}

static double number(const char *name, double initial)
{
    const char *text = option(name, NULL);
    return text ? strtod(text, NULL) : initial;
}

static void must(bool done, const char *what)
{
    if (done)
        return;
    perror(what);
    exit(3);
}

/* Both processes see it. */
struct ends {
    struct stream near, far;
    struct histogram latencies;
    _Atomic uint64_t strangers;
    int far_result;
    double stop_s;
};

static struct ends *ends;
static struct test test = {.kind = KIND_RR, .streams = 1, .direction = DIRECTION_BOTH};
static uint64_t operations;
static double end_s;

static bool over(void *context, uint64_t begun, double at_s)
{
    (void)context;
    return begun >= operations || at_s >= end_s;
}

static bool stopping(void *context)
{
    (void)context;
    return ends->stop_s > 0 && now_s() >= ends->stop_s;
}

static void moved(void *context, uint64_t bytes)
{
    (void)context, (void)bytes;
}

static void done(void *context, uint64_t latency_ns)
{
    (void)context;
    histogram_add(&ends->latencies, latency_ns);
}

static const struct driver DRIVER = {NULL, over, stopping, moved, done};

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    must(!sched_setaffinity(0, sizeof set, &set), "sched_setaffinity");
}

/* ---- sockets -------------------------------------------------------------------------------- */

static struct sockaddr_storage listening_at;
static int listener = -1;

static socklen_t loopback(struct sockaddr_storage *address)
{
    socklen_t length = sizeof(struct sockaddr_in);
    memset(address, 0, sizeof *address);
    if (number("version", 4) == 6) {
        *(struct sockaddr_in6 *)address =
            (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
        return sizeof(struct sockaddr_in6);
    }
    *(struct sockaddr_in *)address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    return length;
}

/* A bound socket, and where. */
static int bound(int type, struct sockaddr_storage *at)
{
    socklen_t length = loopback(at);
    int fd = socket(at->ss_family, type | SOCK_CLOEXEC, 0);
    must(fd >= 0 && !bind(fd, (struct sockaddr *)at, length) &&
             !getsockname(fd, (struct sockaddr *)at, &length),
         "bind");
    return fd;
}

static void connect_to(int fd, const struct sockaddr_storage *at)
{
    socklen_t length =
        at->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    must(!connect(fd, (const struct sockaddr *)at, length), "connect");
}

static void udp_pair(void)
{
    struct sockaddr_storage near, far;
    ends->near.fd = bound(SOCK_DGRAM, &near);
    ends->far.fd = bound(SOCK_DGRAM, &far);
    connect_to(ends->near.fd, &far);
    connect_to(ends->far.fd, &near);
    int bytes = 4 << 20;
    setsockopt(ends->near.fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    setsockopt(ends->far.fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

static void tcp_pair(void)
{
    struct sockaddr_storage near;
    listener = bound(SOCK_STREAM, &listening_at);
    must(!listen(listener, 128), "listen");
    if (test.kind == KIND_CRR)
        return;
    ends->near.fd = bound(SOCK_STREAM, &near);
    connect_to(ends->near.fd, &listening_at);
    ends->far.fd = accept(listener, NULL, NULL);
    must(ends->far.fd >= 0, "accept");
}

/* The first byte of the payload stands behind the UDP header's eight. */
static void drop_each(unsigned of)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 8),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, of - 1),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, of - 1, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    must(!setsockopt(ends->far.fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program),
         "SO_ATTACH_FILTER");
}

/* ---- the far end ---------------------------------------------------------------------------- */

static const uint8_t KEY[RR_KEY_BYTES] = "0123456789abcdef";

/* It does what it should not, until it is killed. */
static void misbehave(const char *how)
{
    static uint8_t block[TCP_BLOCK_MOST];
    for (unsigned count = 0; strcmp(how, "silent"); count++) {
        if (count && !strcmp(how, "vanish"))
            exit(0);
        ssize_t bytes = recv(ends->far.fd, block, sizeof block, 0);
        if (bytes <= 0)
            exit(0);
        if (!strcmp(how, "corrupt"))
            block[bytes - 1] ^= 1;
        send(ends->far.fd, block, (size_t)bytes, MSG_NOSIGNAL);
    }
    pause();
}

static void far_end(void)
{
    const char *how = option("far", "answer");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends->near.fd);
    if (option("cpus", NULL))
        pin(atoi(strchr(option("cpus", NULL), ',') + 1));
    for (double early = number("early", 0); early > 0; early--)
        send(ends->far.fd, &early, test.block_bytes < sizeof early ? 1 : sizeof early, 0);
    if (strcmp(how, "answer"))
        misbehave(how);
    ends->far_result = test.kind == KIND_CRR ? crr_answer(listener, &ends->far, &listening_at, KEY,
                                                          &ends->strangers, &DRIVER)
                                             : rr_answer(&ends->far, &DRIVER);
    exit(0);
}

/* ---- both ----------------------------------------------------------------------------------- */

static void print_counts(const char *name, const struct stream *stream)
{
    const struct stream_counts *counts = &stream->counts;
    printf("\"%s\": {\"operations\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"duplicated\": %" PRIu64
           ", \"refused\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"seconds\": %.9f, \"cpu_s\": %.9f,"
           " \"path_mtu\": %u, \"receive_buffer\": %u, \"what\": \"%s\"}, ",
           name, counts->datagrams, counts->lost_operations, counts->duplicated, counts->refused,
           counts->bytes, counts->last_s - counts->first_s, counts->cpu_s, counts->path_mtu_bytes,
           counts->receive_buffer_bytes, stream->what);
}

static void print_all(int result)
{
    const struct histogram *all = &ends->latencies;
    bool any = histogram_count(all) > 0;
    printf("{");
    print_counts("near", &ends->near);
    print_counts("far", &ends->far);
    printf("\"latencies\": %" PRIu64 ", \"p50_s\": %.9f, \"p99_s\": %.9f, \"strangers\": %" PRIu64
           ", \"far_result\": \"%s\", \"result\": \"%s\"}\n",
           histogram_count(all), any ? histogram_quantile_ns(all, 0.5) * 1e-9 : 0,
           any ? histogram_quantile_ns(all, 0.99) * 1e-9 : 0, ends->strangers,
           ends->far_result ? strerrorname_np(-ends->far_result) : "",
           result ? strerrorname_np(-result) : "");
}

static void prepare(const char *what)
{
    test.kind = strcmp(what, "crr") ? KIND_RR : KIND_CRR;
    test.protocol = strcmp(what, "udp") ? PROTOCOL_TCP : PROTOCOL_UDP;
    test.block_bytes = (uint32_t)number("block", 1);
    test.spin = number("spin", 0) > 0;
    ends = mmap(NULL, sizeof *ends, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(ends != MAP_FAILED, "mmap");
    histogram_clear(&ends->latencies);
    ends->near = ends->far =
        (struct stream){.test = &test, .fd = -1, .phase = (uint8_t)number("phase", 1)};
    atomic_store(&ends->far.expected, STREAM_UNKNOWN);
    if (test.protocol == PROTOCOL_UDP)
        udp_pair();
    else
        tcp_pair();
    if (number("drop", 0) > 0)
        drop_each((unsigned)number("drop", 0));
}

static void wait_for_line(void)
{
    struct endpoint at = {listening_at, sizeof listening_at};
    printf("{\"port\": %u}\n", endpoint_port(&at));
    fflush(stdout);
    while (getchar() != '\n')
        ;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    options = argv + 2;
    prepare(argv[1]);
    if (number("wait", 0) == 2)
        wait_for_line();
    pid_t child = fork();
    must(child >= 0, "fork");
    if (!child)
        far_end();
    close(ends->far.fd);
    if (option("cpus", NULL))
        pin(atoi(option("cpus", NULL)));
    if (number("wait", 0) == 1)
        wait_for_line();
    if (number("stop", 0) > 0)
        ends->stop_s = now_s() + number("stop", 0);
    operations = (uint64_t)number("operations", 1000);
    operations = operations ? operations : UINT64_MAX;
    end_s = number("seconds", 0) > 0 ? now_s() + number("seconds", 0) : 1e18;
    int result = test.kind == KIND_CRR ? crr_ask(&ends->near, &listening_at, NULL, KEY, &DRIVER)
                                       : rr_ask(&ends->near, &DRIVER);
    atomic_store(&ends->far.expected, ends->near.counts.datagrams);
    if (strcmp(option("far", "answer"), "answer"))
        kill(child, SIGKILL);
    must(waitpid(child, NULL, 0) == child, "waitpid");
    print_all(result);
    return 0;
}
