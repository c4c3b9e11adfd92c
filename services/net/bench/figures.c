#include "figures.h"

#include "monotonic.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const double GB = 1e9;
static const double MILLION = 1e6;
static const double MOST_OF = 0.95;      /* of the rate that was asked for */
static const double MUCH_DROPPED = 0.01; /* of the datagrams, by a socket that was full */
static const double MUCH_COPIED = 0.5;   /* of the calls that were to send without a copy */

static const char NO_WAY[] = "the test has no stream in this direction";
static const char NO_UNIT[] = "nothing arrived";
static const char UNTOLD[] = "the kernel does not tell it of this socket";
static const char NO_HEADER[] = "blocks shorter than the 16 bytes of a header: totals only";
static const char NO_LOAD[] = "no load_streams were asked for";

/* ---- the table ------------------------------------------------------------------------------ */

/* clang-format off */
#define OF_ALL                                                                                     \
    {"turned_away", "1", LOWER_IS_BETTER,                                                          \
     "Connections and datagrams of strangers that the far end turned away."},                      \
    {"path_mtu_bytes", "byte", HIGHER_IS_BETTER,                                                   \
     "The largest packet on the path, as the sending sockets know it; the smallest of them."},     \
    {"send_buffer_in_force_bytes", "byte", HIGHER_IS_BETTER,                                       \
     "What the kernel really gave to a sending socket, its own overhead included: twice what was " \
     "asked for; the smallest of them. TCP's grows by itself unless it was set."},                 \
    {"receive_buffer_in_force_bytes", "byte", HIGHER_IS_BETTER, "The same of receiving sockets."}

#define OF_STREAMS                                                                                 \
    OF_ALL,                                                                                        \
    {"offered_bytes_per_second", "byte/s", HIGHER_IS_BETTER,                                       \
     "Payload that the senders gave to the kernel, by their own clocks."},                         \
    {"sender_bytes", "byte", HIGHER_IS_BETTER, "Payload sent in the timed region."},               \
    {"receiver_bytes", "byte", HIGHER_IS_BETTER, "Payload that arrived of it."},                   \
    {"send_bytes_per_second", "byte/s", HIGHER_IS_BETTER,                                          \
     "The figure of the streams on which the near end sends."},                                    \
    {"receive_bytes_per_second", "byte/s", HIGHER_IS_BETTER,                                       \
     "The figure of the streams on which the near end receives."},                                 \
    {"cpu_seconds_per_gigabyte", "s", LOWER_IS_BETTER,                                             \
     "CPU time, user and system, of the near end's threads for 10^9 bytes that arrived."},         \
    {"far_cpu_seconds_per_gigabyte", "s", LOWER_IS_BETTER, "The same of the far end's threads."}

#define OF_TCP                                                                                     \
    {"retransmits", "1", LOWER_IS_BETTER, "TCP segments sent again in the timed region."},         \
    {"tcp_rtt_s", "s", LOWER_IS_BETTER,                                                            \
     "Smoothed round-trip time that TCP knows at the end (TCP_INFO), queues included; mean of "    \
     "the sending sockets."},                                                                      \
    {"mss_bytes", "byte", HIGHER_IS_BETTER, "Payload of a full TCP segment; the smallest."}
/* clang-format on */

const struct metric tcp_stream_metrics[] = {
    OF_STREAMS,
    OF_TCP,
    {"congestion_window_bytes", "byte", HIGHER_IS_BETTER,
     "Congestion windows of the senders at the end, together."},
    {"zerocopy_copied_ratio", "1", LOWER_IS_BETTER,
     "Share of the calls of send_path zerocopy that the kernel copied anyway."},
    {.name = NULL},
};

const struct metric udp_stream_metrics[] = {
    OF_STREAMS,
    {"sent_datagrams", "1", HIGHER_IS_BETTER, "Datagrams sent in the timed region."},
    {"received_datagrams", "1", HIGHER_IS_BETTER, "Those of them that arrived, each counted once."},
    {"lost_datagrams", "1", LOWER_IS_BETTER, "Those that did not."},
    {"lost_ratio", "1", LOWER_IS_BETTER, "Share of the datagrams sent that were lost."},
    {"send_lost_ratio", "1", LOWER_IS_BETTER, "The same where the near end sends."},
    {"receive_lost_ratio", "1", LOWER_IS_BETTER, "The same where the near end receives."},
    {"duplicated_datagrams", "1", LOWER_IS_BETTER, "Datagrams that arrived again."},
    {"reordered_datagrams", "1", LOWER_IS_BETTER,
     "Datagrams that arrived behind one that was sent later."},
    {"receiver_dropped_datagrams", "1", LOWER_IS_BETTER,
     "Of the lost ones, those that the receiving sockets had no room for (SO_MEMINFO); with GRO "
     "the kernel counts several that it had joined as one."},
    {"refused_datagrams", "1", LOWER_IS_BETTER,
     "Sends that told of an earlier datagram that nobody listened for (ECONNREFUSED); of many in "
     "a call (udp_path mmsg) at least so many."},
    {"gso_segments", "1", HIGHER_IS_BETTER,
     "The most datagrams that a sender gave to the kernel in one piece; 0: no segmentation "
     "offload."},
    {"gro_active", "1", HIGHER_IS_BETTER,
     "1 where the kernel joined datagrams for every receiver, 0 where not."},
    {.name = NULL},
};

/* clang-format off */
#define OF_ROUND_TRIPS                                                                             \
    OF_ALL,                                                                                        \
    {"lost_operations", "1", LOWER_IS_BETTER,                                                      \
     "Round trips that were begun and not answered within a second; in no latency."},              \
    {"far_cpu_seconds_per_million_operations", "s", LOWER_IS_BETTER,                               \
     "CPU time, user and system, of the far end's answering threads for a million operations."},   \
    {"load_bytes_per_second", "byte/s", HIGHER_IS_BETTER,                                          \
     "Payload of the load streams that arrived, by its receivers' clocks."},                       \
    {"load_send_bytes_per_second", "byte/s", HIGHER_IS_BETTER,                                     \
     "Of that, what the near end sent."},                                                          \
    {"load_receive_bytes_per_second", "byte/s", HIGHER_IS_BETTER,                                  \
     "Of that, what the near end received."}
/* clang-format on */

const struct metric tcp_rr_metrics[] = {OF_ROUND_TRIPS, OF_TCP, {.name = NULL}};
const struct metric udp_rr_metrics[] = {OF_ROUND_TRIPS, {.name = NULL}};
const struct metric tcp_crr_metrics[] = {OF_ROUND_TRIPS, {.name = NULL}};

/* ---- sums ----------------------------------------------------------------------------------- */

double receiver_rate(const struct stream_counts *receiver)
{
    double took_s = receiver->last_s - receiver->first_s;
    double bytes = (double)(receiver->bytes - receiver->first_bytes);
    return bytes > 0 && took_s > 0 ? bytes / took_s : NAN;
}

/* One direction of the test, or both. */
struct sums {
    unsigned sockets;
    struct stream_counts sent, received; /* added up; times, sizes and flags apart from that */
    double sender_begin_s, sender_end_s;
    double receiver_begin_s, receiver_end_s;
    uint64_t first_bytes;
    double congestion_windows_bytes;
    uint64_t surplus; /* datagrams that a stream received more than were sent on it */
};

static uint32_t least(uint32_t so_far, uint32_t more)
{
    return so_far == 0 || (more > 0 && more < so_far) ? more : so_far;
}

static void add_sender(struct sums *sums, const struct stream_counts *one)
{
    struct stream_counts *all = &sums->sent;
    all->bytes += one->bytes;
    all->datagrams += one->datagrams;
    all->refused += one->refused;
    all->lost_operations += one->lost_operations;
    all->retransmits += one->retransmits;
    sums->congestion_windows_bytes += one->congestion_window_bytes;
    all->tcp_rtt_s += one->tcp_rtt_s;
    all->zerocopy_sent += one->zerocopy_sent;
    all->zerocopy_copied += one->zerocopy_copied;
    all->path_mtu_bytes = least(all->path_mtu_bytes, one->path_mtu_bytes);
    all->mss_bytes = least(all->mss_bytes, one->mss_bytes);
    all->send_buffer_bytes = least(all->send_buffer_bytes, one->send_buffer_bytes);
    all->gso_segments =
        sums->sockets ? least(all->gso_segments, one->gso_segments) : one->gso_segments;
    sums->sender_begin_s = fmin(sums->sender_begin_s, one->first_s);
    sums->sender_end_s = fmax(sums->sender_end_s, one->last_s);
}

static void add_receiver(struct sums *sums, const struct stream_counts *one)
{
    struct stream_counts *all = &sums->received;
    all->bytes += one->bytes;
    all->datagrams += one->datagrams;
    all->duplicated += one->duplicated;
    all->reordered += one->reordered;
    all->dropped_by_receiver += one->dropped_by_receiver;
    all->receive_buffer_bytes = least(all->receive_buffer_bytes, one->receive_buffer_bytes);
    all->gro = one->gro && (all->gro || sums->sockets == 0);
    if (one->bytes == 0)
        return;
    sums->first_bytes += one->first_bytes;
    sums->receiver_begin_s = fmin(sums->receiver_begin_s, one->first_s);
    sums->receiver_end_s = fmax(sums->receiver_end_s, one->last_s);
}

/* Of the test's own sockets on which the near end has this role, or of all (`any`). */
static struct sums sum_up(const struct net_job *job, enum role near, bool any)
{
    struct sums sums = {.sender_begin_s = INFINITY,
                        .sender_end_s = -INFINITY,
                        .receiver_begin_s = INFINITY,
                        .receiver_end_s = -INFINITY};
    for (unsigned i = 0; i < test_own_sockets(&job->test); i++) {
        if (!any && test_place(&job->test, i).near != near)
            continue;
        const struct stream_counts *sent = net_job_sender(job, i), *got = net_job_receiver(job, i);
        add_sender(&sums, sent);
        add_receiver(&sums, got);
        sums.surplus += got->datagrams > sent->datagrams ? got->datagrams - sent->datagrams : 0;
        sums.sockets++;
    }
    return sums;
}

/* From the first byte at any receiver to the last one, by the clock of that end. */
static double arrived_rate(const struct sums *sums)
{
    double took_s = sums->receiver_end_s - sums->receiver_begin_s;
    double bytes = (double)(sums->received.bytes - sums->first_bytes);
    return bytes > 0 && took_s > 0 ? bytes / took_s : NAN;
}

static double offered_rate(const struct sums *sums)
{
    double took_s = sums->sender_end_s - sums->sender_begin_s;
    return took_s > 0 ? (double)sums->sent.bytes / took_s : NAN;
}

/* Each of two directions has clocks of its own. */
static double sum_of(const struct sums *one, double a, const struct sums *other, double b)
{
    return (one->sockets ? a : 0) + (other->sockets ? b : 0);
}

/* A surplus on one stream makes up for no loss on another. */
static double lost_datagrams(const struct sums *sums)
{
    uint64_t there = sums->received.datagrams - sums->surplus;
    return (double)(sums->sent.datagrams - there);
}

static double lost_ratio(const struct sums *sums)
{
    double sent = (double)sums->sent.datagrams;
    return sent > 0 ? lost_datagrams(sums) / sent : NAN;
}

/* CPU time of the roles of the test itself at either end. */
static double cpu_s(const struct net_job *job, bool far)
{
    double sum_s = 0;
    for (unsigned i = 0; i < test_own_sockets(&job->test); i++) {
        bool near_receives = test_place(&job->test, i).near == ROLE_RECEIVE;
        sum_s += (near_receives == far ? net_job_sender(job, i) : net_job_receiver(job, i))->cpu_s;
    }
    return sum_s;
}

/* ---- telling -------------------------------------------------------------------------------- */

static void tell(struct run *run, const char *name, double value, const char *why_not)
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

static void tell_all(struct net_job *job, const struct sums *all)
{
    struct run *run = job->run;
    tell(run, "turned_away", (double)session_report(job->session)->strangers, UNTOLD);
    tell(run, "path_mtu_bytes", known(all->sent.path_mtu_bytes), UNTOLD);
    tell(run, "send_buffer_in_force_bytes", known(all->sent.send_buffer_bytes), UNTOLD);
    tell(run, "receive_buffer_in_force_bytes", known(all->received.receive_buffer_bytes), UNTOLD);
}

static void tell_tcp(struct net_job *job, const struct sums *all)
{
    tell(job->run, "retransmits", (double)all->sent.retransmits, UNTOLD);
    tell(job->run, "tcp_rtt_s", known(all->sent.tcp_rtt_s / all->sockets), UNTOLD);
    tell(job->run, "mss_bytes", known(all->sent.mss_bytes), UNTOLD);
}

static void tell_tcp_stream(struct net_job *job, const struct sums *all)
{
    const struct stream_counts *sent = &all->sent;
    tell_tcp(job, all);
    tell(job->run, "congestion_window_bytes", known(all->congestion_windows_bytes), UNTOLD);
    if (job->test.send_path == SEND_ZEROCOPY)
        tell(job->run, "zerocopy_copied_ratio",
             (double)sent->zerocopy_copied / (double)sent->zerocopy_sent, "no call was made");
    else
        run_no_metric(job->run, "zerocopy_copied_ratio", "send_path is not zerocopy");
}

static void tell_udp_stream(struct net_job *job, const struct sums *all, const struct sums *send,
                            const struct sums *receive)
{
    struct run *run = job->run;
    bool numbered = job->test.block_bytes >= STREAM_HEADER_BYTES;
    double sent = (double)all->sent.datagrams, received = (double)all->received.datagrams;
    tell(run, "sent_datagrams", sent, UNTOLD);
    tell(run, "received_datagrams", received, UNTOLD);
    tell(run, "lost_datagrams", lost_datagrams(all), UNTOLD);
    tell(run, "lost_ratio", lost_ratio(all), "no datagram was sent");
    tell(run, "send_lost_ratio", lost_ratio(send), NO_WAY);
    tell(run, "receive_lost_ratio", lost_ratio(receive), NO_WAY);
    tell(run, "duplicated_datagrams", numbered ? (double)all->received.duplicated : NAN, NO_HEADER);
    tell(run, "reordered_datagrams", numbered ? (double)all->received.reordered : NAN, NO_HEADER);
    tell(run, "receiver_dropped_datagrams", (double)all->received.dropped_by_receiver, UNTOLD);
    tell(run, "refused_datagrams", (double)all->sent.refused, UNTOLD);
    tell(run, "gso_segments", all->sent.gso_segments, UNTOLD);
    tell(run, "gro_active", all->received.gro, UNTOLD);
}

static void tell_streams(struct net_job *job, const struct sums *all, double offered)
{
    struct run *run = job->run;
    struct sums send = sum_up(job, ROLE_SEND, false), receive = sum_up(job, ROLE_RECEIVE, false);
    double gigabytes = (double)all->received.bytes / GB;
    run_bulk_rate(run, sum_of(&send, arrived_rate(&send), &receive, arrived_rate(&receive)));
    tell(run, "offered_bytes_per_second", offered, "nothing was sent");
    tell(run, "sender_bytes", (double)all->sent.bytes, UNTOLD);
    tell(run, "receiver_bytes", (double)all->received.bytes, UNTOLD);
    tell(run, "send_bytes_per_second", send.sockets ? arrived_rate(&send) : NAN,
         send.sockets ? NO_UNIT : NO_WAY);
    tell(run, "receive_bytes_per_second", receive.sockets ? arrived_rate(&receive) : NAN,
         receive.sockets ? NO_UNIT : NO_WAY);
    tell(run, "cpu_seconds_per_gigabyte", cpu_s(job, false) / gigabytes, NO_UNIT);
    tell(run, "far_cpu_seconds_per_gigabyte", cpu_s(job, true) / gigabytes, NO_UNIT);
    if (job->test.protocol == PROTOCOL_TCP)
        tell_tcp_stream(job, all);
    else
        tell_udp_stream(job, all, &send, &receive);
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

static void tell_load(struct net_job *job)
{
    double send = load_rates(job, ROLE_SEND), receive = load_rates(job, ROLE_RECEIVE);
    bool both = job->test.load_direction == DIRECTION_BOTH;
    bool sends = both || job->test.load_direction == DIRECTION_SEND;
    bool receives = both || !sends;
    const char *no_way = job->test.load_streams ? NO_WAY : NO_LOAD;
    const char *why = job->test.load_streams ? NO_UNIT : NO_LOAD;
    double all = (sends ? send : 0) + (receives ? receive : 0);
    tell(job->run, "load_bytes_per_second", job->test.load_streams ? all : NAN, why);
    tell(job->run, "load_send_bytes_per_second", send, sends ? why : no_way);
    tell(job->run, "load_receive_bytes_per_second", receive, receives ? why : no_way);
}

static void tell_round_trips(struct net_job *job, const struct sums *all)
{
    double millions = (double)(all->sent.datagrams - all->sent.lost_operations) / MILLION;
    tell(job->run, "lost_operations", (double)all->sent.lost_operations, UNTOLD);
    tell(job->run, "far_cpu_seconds_per_million_operations", cpu_s(job, true) / millions,
         "no operation was done");
    tell_load(job);
    if (job->test.protocol == PROTOCOL_TCP && job->test.kind == KIND_RR)
        tell_tcp(job, all);
}

/* ---- warnings ------------------------------------------------------------------------------- */

static void warn_of_buffer(struct net_job *job, const char *param, uint32_t asked, uint32_t got,
                           const char *sysctl)
{
    if (asked > 0 && got > 0 && got / 2 < asked)
        run_warning(job->run, "buffer_capped",
                    "%s %" PRIu32 " was asked for and the kernel gave %" PRIu32
                    ": raise %s on the host of that socket, or give the program CAP_NET_ADMIN",
                    param, asked, got / 2, sysctl);
}

static void warn_of_udp(struct net_job *job, const struct sums *all)
{
    double dropped = (double)all->received.dropped_by_receiver;
    uint32_t mtu = all->sent.path_mtu_bytes;
    if (job->test.block_bytes < STREAM_HEADER_BYTES)
        run_warning(job->run, "totals_only",
                    "block_bytes %" PRIu32 ": less than the %d bytes of a header that numbers a "
                    "datagram, so loss is told from totals, and a duplicate hides a loss",
                    job->test.block_bytes, STREAM_HEADER_BYTES);
    if (all->surplus > 0)
        run_warning(job->run, "more_received",
                    "%" PRIu64 " datagrams more were received than sent (%" PRIu64
                    " sent): something on the path repeats them, or they are late ones of the "
                    "warm-up; take --block-bytes %d or more, which are told apart",
                    all->surplus, all->sent.datagrams, STREAM_HEADER_BYTES);
    if (mtu > 0 && job->test.block_bytes + endpoint_udp_header_bytes(&job->far) > mtu)
        run_warning(job->run, "fragmented",
                    "block_bytes %" PRIu32 " is more than a packet of %" PRIu32
                    " bytes: a datagram goes in pieces, and is lost with any of them",
                    job->test.block_bytes, mtu);
    if (dropped > MUCH_DROPPED * (double)all->sent.datagrams)
        run_warning(job->run, "receiver_overloaded",
                    "the receiving sockets were full and dropped %.0f times: the receiver is too "
                    "slow for this rate, not the path; take a --rate, or a larger "
                    "--receive-buffer-bytes for bursts",
                    dropped);
}

static void warn_of_rate(struct net_job *job, double offered)
{
    if (job->test.rate <= 0)
        return;
    double asked = job->test.rate * test_own_sockets(&job->test);
    if (offered < MOST_OF * asked)
        run_warning(job->run, "rate_not_reached",
                    "%.4g byte/s were asked for and %.4g sent: the senders or the path do not give "
                    "more; the figure is of that rate",
                    asked, offered);
}

static void warn_of_total(struct net_job *job, uint64_t sent)
{
    if (sent < job->test.work_bytes)
        run_warning(job->run, "sampled",
                    "%" PRIu64 " of %" PRIu64
                    " bytes in the time: the figures are those of a sample",
                    sent, job->test.work_bytes);
}

static void warn(struct net_job *job, const struct sums *all, double offered)
{
    const struct stream_counts *sent = &all->sent;
    uint64_t strangers = session_report(job->session)->strangers;
    if (job->test.kind == KIND_STREAM) {
        warn_of_total(job, sent->bytes);
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
                    " sends of send_path zerocopy all the same, as it does on a loopback: the "
                    "figure is not one of sending without copies",
                    sent->zerocopy_copied, sent->zerocopy_sent);
    if (strangers > 0)
        run_warning(job->run, "strangers",
                    "the far end turned away %" PRIu64 " connections or datagrams of strangers: "
                    "somebody else sends to its ports",
                    strangers);
}

void figures_finish(struct thread *thread)
{
    struct net_job *job = net_job_of(thread);
    struct sums all = sum_up(job, ROLE_SEND, true);
    struct sums send = sum_up(job, ROLE_SEND, false), receive = sum_up(job, ROLE_RECEIVE, false);
    double offered = sum_of(&send, offered_rate(&send), &receive, offered_rate(&receive));
    tell_all(job, &all);
    if (job->test.kind == KIND_STREAM)
        tell_streams(job, &all, offered);
    else
        tell_round_trips(job, &all);
    warn(job, &all, offered);
}
