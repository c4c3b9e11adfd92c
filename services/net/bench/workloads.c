/* The rows of the table. All workloads share their functions: what differs is data. */
#include "cpulist.h"
#include "figures.h"
#include "naive.h"
#include "near_loop.h"
#include "net.h"
#include "net_workloads.h"

#include <stddef.h>

/* ---- parameters ----------------------------------------------------------------------------- */

static const char *const targets[] = {"auto", "loopback", "far_host", NULL};
static const char *const ip_versions[] = {"auto", "4", "6", NULL};
static const char *const directions[] = {"send", "receive", "both", NULL};
static const char *const send_paths[] = {"auto", "copy", "sendfile", "zerocopy", NULL};
static const char *const receive_paths[] = {"auto", "copy", "truncate", NULL};
static const char *const udp_paths[] = {"auto", "single", "mmsg", "gso", NULL};
static const char *const protocols[] = {"tcp", "udp", NULL};
static const char *const modes[] = {"send", "echo", NULL};
static const char *const waits[] = {"block", "spin", NULL};

/* clang-format off */
#define PARAMS_ALL(block, block_most, buffer)                                                      \
    {.name = "streams",                                                                            \
     .type = PARAM_COUNT,                                                                          \
     .initial = "1",                                                                               \
     .min = 1,                                                                                     \
     .max = STREAMS_MOST,                                                                          \
     .roles = ROLE_AXIS,                                                                           \
     .noun = "stream",                                                                             \
     .help = "Number of connected sockets, each with its own thread at both ends; with direction " \
             "both, this many in each direction."},                                                \
    {.name = "block_bytes",                                                                        \
     .type = PARAM_COUNT,                                                                          \
     .unit = "byte",                                                                               \
     .initial = block,                                                                             \
     .min = 1,                                                                                     \
     .max = block_most,                                                                            \
     .roles = ROLE_AXIS,                                                                           \
     .help = "Payload of one call; with UDP, of one datagram; in round trips, of the request and " \
             "of the answer."},                                                                    \
    {.name = "target",                                                                             \
     .type = PARAM_CHOICE,                                                                         \
     .initial = "auto",                                                                            \
     .choices = targets,                                                                           \
     .roles = ROLE_TAG,                                                                            \
     .resolved = "auto",                                                                           \
     .help = "Where the far end runs. loopback: in a second process on this host; far_host: on "   \
             "another host; auto: on the other host if the job has one."},                         \
    {.name = "ip_version",                                                                         \
     .type = PARAM_CHOICE,                                                                         \
     .initial = "auto",                                                                            \
     .choices = ip_versions,                                                                       \
     .roles = ROLE_TAG,                                                                            \
     .title = "IP version",                                                                        \
     .resolved = "auto",                                                                           \
     .help = "auto: the version of the far host's address; 4 on the loopback."},                   \
    {.name = "send_buffer_bytes",                                                                  \
     .type = PARAM_COUNT,                                                                          \
     .unit = "byte",                                                                               \
     .initial = buffer,                                                                            \
     .max = 1 << 30,                                                                               \
     .help = "Socket buffer size to request; not set or 0: the kernel's default."},                \
    {.name = "receive_buffer_bytes",                                                               \
     .type = PARAM_COUNT,                                                                          \
     .unit = "byte",                                                                               \
     .initial = buffer,                                                                            \
     .max = 1 << 30,                                                                               \
     .help = "Socket buffer size to request; not set or 0: the kernel's default."},                \
    {.name = "far_cpus",                                                                           \
     .type = PARAM_CPU_LIST,                                                                       \
     .max = CPULIST_MAX - 1,                                                                       \
     .help = "CPUs to pin the far end's threads to, round-robin. Default: on this host, the CPUs " \
             "that the near end does not use, if there are any; otherwise all."},                  \
    {.name = "session_fd",                                                                         \
     .type = PARAM_COUNT,                                                                          \
     .scope = SCOPE_HOST,                                                                          \
     .min = 3,                                                                                     \
     .max = 1048576,                                                                               \
     .help = "File descriptor of a file that describes the session opened on another host: its "   \
             "address=, port= and token=."}

#define PARAM_CONGESTION                                                                           \
    {.name = "congestion",                                                                         \
     .type = PARAM_CHOICE,                                                                         \
     .initial = "system",                                                                          \
     .choices = net_congestions,                                                                   \
     .roles = ROLE_TAG,                                                                            \
     .title = "congestion control",                                                                \
     .resolved = "system",                                                                         \
     .help = "TCP congestion control algorithm; system: the host's default."}

#define PARAM_TOTAL                                                                                \
    {.name = "total_bytes",                                                                        \
     .type = PARAM_COUNT,                                                                          \
     .unit = "byte",                                                                               \
     .min = 1,                                                                                     \
     .max = 1e18,                                                                                  \
     .ends_trial = true,                                                                           \
     .help = "Payload to send, split over all streams. With duration_s the trial ends at whichever "\
             "limit comes first; without it, when all payload is sent."}

#define PARAMS_STREAM                                                                              \
    {.name = "direction",                                                                          \
     .type = PARAM_CHOICE,                                                                         \
     .initial = "send",                                                                            \
     .choices = directions,                                                                        \
     .roles = ROLE_TAG,                                                                            \
     .help = "Direction of the transfer, as seen from the near end."},                             \
    {.name = "rate",                                                                               \
     .type = PARAM_NUMBER,                                                                         \
     .unit = "byte/s",                                                                             \
     .min = 1,                                                                                     \
     .max = 1e12,                                                                                  \
     .roles = ROLE_AXIS,                                                                           \
     .help = "Payload to send per second, all streams of one direction together. Not set: as "     \
             "fast as possible."},                                                                 \
    PARAM_TOTAL

#define PARAMS_ROUND_TRIP                                                                          \
    {.name = "wait",                                                                               \
     .type = PARAM_CHOICE,                                                                         \
     .initial = "block",                                                                           \
     .choices = waits,                                                                             \
     .roles = ROLE_TAG,                                                                            \
     .title = "way of waiting",                                                                    \
     .help = "How both ends wait for a message. block: the kernel wakes them; spin: they poll, "   \
             "each on a CPU of its own."},                                                         \
    {.name = "load_streams",                                                                       \
     .type = PARAM_COUNT,                                                                          \
     .initial = "0",                                                                               \
     .min = 0,                                                                                     \
     .max = LOAD_STREAMS_MOST,                                                                     \
     .roles = ROLE_AXIS,                                                                           \
     .noun = "load stream",                                                                        \
     .help = "Number of bulk TCP streams that run between the same ends at the same time, to "     \
             "measure latency under load."},                                                       \
    {.name = "load_direction",                                                                     \
     .type = PARAM_CHOICE,                                                                         \
     .initial = "send",                                                                            \
     .choices = directions,                                                                        \
     .help = "Direction of the load streams; both: load_streams in each direction."}
/* clang-format on */

static const struct param tcp_stream_params[] = {
    PARAMS_ALL("131072", TCP_BLOCK_MOST, NULL),
    PARAMS_STREAM,
    PARAM_CONGESTION,
    {.name = "send_path",
     .type = PARAM_CHOICE,
     .initial = "auto",
     .choices = send_paths,
     .roles = ROLE_TAG,
     .resolved = "auto",
     .resolved_once = true,
     .help = "copy: send(); sendfile: sends pages that are already in the kernel; zerocopy: "
             "MSG_ZEROCOPY; auto: sendfile, the fastest."},
    {.name = "receive_path",
     .type = PARAM_CHOICE,
     .initial = "auto",
     .choices = receive_paths,
     .roles = ROLE_TAG,
     .resolved = "auto",
     .resolved_once = true,
     .help = "copy: recv(); truncate: the kernel discards the bytes instead of copying them "
             "(MSG_TRUNC), so no program that needs its data can do this; auto: copy."},
    {.name = NULL},
};

static const struct param udp_stream_params[] = {
    PARAMS_ALL("1472", UDP_BLOCK_MOST, "4194304"),
    PARAMS_STREAM,
    {.name = "udp_path",
     .type = PARAM_CHOICE,
     .initial = "auto",
     .choices = udp_paths,
     .roles = ROLE_TAG,
     .title = "UDP path",
     .resolved = "auto",
     .resolved_once = true,
     .help = "single: one call per datagram; mmsg: sendmmsg and recvmmsg; gso: the kernel splits "
             "one large buffer into datagrams (GSO) and joins received ones (GRO); auto: gso if "
             "kernel and path support it, otherwise mmsg."},
    {.name = NULL},
};

static const struct param tcp_rr_params[] = {
    PARAMS_ALL("1", TCP_BLOCK_MOST, NULL), PARAMS_ROUND_TRIP, PARAM_CONGESTION, {.name = NULL}};
static const struct param udp_rr_params[] = {
    PARAMS_ALL("1", UDP_BLOCK_MOST, "4194304"), PARAMS_ROUND_TRIP, {.name = NULL}};

static const struct param naive_stream_params[] = {
    {.name = "protocol",
     .type = PARAM_CHOICE,
     .initial = "tcp",
     .choices = protocols,
     .help = "TCP, or UDP with one call per datagram."},
    {.name = "mode",
     .type = PARAM_CHOICE,
     .initial = "send",
     .choices = modes,
     .roles = ROLE_TAG,
     .help = "send: counts the bytes passed to the kernel, whether or not they arrive; echo: the "
             "far end sends each block back, and it counts once."},
    PARAMS_ALL("32768", TCP_BLOCK_MOST, NULL),
    PARAM_TOTAL,
    {.name = NULL},
};

static const char *const stream_excludes[] = {"threads", "work", NULL};
static const char *const round_trip_excludes[] = {"threads", NULL};

/* ---- the table ------------------------------------------------------------------------------ */

static const struct net_kind tcp_stream = {PROTOCOL_TCP, KIND_STREAM, false};
static const struct net_kind udp_stream = {PROTOCOL_UDP, KIND_STREAM, false};
static const struct net_kind tcp_rr = {PROTOCOL_TCP, KIND_RR, false};
static const struct net_kind udp_rr = {PROTOCOL_UDP, KIND_RR, false};
static const struct net_kind tcp_crr = {PROTOCOL_TCP, KIND_CRR, false};
static const struct net_kind naive_stream = {.naive = true};

#define OF_A_JOB                                                                                   \
    .threads = net_job_threads, .unsupported = net_job_unsupported, .check = net_job_check,        \
    .open = net_job_open, .close = net_job_close, .prepare = near_prepare

#define SHARED                                                                                     \
    OF_A_JOB, .setup = near_setup, .loop = near_loop, .verify = near_verify,                       \
        .finish = figures_finish

#define BULK                                                                                       \
    .rate = {.name = "bytes_per_second",                                                           \
             .unit = "byte/s",                                                                     \
             .description = "Payload received per second, on the receiver's clock from the first " \
                            "arrival to the last (the first arrival itself does not count). All "  \
                            "streams together, both directions added up.",                         \
             .combine = COMBINE_SUM,                                                               \
             .work = "byte"},                                                                      \
    .excludes = stream_excludes, .moved = near_moved, SHARED

#define ROUND_TRIP                                                                                 \
    .rate = {.name = "round_trip_s",                                                               \
             .unit = "s",                                                                          \
             .description = "Median time from just before a request is sent until its answer has " \
                            "arrived, on the near end's clock.",                                   \
             .combine = COMBINE_MEDIAN,                                                            \
             .time = true},                                                                        \
    .excludes = round_trip_excludes, SHARED

const struct workload tcp_stream_workload = {
    .name = "tcp_stream",
    .description = "Sends bytes over TCP as fast as possible or at a given rate.",
    .params = tcp_stream_params,
    .metrics = tcp_stream_metrics,
    .own = &tcp_stream,
    BULK,
};

const struct workload udp_stream_workload = {
    .name = "udp_stream",
    .description = "Sends numbered datagrams over UDP and counts how many arrive.",
    .params = udp_stream_params,
    .metrics = udp_stream_metrics,
    .own = &udp_stream,
    BULK,
};

const struct workload tcp_rr_workload = {
    .name = "tcp_rr",
    .description = "Sends a request over a TCP connection and waits for the answer, again and "
                   "again; every round trip is timed.",
    .params = tcp_rr_params,
    .metrics = tcp_rr_metrics,
    .own = &tcp_rr,
    ROUND_TRIP,
};

const struct workload udp_rr_workload = {
    .name = "udp_rr",
    .description = "Sends a request over UDP and waits for the answer, again and again; a request "
                   "without an answer within one second is lost.",
    .params = udp_rr_params,
    .metrics = udp_rr_metrics,
    .own = &udp_rr,
    ROUND_TRIP,
};

const struct workload tcp_crr_workload = {
    .name = "tcp_crr",
    .description =
        "Opens a TCP connection for each request and its answer: connect, request, answer, close.",
    .rate = {.name = "operations_per_second",
             .unit = "operation/s",
             .description =
                 "Connections per second, each opened, used once and closed; all streams together.",
             .combine = COMBINE_SUM},
    .excludes = round_trip_excludes,
    .params = tcp_rr_params,
    .metrics = tcp_crr_metrics,
    .own = &tcp_crr,
    SHARED,
};

const struct workload naive_stream_workload = {
    .name = "naive_stream",
    .description = "Sends blocks, or has them echoed, and divides the bytes that the sender counts "
                   "by its time of day: bytes that wait in buffers or were lost count too.",
    .naive = true,
    .rate = {.name = "bytes_per_second",
             .unit = "byte/s",
             .description = "Payload passed to the kernel, whether or not it arrived (mode echo: "
                            "payload that came back, each block counted once), divided by the time "
                            "of day that passed at the near end.",
             .combine = COMBINE_SUM,
             .work = "byte"},
    .params = naive_stream_params,
    .metrics = naive_stream_metrics,
    .excludes = stream_excludes,
    .own = &naive_stream,
    OF_A_JOB,
    .setup = naive_setup,
    .loop = naive_loop,
    .verify = naive_verify,
    .moved = naive_moved,
    .finish = naive_finish,
};
