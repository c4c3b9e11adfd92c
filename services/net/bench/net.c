/* From parameters to the job: where the far end is, what the two are to do, and the way between. */
#define _GNU_SOURCE
#include "net.h"

#include "placement.h"
#include "token.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const net_congestions[] = {"system", "reno", "cubic",    "bbr", "dctcp",
                                       "vegas",  "htcp", "westwood", NULL};

/* ---- reading -------------------------------------------------------------------------------- */

static bool chosen(const struct run *run, const char *param, const char *word)
{
    const char *choice = run_choice(run, param);
    return choice && !strcmp(choice, word);
}

static struct net_kind kind_of(const struct run *run)
{
    struct net_kind kind = *(const struct net_kind *)run_own(run);
    if (kind.naive) {
        kind.protocol = chosen(run, "protocol", "udp") ? PROTOCOL_UDP : PROTOCOL_TCP;
        kind.kind = chosen(run, "mode", "echo") ? KIND_RR : KIND_STREAM;
    }
    return kind;
}

static bool is_stream(const struct run *run)
{
    return kind_of(run).kind == KIND_STREAM;
}

static bool is_tcp(const struct run *run)
{
    return kind_of(run).protocol == PROTOCOL_TCP;
}

static bool is_naive(const struct run *run)
{
    return kind_of(run).naive;
}

static enum test_direction direction(const struct run *run, const char *param)
{
    if (chosen(run, param, "send"))
        return DIRECTION_SEND;
    return chosen(run, param, "receive") ? DIRECTION_RECEIVE : DIRECTION_BOTH;
}

static uint64_t count_or_0(const struct run *run, const char *param)
{
    return run_param_set(run, param) ? run_count(run, param) : 0;
}

unsigned net_job_threads(const struct run *run)
{
    bool both = is_stream(run) && !is_naive(run) && direction(run, "direction") == DIRECTION_BOTH;
    return (unsigned)run_count(run, "streams") * (both ? 2 : 1);
}

static bool has_loopback_6(void)
{
    static const char localhost[] = "00000000000000000000000000000001 ";
    char line[128];
    bool found = false;
    FILE *stream = fopen("/proc/net/if_inet6", "re");
    while (stream && !found && fgets(line, sizeof line, stream))
        found = !strncmp(line, localhost, sizeof localhost - 1);
    if (stream)
        fclose(stream);
    return found;
}

const char *net_job_unsupported(const struct run *run)
{
    const char *why = token_unsupported();
    if (why)
        return why;
    if (chosen(run, "ip_version", "6") && !run_param_set(run, "session_fd") && !has_loopback_6())
        return "this host has no IPv6 loopback";
    if (!is_tcp(run) || is_naive(run) || chosen(run, "congestion", "system"))
        return NULL;
    return endpoint_congestion_unsupported(run_choice(run, "congestion"));
}

static void read_stream_params(struct run *run, struct test *test)
{
    test->direction = direction(run, "direction");
    if (run_param_set(run, "rate"))
        test->rate = run_number(run, "rate") / test->streams;
    test->work_bytes = count_or_0(run, "total_bytes");
    if (!is_tcp(run))
        return;
    test->send_path = chosen(run, "send_path", "zerocopy") ? SEND_ZEROCOPY
                      : chosen(run, "send_path", "copy")   ? SEND_COPY
                                                           : SEND_SENDFILE;
    test->truncate = chosen(run, "receive_path", "truncate");
}

static void read_round_trip_params(struct run *run, struct test *test)
{
    test->direction = DIRECTION_BOTH;
    test->spin = chosen(run, "wait", "spin");
    test->load_streams = (unsigned)run_count(run, "load_streams");
    test->load_direction = direction(run, "load_direction");
}

/* What a program does that asks the system for nothing more. */
static void read_naive_params(struct run *run, struct test *test)
{
    test->direction = is_stream(run) ? DIRECTION_SEND : DIRECTION_BOTH;
    test->work_bytes = count_or_0(run, "total_bytes");
    test->send_path = SEND_COPY;
    test->udp_path = UDP_SINGLE;
}

static bool copy_cpus(const struct cpulist *from, struct cpulist *to)
{
    if (from->count == 0)
        return true;
    to->cpus = malloc(from->count * sizeof *to->cpus);
    if (!to->cpus)
        return false;
    memcpy(to->cpus, from->cpus, from->count * sizeof *to->cpus);
    to->count = from->count;
    return true;
}

/* false without memory. */
static bool read_params(struct run *run, struct test *test)
{
    *test = (struct test){
        .protocol = kind_of(run).protocol,
        .kind = kind_of(run).kind,
        .streams = (unsigned)run_count(run, "streams"),
        .block_bytes = (uint32_t)run_count(run, "block_bytes"),
        .send_buffer_bytes = (uint32_t)count_or_0(run, "send_buffer_bytes"),
        .receive_buffer_bytes = (uint32_t)count_or_0(run, "receive_buffer_bytes"),
        .duration_s = run_param_set(run, "duration_s") ? run_number(run, "duration_s") : 0,
        .ramp_s = run_number(run, "warmup_s"),
    };
    if (is_naive(run))
        read_naive_params(run, test);
    else if (is_stream(run))
        read_stream_params(run, test);
    else
        read_round_trip_params(run, test);
    if (is_tcp(run) && !is_naive(run) && !chosen(run, "congestion", "system"))
        snprintf(test->congestion, sizeof test->congestion, "%s", run_choice(run, "congestion"));
    return copy_cpus(run_cpu_list(run, "far_cpus"), &test->far_cpus);
}

/* ---- before anything is opened -------------------------------------------------------------- */

static int check_target(struct run *run)
{
    bool session = run_param_set(run, "session_fd");
    if (chosen(run, "target", "far_host") && !session) {
        run_reason(run, "target far_host needs a far host: give the job two hosts, or --far-host");
        return EXIT_USAGE;
    }
    if (chosen(run, "target", "loopback") && session) {
        run_reason(run, "target loopback and a session of another host are both given: use target "
                        "far_host, or leave the session out");
        return EXIT_USAGE;
    }
    run_set_choice(run, "target", session ? "far_host" : "loopback");
    return EXIT_OK;
}

static int check_cpus_here(struct run *run, const struct cpulist *cpus)
{
    char allowed[256];
    struct cpulist affinity;
    int failure = EXIT_OK;
    if (!placement_affinity(&affinity))
        return EXIT_OK; /* the harness has reported it already */
    cpulist_format(&affinity, allowed, sizeof allowed);
    for (size_t i = 0; i < cpus->count && !failure; i++)
        if (!cpulist_contains(&affinity, cpus->cpus[i])) {
            run_reason(run,
                       "--far-cpus: CPU %d is outside the CPUs this process may use: of target "
                       "loopback allowed is a list out of %s (affinity mask and cpuset)",
                       cpus->cpus[i], allowed);
            failure = EXIT_USAGE;
        }
    cpulist_free(&affinity);
    return failure;
}

/* On one host the far end stays off the near end's CPUs, where there are others: two threads that
 * meet on one by chance make a figure of two modes. */
static int place_far_end(struct run *run)
{
    if (!chosen(run, "target", "loopback"))
        return EXIT_OK;
    if (run_param_set(run, "far_cpus"))
        return check_cpus_here(run, run_cpu_list(run, "far_cpus"));
    struct cpulist left = run_cpus_left(run);
    if (left.count > 0)
        run_set_cpu_list(run, "far_cpus", &left);
    cpulist_free(&left);
    return EXIT_OK;
}

/* The other workloads have a bound of their own in the table. */
static int check_block(struct run *run)
{
    uint64_t block = run_count(run, "block_bytes");
    if (is_tcp(run) || block <= UDP_BLOCK_MOST)
        return EXIT_OK;
    run_reason(run,
               "block_bytes %" PRIu64
               " of protocol udp: a datagram takes %d at most; use smaller blocks, or protocol tcp",
               block, UDP_BLOCK_MOST);
    return EXIT_USAGE;
}

int net_job_check(struct run *run)
{
    int failure = check_target(run);
    if (!failure)
        failure = check_block(run);
    return failure ? failure : place_far_end(run);
}

/* ---- the way to the far end ----------------------------------------------------------------- */

/* Once only: what a pipe has cannot be read again. */
static int read_session(struct run *run, int fd, struct grant *grant)
{
    char text[GRANT_MOST], why[200];
    bool good =
        grant_read(fd, text, why, sizeof why) && grant_parse_near(text, grant, why, sizeof why);
    explicit_bzero(text, sizeof text);
    if (good)
        return EXIT_OK;
    run_reason(run, "--session-fd %d: %s", fd, why);
    return EXIT_USAGE;
}

static int find_far_end(struct net_job *job)
{
    struct run *run = job->run;
    if (job->far_host) {
        int failure = read_session(run, (int)run_count(run, "session_fd"), &job->grant);
        if (failure)
            return failure;
        job->where.grant = &job->grant;
        job->far = job->grant.address;
    } else {
        endpoint_parse(job->where.ip_version == 6 ? "::1" : "127.0.0.1", 0, &job->far);
    }
    bool six = job->far.address.ss_family == AF_INET6;
    if (job->where.ip_version == 0 || (job->where.ip_version == 6) == six) {
        run_set_choice(run, "ip_version", six ? "6" : "4");
        return EXIT_OK;
    }
    char text[ENDPOINT_TEXT];
    endpoint_format(&job->far, text);
    run_reason(run,
               "ip_version %d, and the far end is at %s: leave ip_version at auto, or give the "
               "far host's address of that version",
               job->where.ip_version, text);
    return EXIT_USAGE;
}

static int find_route(struct net_job *job)
{
    char text[ENDPOINT_TEXT];
    int error = endpoint_route(&job->far, &job->route);
    if (!error)
        return EXIT_OK;
    endpoint_format(&job->far, text);
    run_reason(job->run,
               "there is no route to the far end at %s (%s): check address, interface and routes",
               text, strerror(-error));
    return EXIT_FAILED;
}

/* A datagram of a GSO send has to be one packet. */
static int check_gso(struct net_job *job)
{
    uint32_t mtu = job->route.path_mtu_bytes ? job->route.path_mtu_bytes : job->route.mtu_bytes;
    uint32_t header = endpoint_udp_header_bytes(&job->far);
    if (job->test.udp_path != UDP_GSO || mtu == 0 || job->test.block_bytes + header <= mtu)
        return EXIT_OK;
    run_reason(job->run,
               "block_bytes %" PRIu32 " of udp_path gso: the MTU of %" PRIu32
               " on this path allows "
               "%" PRIu32 " at most; use udp_path mmsg, or smaller blocks",
               job->test.block_bytes, mtu, mtu - header);
    return EXIT_USAGE;
}

static const char *const udp_words[] = {
    [UDP_SINGLE] = "single", [UDP_MMSG] = "mmsg", [UDP_GSO] = "gso"};

static int choose_udp_path(struct net_job *job)
{
    struct run *run = job->run;
    const char *why;
    if (chosen(run, "udp_path", "auto")) {
        job->test.udp_path = endpoint_udp_path(&job->route, job->test.block_bytes, &why);
        run_set_choice(run, "udp_path", udp_words[job->test.udp_path]);
        return EXIT_OK;
    }
    for (size_t i = 0; i < sizeof udp_words / sizeof *udp_words; i++)
        if (chosen(run, "udp_path", udp_words[i]))
            job->test.udp_path = (enum udp_path)i;
    return check_gso(job);
}

static void choose_tcp_paths(struct run *run)
{
    if (chosen(run, "send_path", "auto"))
        run_set_choice(run, "send_path", "sendfile");
    if (chosen(run, "receive_path", "auto"))
        run_set_choice(run, "receive_path", "copy");
}

static int choose_paths(struct net_job *job)
{
    if (!is_stream(job->run) || is_naive(job->run))
        return EXIT_OK;
    if (!is_tcp(job->run))
        return choose_udp_path(job);
    choose_tcp_paths(job->run);
    return EXIT_OK;
}

/* ---- what was found ------------------------------------------------------------------------- */

static void number_fact(struct run *run, const char *name, uint32_t number)
{
    char text[16] = "";
    if (number > 0)
        snprintf(text, sizeof text, "%" PRIu32, number);
    run_fact(run, name, text);
}

static void address_facts(struct net_job *job)
{
    char text[ENDPOINT_TEXT];
    endpoint_format(&job->route.source, text);
    run_fact(job->run, "near_address", text);
    endpoint_format(&job->far, text);
    run_fact(job->run, "far_address", text);
}

/* What the ends that send have in force; "" where both do, each with its own. */
static const char *senders_congestion(const struct net_job *job, const char *near)
{
    const char *far = session_report(job->session)->congestion;
    switch (job->test.direction) {
    case DIRECTION_SEND:
        return near;
    case DIRECTION_RECEIVE:
        return far;
    default:
        return strcmp(near, far) == 0 ? near : "";
    }
}

/* The choice `system` becomes what it stands for, where that is one of the others. */
static void name_congestion(struct net_job *job)
{
    static const char *const *const words = net_congestions;
    static char in_force[CONGESTION_SIZE];
    struct stream *first = session_stream(job->session, 0);
    if (!is_tcp(job->run) || first->fd < 0)
        return;
    endpoint_congestion_in_force(first->fd, in_force);
    run_fact(job->run, "congestion", in_force);
    if (is_naive(job->run))
        return;
    const char *sending = senders_congestion(job, in_force);
    for (size_t i = 0; words[i]; i++)
        if (chosen(job->run, "congestion", "system") && !strcmp(words[i], sending))
            run_set_choice(job->run, "congestion", words[i]);
}

static void report_facts(struct net_job *job)
{
    struct run *run = job->run;
    const struct far_report *far = session_report(job->session);
    address_facts(job);
    run_fact(run, "interface", job->route.interface);
    number_fact(run, "interface_mtu", job->route.mtu_bytes);
    run_fact(run, "network_mode", job->route.kind ? job->route.kind : "");
    run_fact(run, "far_interface", far->interface);
    number_fact(run, "far_interface_mtu", far->interface_mtu);
    run_fact(run, "far_network_mode", far->network_mode);
    run_fact(run, "far_host_name", far->host_name);
    run_fact(run, "far_congestion", far->congestion);
    run_fact(run, "far_cpus", far->cpus);
    name_congestion(job);
}

/* ---- open and close ------------------------------------------------------------------------- */

/* Those that `cpus` names, else all: pinned to the asker's, the load would be what is waited for. */
static bool find_load_cpus(struct net_job *job)
{
    const struct cpulist *given = run_cpu_list(job->run, "cpus");
    return given->count ? copy_cpus(given, &job->load_cpus) : placement_affinity(&job->load_cpus);
}

static struct net_job *job_of(struct run *run)
{
    unsigned threads = run_threads(run);
    size_t bytes = threads * sizeof(struct near_thread);
    struct net_job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    job->run = run;
    run_set_shared(run, job);
    job->own = aligned_alloc(_Alignof(struct near_thread), bytes);
    if (!job->own)
        return NULL;
    memset(job->own, 0, bytes);
    return read_params(run, &job->test) && find_load_cpus(job) ? job : NULL;
}

/* On this host are the near end's threads and, over a loopback, as many of the far end. */
static void tell_of_sharing(struct net_job *job)
{
    unsigned ends = job->far_host ? 1 : 2;
    if (job->test.load_streams > 0 &&
        job->load_cpus.count < (run_threads(job->run) + job->test.load_streams) * ends)
        run_share_cpus(job->run);
}

static void read_where(struct net_job *job)
{
    struct run *run = job->run;
    job->far_host = chosen(run, "target", "far_host");
    if (!chosen(run, "ip_version", "auto"))
        job->where.ip_version = chosen(run, "ip_version", "6") ? 6 : 4;
}

int net_job_open(struct run *run)
{
    struct net_job *job = job_of(run);
    if (!job) {
        run_reason(run, "not enough memory for %u streams: use fewer", run_threads(run));
        return EXIT_RESOURCE;
    }
    read_where(job);
    tell_of_sharing(job);
    int failure = find_far_end(job);
    if (!failure)
        failure = find_route(job);
    if (!failure)
        failure = choose_paths(job);
    if (!failure)
        failure = session_open(run, &job->test, &job->where, &job->session);
    explicit_bzero(&job->grant, sizeof job->grant);
    if (!failure)
        report_facts(job);
    return failure;
}

void net_job_close(struct run *run)
{
    struct net_job *job = run_shared(run);
    if (!job)
        return;
    /* A phase that failed was not closed, and its load's threads still use the streams. */
    load_abandon(job->load);
    session_close(job->session);
    test_free(&job->test);
    cpulist_free(&job->load_cpus);
    free(job->own);
    free(job);
}

/* ---- what both ends counted ----------------------------------------------------------------- */

static const struct stream_counts *near_counts(const struct net_job *job, unsigned index)
{
    return &session_stream(job->session, index)->counts;
}

static const struct stream_counts *far_counts(const struct net_job *job, unsigned index)
{
    return &session_report(job->session)->counts[index];
}

const struct stream_counts *net_job_sender(const struct net_job *job, unsigned index)
{
    bool receives = test_place(&job->test, index).near == ROLE_RECEIVE;
    return receives ? far_counts(job, index) : near_counts(job, index);
}

const struct stream_counts *net_job_receiver(const struct net_job *job, unsigned index)
{
    bool receives = test_place(&job->test, index).near == ROLE_RECEIVE;
    return receives ? near_counts(job, index) : far_counts(job, index);
}
