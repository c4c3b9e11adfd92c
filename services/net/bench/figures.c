#include "figures.h"

#include "sums.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const double GB = 1e9;
static const double MILLION = 1e6;
static const double MOST_OF = 0.95;      /* of the requested rate */
static const double MUCH_DROPPED = 0.01; /* of the datagrams, by a socket that was full */
static const double MUCH_COPIED = 0.5;   /* of the calls that were to send without a copy */

static const char NO_WAY[] = "no stream of this test runs in this direction";
static const char NO_UNIT[] = "nothing arrived";
static const char NOT_REPORTED[] = "the kernel does not report it for this socket";
static const char NO_HEADER[] =
    "blocks are shorter than the 16-byte header, so only totals are known";
static const char NO_LOAD[] = "load_streams is 0";

/* ---- the table ------------------------------------------------------------------------------ */

/* clang-format off */
#define OF_ALL                                                                                     \
    {"turned_away", "1", LOWER_IS_BETTER,                                                          \
     "Connections and datagrams from other senders that the far end rejected."},                   \
    {"path_mtu_bytes", "byte", HIGHER_IS_BETTER,                                                   \
     "Largest packet that the path allows (path MTU), as the sending sockets report it; the "      \
     "smallest of them."},                                                                         \
    {"send_buffer_in_force_bytes", "byte", HIGHER_IS_BETTER,                                       \
     "Buffer size that the kernel set for a sending socket, its own overhead included (twice the " \
     "requested size); the smallest of them. TCP's buffer grows by itself unless it was set."},    \
    {"receive_buffer_in_force_bytes", "byte", HIGHER_IS_BETTER,                                    \
     "The same for the receiving sockets."}

#define OF_STREAMS                                                                                 \
    OF_ALL,                                                                                        \
    {"offered_bytes_per_second", "byte/s", HIGHER_IS_BETTER,                                       \
     "Payload per second that the senders passed to the kernel, on their own clocks."},            \
    {"sender_bytes", "byte", HIGHER_IS_BETTER,                                                     \
     "Payload that the senders sent in the timed region."},                                        \
    {"receiver_bytes", "byte", HIGHER_IS_BETTER,                                                   \
     "Part of sender_bytes that arrived at the receivers."},                                       \
    {"send_bytes_per_second", "byte/s", HIGHER_IS_BETTER,                                          \
     "bytes_per_second of the streams on which the near end sends."},                              \
    {"receive_bytes_per_second", "byte/s", HIGHER_IS_BETTER,                                       \
     "bytes_per_second of the streams on which the near end receives."},                           \
    {"cpu_seconds_per_gigabyte", "s", LOWER_IS_BETTER,                                             \
     "CPU time (user and system) of the near end's threads per 10^9 bytes received."},             \
    {"far_cpu_seconds_per_gigabyte", "s", LOWER_IS_BETTER, "The same for the far end's threads."}

#define OF_TCP                                                                                     \
    {"retransmits", "1", LOWER_IS_BETTER, "TCP segments retransmitted in the timed region."},      \
    {"tcp_rtt_s", "s", LOWER_IS_BETTER,                                                            \
     "Smoothed round-trip time that TCP reports at the end (TCP_INFO), time in queues included; "  \
     "mean of the sending sockets."},                                                              \
    {"mss_bytes", "byte", HIGHER_IS_BETTER,                                                        \
     "Payload of a full TCP segment; the smallest of the sending sockets."}
/* clang-format on */

const struct metric tcp_stream_metrics[] = {
    OF_STREAMS,
    OF_TCP,
    {"congestion_window_bytes", "byte", HIGHER_IS_BETTER,
     "Congestion windows of all sending sockets at the end, added up."},
    {"zerocopy_copied_ratio", "1", LOWER_IS_BETTER,
     "Share of the send_path zerocopy calls whose data the kernel copied anyway."},
    {.name = NULL},
};

const struct metric udp_stream_metrics[] = {
    OF_STREAMS,
    {"sent_datagrams", "1", HIGHER_IS_BETTER, "Datagrams sent in the timed region."},
    {"received_datagrams", "1", HIGHER_IS_BETTER,
     "Datagrams sent in the timed region that arrived, each counted once."},
    {"lost_datagrams", "1", LOWER_IS_BETTER,
     "Datagrams sent in the timed region that did not arrive."},
    {"lost_ratio", "1", LOWER_IS_BETTER, "Share of the sent datagrams that did not arrive."},
    {"send_lost_ratio", "1", LOWER_IS_BETTER,
     "lost_ratio of the datagrams that the near end sends."},
    {"receive_lost_ratio", "1", LOWER_IS_BETTER,
     "lost_ratio of the datagrams that the near end receives."},
    {"duplicated_datagrams", "1", LOWER_IS_BETTER,
     "Repeated arrivals of datagrams that had already arrived."},
    {"reordered_datagrams", "1", LOWER_IS_BETTER,
     "Datagrams that arrived after one that was sent later."},
    {"receiver_dropped_datagrams", "1", LOWER_IS_BETTER,
     "Lost datagrams that the kernel dropped because the receiving socket had no room "
     "(SO_MEMINFO). With GRO it counts several joined datagrams as one."},
    {"refused_datagrams", "1", LOWER_IS_BETTER,
     "Sends that failed because nothing listened for an earlier datagram (ECONNREFUSED). With "
     "several datagrams per call (udp_path mmsg) this is a lower bound."},
    {"gso_segments", "1", HIGHER_IS_BETTER,
     "Largest number of datagrams that a sender passed to the kernel in one piece; 0: no "
     "segmentation offload."},
    {"gro_active", "1", HIGHER_IS_BETTER,
     "1 if the kernel joined datagrams (GRO) for every receiver, otherwise 0."},
    {.name = NULL},
};

/* clang-format off */
#define OF_ROUND_TRIPS                                                                             \
    OF_ALL,                                                                                        \
    {"lost_operations", "1", LOWER_IS_BETTER,                                                      \
     "Round trips that got no answer within one second; the latency metrics leave them out."},     \
    {"far_cpu_seconds_per_million_operations", "s", LOWER_IS_BETTER,                               \
     "CPU time (user and system) of the far end's answering threads per million operations."},     \
    {"load_bytes_per_second", "byte/s", HIGHER_IS_BETTER,                                          \
     "Payload of the load streams received per second, on the receivers' clocks."},                \
    {"load_send_bytes_per_second", "byte/s", HIGHER_IS_BETTER,                                     \
     "Part of load_bytes_per_second that the near end sent."},                                     \
    {"load_receive_bytes_per_second", "byte/s", HIGHER_IS_BETTER,                                  \
     "Part of load_bytes_per_second that the near end received."}
/* clang-format on */

const struct metric tcp_rr_metrics[] = {OF_ROUND_TRIPS, OF_TCP, {.name = NULL}};
const struct metric udp_rr_metrics[] = {OF_ROUND_TRIPS, {.name = NULL}};
const struct metric tcp_crr_metrics[] = {OF_ROUND_TRIPS, {.name = NULL}};

const struct metric naive_stream_metrics[] = {
    OF_ALL,
    {"sender_bytes", "byte", HIGHER_IS_BETTER,
     "Payload that the near end passed to the kernel in the timed region."},
    {"receiver_bytes", "byte", HIGHER_IS_BETTER,
     "Part of sender_bytes that arrived at the far end; with mode echo, that came back to the near "
     "end."},
    {"arrived_bytes_per_second", "byte/s", HIGHER_IS_BETTER,
     "With mode send: payload received per second, on the receiver's clock from the first arrival "
     "to the last: what the figure should have been."},
    {"lost_datagrams", "1", LOWER_IS_BETTER,
     "Datagrams that did not arrive; with mode echo, blocks that were not answered within one "
     "second."},
    {"lost_ratio", "1", LOWER_IS_BETTER, "Their share of the datagrams sent."},
    {.name = NULL},
};

/* ---- reporting ------------------------------------------------------------------------------ */

void figures_report(struct run *run, const char *name, double value, const char *why_not)
{
    if (isfinite(value))
        run_metric(run, name, value);
    else
        run_no_metric(run, name, why_not);
}

static double known(double value)
{
    return value > 0 ? value : NAN;
}

void figures_report_all(struct net_job *job, const struct sums *all)
{
    struct run *run = job->run;
    figures_report(run, "turned_away", (double)session_report(job->session)->strangers,
                   NOT_REPORTED);
    figures_report(run, "path_mtu_bytes", known(all->sent.path_mtu_bytes), NOT_REPORTED);
    figures_report(run, "send_buffer_in_force_bytes", known(all->sent.send_buffer_bytes),
                   NOT_REPORTED);
    figures_report(run, "receive_buffer_in_force_bytes", known(all->received.receive_buffer_bytes),
                   NOT_REPORTED);
}

static void report_tcp(struct net_job *job, const struct sums *all)
{
    figures_report(job->run, "retransmits", (double)all->sent.retransmits, NOT_REPORTED);
    figures_report(job->run, "tcp_rtt_s", known(all->sent.tcp_rtt_s / all->sockets), NOT_REPORTED);
    figures_report(job->run, "mss_bytes", known(all->sent.mss_bytes), NOT_REPORTED);
}

static void report_tcp_stream(struct net_job *job, const struct sums *all)
{
    const struct stream_counts *sent = &all->sent;
    report_tcp(job, all);
    figures_report(job->run, "congestion_window_bytes", known(all->congestion_windows_bytes),
                   NOT_REPORTED);
    if (job->test.send_path == SEND_ZEROCOPY)
        figures_report(job->run, "zerocopy_copied_ratio",
                       (double)sent->zerocopy_copied / (double)sent->zerocopy_sent,
                       "no call was made");
    else
        run_no_metric(job->run, "zerocopy_copied_ratio", "send_path is not zerocopy");
}

static void report_udp_stream(struct net_job *job, const struct sums *all, const struct sums *send,
                              const struct sums *receive)
{
    struct run *run = job->run;
    bool numbered = job->test.block_bytes >= STREAM_HEADER_BYTES;
    double sent = (double)all->sent.datagrams, received = (double)all->received.datagrams;
    figures_report(run, "sent_datagrams", sent, NOT_REPORTED);
    figures_report(run, "received_datagrams", received, NOT_REPORTED);
    figures_report(run, "lost_datagrams", lost_datagrams(all), NOT_REPORTED);
    figures_report(run, "lost_ratio", lost_ratio(all), "no datagram was sent");
    figures_report(run, "send_lost_ratio", lost_ratio(send), NO_WAY);
    figures_report(run, "receive_lost_ratio", lost_ratio(receive), NO_WAY);
    figures_report(run, "duplicated_datagrams", numbered ? (double)all->received.duplicated : NAN,
                   NO_HEADER);
    figures_report(run, "reordered_datagrams", numbered ? (double)all->received.reordered : NAN,
                   NO_HEADER);
    figures_report(run, "receiver_dropped_datagrams", (double)all->received.dropped_by_receiver,
                   NOT_REPORTED);
    figures_report(run, "refused_datagrams", (double)all->sent.refused, NOT_REPORTED);
    figures_report(run, "gso_segments", all->sent.gso_segments, NOT_REPORTED);
    figures_report(run, "gro_active", all->received.gro, NOT_REPORTED);
}

static void report_streams(struct net_job *job, const struct sums *all, double offered)
{
    struct run *run = job->run;
    struct sums send = sum_up(job, ROLE_SEND, false), receive = sum_up(job, ROLE_RECEIVE, false);
    double gigabytes = (double)all->received.bytes / GB;
    run_bulk_rate(run, sum_of(&send, arrived_rate(&send), &receive, arrived_rate(&receive)));
    figures_report(run, "offered_bytes_per_second", offered, "nothing was sent");
    figures_report(run, "sender_bytes", (double)all->sent.bytes, NOT_REPORTED);
    figures_report(run, "receiver_bytes", (double)all->received.bytes, NOT_REPORTED);
    figures_report(run, "send_bytes_per_second", send.sockets ? arrived_rate(&send) : NAN,
                   send.sockets ? NO_UNIT : NO_WAY);
    figures_report(run, "receive_bytes_per_second", receive.sockets ? arrived_rate(&receive) : NAN,
                   receive.sockets ? NO_UNIT : NO_WAY);
    figures_report(run, "cpu_seconds_per_gigabyte", cpu_s(job, false) / gigabytes, NO_UNIT);
    figures_report(run, "far_cpu_seconds_per_gigabyte", cpu_s(job, true) / gigabytes, NO_UNIT);
    if (job->test.protocol == PROTOCOL_TCP)
        report_tcp_stream(job, all);
    else
        report_udp_stream(job, all, &send, &receive);
}

/* The load's receivers are at the near end (`near`) or at the far one. */
static double load_rates(const struct net_job *job, enum role near)
{
    double sum = 0;
    unsigned found = 0;
    for (unsigned i = test_own_sockets(&job->test); i < test_sockets(&job->test); i++)
        if (test_place(&job->test, i).near == near) {
            sum += load_rate(net_job_receiver(job, i));
            found++;
        }
    return found ? sum : NAN;
}

static void report_load(struct net_job *job)
{
    double send = load_rates(job, ROLE_SEND), receive = load_rates(job, ROLE_RECEIVE);
    bool both = job->test.load_direction == DIRECTION_BOTH;
    bool sends = both || job->test.load_direction == DIRECTION_SEND;
    bool receives = both || !sends;
    const char *no_way = job->test.load_streams ? NO_WAY : NO_LOAD;
    const char *why = job->test.load_streams ? NO_UNIT : NO_LOAD;
    double all = (sends ? send : 0) + (receives ? receive : 0);
    figures_report(job->run, "load_bytes_per_second", job->test.load_streams ? all : NAN, why);
    figures_report(job->run, "load_send_bytes_per_second", send, sends ? why : no_way);
    figures_report(job->run, "load_receive_bytes_per_second", receive, receives ? why : no_way);
}

static void report_round_trips(struct net_job *job, const struct sums *all)
{
    double millions = (double)(all->sent.datagrams - all->sent.lost_operations) / MILLION;
    figures_report(job->run, "lost_operations", (double)all->sent.lost_operations, NOT_REPORTED);
    figures_report(job->run, "far_cpu_seconds_per_million_operations", cpu_s(job, true) / millions,
                   "no operation was done");
    report_load(job);
    if (job->test.protocol == PROTOCOL_TCP && job->test.kind == KIND_RR)
        report_tcp(job, all);
}

/* ---- warnings ------------------------------------------------------------------------------- */

static void warn_of_buffer(struct net_job *job, const char *param, uint32_t requested, uint32_t got,
                           const char *sysctl)
{
    if (requested > 0 && got > 0 && got / 2 < requested)
        run_warning(job->run, "buffer_capped",
                    "%s %" PRIu32 " was requested and the kernel gave %" PRIu32
                    ": raise %s on the host of that socket, or give the program CAP_NET_ADMIN",
                    param, requested, got / 2, sysctl);
}

static void warn_of_udp(struct net_job *job, const struct sums *all)
{
    double dropped = (double)all->received.dropped_by_receiver;
    uint32_t mtu = all->sent.path_mtu_bytes;
    if (job->test.block_bytes < STREAM_HEADER_BYTES)
        run_warning(job->run, "totals_only",
                    "block_bytes %" PRIu32 ": less than the %d bytes of a header that numbers a "
                    "datagram, so loss is computed from totals, and a duplicate hides a loss",
                    job->test.block_bytes, STREAM_HEADER_BYTES);
    if (all->surplus > 0)
        run_warning(job->run, "more_received",
                    "%" PRIu64 " datagrams more were received than sent (%" PRIu64
                    " sent): something on the path repeats them, or they are late ones of the "
                    "warm-up; use --block-bytes %d or more, which are distinguished",
                    all->surplus, all->sent.datagrams, STREAM_HEADER_BYTES);
    if (mtu > 0 && job->test.block_bytes + endpoint_udp_header_bytes(&job->far) > mtu)
        run_warning(job->run, "fragmented",
                    "block_bytes %" PRIu32 " is more than a packet of %" PRIu32
                    " bytes: a datagram goes in pieces, and is lost with any of them",
                    job->test.block_bytes, mtu);
    if (dropped > MUCH_DROPPED * (double)all->sent.datagrams)
        run_warning(
            job->run, "receiver_overloaded",
            "the receiving sockets were full and dropped %.0f times: the receiver is too slow for "
            "this rate, not the path; use a --rate, or a larger --receive-buffer-bytes for bursts",
            dropped);
}

static void warn_of_rate(struct net_job *job, double offered)
{
    if (job->test.rate <= 0)
        return;
    double requested = job->test.rate * test_own_sockets(&job->test);
    if (offered < MOST_OF * requested)
        run_warning(job->run, "rate_not_reached",
                    "%.4g byte/s were requested and %.4g sent: the senders or the path do not give "
                    "more; the figure is of that rate",
                    requested, offered);
}

void figures_warn_of_total(struct net_job *job, uint64_t sent_bytes)
{
    if (sent_bytes < job->test.work_bytes)
        run_warning(job->run, "sampled",
                    "%" PRIu64 " of %" PRIu64
                    " bytes in the time: the figures are those of a sample",
                    sent_bytes, job->test.work_bytes);
}

void figures_warn_of_strangers(struct net_job *job)
{
    uint64_t strangers = session_report(job->session)->strangers;
    if (strangers > 0)
        run_warning(
            job->run, "strangers",
            "the far end rejected %" PRIu64
            " connections or datagrams of other senders: another program sends to its ports",
            strangers);
}

static void warn(struct net_job *job, const struct sums *all, double offered)
{
    const struct stream_counts *sent = &all->sent;
    if (job->test.kind == KIND_STREAM) {
        figures_warn_of_total(job, sent->bytes);
        warn_of_rate(job, offered);
        warn_of_buffer(job, "send_buffer_bytes", job->test.send_buffer_bytes,
                       sent->send_buffer_bytes, "net.core.wmem_max");
        warn_of_buffer(job, "receive_buffer_bytes", job->test.receive_buffer_bytes,
                       all->received.receive_buffer_bytes, "net.core.rmem_max");
        if (job->test.protocol == PROTOCOL_UDP)
            warn_of_udp(job, all);
    }
    if ((double)sent->zerocopy_copied > MUCH_COPIED * (double)sent->zerocopy_sent)
        run_warning(job->run, "zerocopy_copied",
                    "the kernel copied %" PRIu64 " of %" PRIu64
                    " sends of send_path zerocopy anyway, as it does on a loopback: the figure is "
                    "not one of sending without copies",
                    sent->zerocopy_copied, sent->zerocopy_sent);
    figures_warn_of_strangers(job);
}

void figures_finish(struct thread *thread)
{
    struct net_job *job = net_job_of(thread);
    struct sums all = sum_up(job, ROLE_SEND, true);
    struct sums send = sum_up(job, ROLE_SEND, false), receive = sum_up(job, ROLE_RECEIVE, false);
    double offered = sum_of(&send, offered_rate(&send), &receive, offered_rate(&receive));
    figures_report_all(job, &all);
    if (job->test.kind == KIND_STREAM)
        report_streams(job, &all, offered);
    else
        report_round_trips(job, &all);
    warn(job, &all, offered);
}
