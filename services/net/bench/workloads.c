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
     .help = "Connected sockets, each with a thread of its own at either end; of direction both "  \
             "so many in each direction."},                                                        \
    {.name = "block_bytes",                                                                        \
     .type = PARAM_COUNT,                                                                          \
     .unit = "byte",                                                                               \
     .initial = block,                                                                             \
     .min = 1,                                                                                     \
     .max = block_most,                                                                            \
     .roles = ROLE_AXIS,                                                                           \
     .help = "Payload of one call, of UDP of one datagram, of round trips of request and answer "  \
             "each."},                                                                             \
    {.name = "target",                                                                             \
     .type = PARAM_CHOICE,                                                                         \
     .initial = "auto",                                                                            \
     .choices = targets,                                                                           \
     .roles = ROLE_TAG,                                                                            \
     .resolved = "auto",                                                                           \
     .help = "Where the far end is: a second process on this host, or another host; auto: the "    \
             "other host where the job has one."},                                                 \
    {.name = "ip_version",                                                                         \
     .type = PARAM_CHOICE,                                                                         \
     .initial = "auto",                                                                            \
     .choices = ip_versions,                                                                       \
     .roles = ROLE_TAG,                                                                            \
     .title = "IP version",                                                                        \
     .resolved = "auto",                                                                           \
     .help = "auto: that of the far host's address, 4 on the loopback."},                          \
    {.name = "send_buffer_bytes",                                                                  \
     .type = PARAM_COUNT,                                                                          \
     .unit = "byte",                                                                               \
     .initial = buffer,                                                                            \
     .max = 1 << 30,                                                                               \
     .help = "Socket buffer to ask for; not set or 0: the kernel's own."},                         \
    {.name = "receive_buffer_bytes",                                                               \
     .type = PARAM_COUNT,                                                                          \
     .unit = "byte",                                                                               \
     .initial = buffer,                                                                            \
     .max = 1 << 30,                                                                               \
     .help = "Socket buffer to ask for; not set or 0: the kernel's own."},                         \
    {.name = "far_cpus",                                                                           \
     .type = PARAM_CPU_LIST,                                                                       \
     .max = CPULIST_MAX - 1,                                                                        \
     .help = "CPUs of the far end's threads, in turn. Default: on this host those that the near "  \
             "end leaves, where there are any; otherwise all."},                                   \
    {.name = "session_fd",                                                                         \
     .type = PARAM_COUNT,                                                                          \
     .scope = SCOPE_HOST,                                                                          \
     .min = 3,                                                                                     \
     .max = 1048576,                                                                               \
     .help = "File descriptor of a file with the session that another host has opened: its "       \
             "address=, port= and token=."}

#define PARAM_CONGESTION                                                                           \
    {.name = "congestion",                                                                         \
     .type = PARAM_CHOICE,                                                                         \
     .initial = "system",                                                                          \
     .choices = net_congestions,                                                                   \
     .roles = ROLE_TAG,                                                                            \
     .title = "congestion control",                                                                \
     .resolved = "system",                                                                         \
     .help = "Congestion control of TCP; system: the host's default."}

#define PARAM_TOTAL                                                                                \
    {.name = "total_bytes",                                                                        \
     .type = PARAM_COUNT,                                                                          \
     .unit = "byte",                                                                               \
     .min = 1,                                                                                     \
     .max = 1e18,                                                                                  \
     .ends_trial = true,                                                                           \
     .help = "Total to send, split over all streams; with duration_s the trial ends at whichever " \
             "is reached first, and without it when all is sent."}

#define PARAMS_STREAM                                                                              \
    {.name = "direction",                                                                          \
     .type = PARAM_CHOICE,                                                                         \
     .initial = "send",                                                                            \
     .choices = directions,                                                                        \
     .roles = ROLE_TAG,                                                                            \
     .help = "As seen from the near end."},                                                        \
    {.name = "rate",                                                                               \
     .type = PARAM_NUMBER,                                                                         \
     .unit = "byte/s",                                                                             \
     .min = 1,                                                                                     \
     .max = 1e12,                                                                                  \
     .roles = ROLE_AXIS,                                                                           \
     .help = "Payload to send, all streams of a direction together. Not set: as fast as "          \
             "possible."},                                                                         \
    PARAM_TOTAL

#define PARAMS_ROUND_TRIP                                                                          \
    {.name = "wait",                                                                               \
     .type = PARAM_CHOICE,                                                                         \
     .initial = "block",                                                                           \
     .choices = waits,                                                                             \
     .roles = ROLE_TAG,                                                                            \
     .title = "way of waiting",                                                                    \
     .help = "How both ends wait for what comes: block: the kernel wakes them; spin: they ask "    \
             "again and again, on a CPU each."},                                                   \
    {.name = "load_streams",                                                                       \
     .type = PARAM_COUNT,                                                                          \
     .initial = "0",                                                                               \
     .min = 0,                                                                                     \
     .max = LOAD_STREAMS_MOST,                                                                     \
     .roles = ROLE_AXIS,                                                                           \
     .noun = "load stream",                                                                        \
     .help = "Bulk TCP streams between the same ends meanwhile: latency under load."},             \
    {.name = "load_direction",                                                                     \
     .type = PARAM_CHOICE,                                                                         \
     .initial = "send",                                                                            \
     .choices = directions,                                                                        \
     .help = "Of the load streams; both: so many in each direction."}
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
     .help = "copy: send(); sendfile: from pages that are in the kernel already; zerocopy: "
             "MSG_ZEROCOPY; auto: the fastest, sendfile."},
    {.name = "receive_path",
     .type = PARAM_CHOICE,
     .initial = "auto",
     .choices = receive_paths,
     .roles = ROLE_TAG,
     .resolved = "auto",
     .resolved_once = true,
     .help = "copy: recv(); truncate: the kernel throws away what it would copy (MSG_TRUNC), as no "
             "program does that wants its bytes; auto: copy."},
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
     .help = "single: a call a datagram; mmsg: sendmmsg and recvmmsg; gso: the kernel divides what "
             "it is given, and joins what comes (GRO); auto: gso where kernel and path have it, "
             "else mmsg."},
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
     .help = "TCP, or UDP with a call a datagram."},
    {.name = "mode",
     .type = PARAM_CHOICE,
     .initial = "send",
     .choices = modes,
     .roles = ROLE_TAG,
     .help = "send: the bytes given to the kernel count, arrived or not; echo: each block goes "
             "there and back and counts once."},
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
             .description =                                                                        \
                 "Payload that arrived, by the receiver's clock, from behind its first "           \
                 "byte to its last; all streams together, both directions added up.",              \
             .combine = COMBINE_SUM,                                                               \
             .work = "byte"},                                                                      \
    .excludes = stream_excludes, .moved = near_moved, SHARED

#define ROUND_TRIP                                                                                 \
    .rate = {.name = "round_trip_s",                                                               \
             .unit = "s",                                                                          \
             .description =                                                                        \
                 "Time from before a request is sent until its answer is there, by the "           \
                 "near end's clock; median.",                                                      \
             .combine = COMBINE_MEDIAN,                                                            \
             .time = true},                                                                        \
    .excludes = round_trip_excludes, SHARED

const struct workload tcp_stream_workload = {
    .name = "tcp_stream",
    .description = "Sends bytes over TCP as fast as they go, or at a rate.",
    .params = tcp_stream_params,
    .metrics = tcp_stream_metrics,
    .own = &tcp_stream,
    BULK,
};

const struct workload udp_stream_workload = {
    .name = "udp_stream",
    .description = "Sends numbered datagrams over UDP and counts which of them arrive.",
    .params = udp_stream_params,
    .metrics = udp_stream_metrics,
    .own = &udp_stream,
    BULK,
};

const struct workload tcp_rr_workload = {
    .name = "tcp_rr",
    .description = "Request and answer in turn over a TCP connection; every round trip is timed.",
    .params = tcp_rr_params,
    .metrics = tcp_rr_metrics,
    .own = &tcp_rr,
    ROUND_TRIP,
};

const struct workload udp_rr_workload = {
    .name = "udp_rr",
    .description = "Request and answer in turn over UDP; what is not answered in a second is lost.",
    .params = udp_rr_params,
    .metrics = udp_rr_metrics,
    .own = &udp_rr,
    ROUND_TRIP,
};

const struct workload tcp_crr_workload = {
    .name = "tcp_crr",
    .description = "A TCP connection for each request and answer: connect, ask, answer, close.",
    .rate = {.name = "operations_per_second",
             .unit = "operation/s",
             .description = "Connections opened, used once and closed a second, all streams "
                            "together.",
             .combine = COMBINE_SUM},
    .excludes = round_trip_excludes,
    .params = tcp_rr_params,
    .metrics = tcp_crr_metrics,
    .own = &tcp_crr,
    SHARED,
};

const struct workload naive_stream_workload = {
    .name = "naive_stream",
    .description =
        "Sends blocks, or has them come back, and divides what the sender counts by its time of "
        "day: what waits in buffers, or was lost, is in the figure.",
    .naive = true,
    .rate = {.name = "bytes_per_second",
             .unit = "byte/s",
             .description =
                 "Payload given to the kernel, whether or not it arrived, or that came back (mode "
                 "echo, each block counted once), over the time of day around it at the near end.",
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
