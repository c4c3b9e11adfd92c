#include "sums.h"

#include <math.h>

double receiver_rate(const struct stream_counts *receiver)
{
    double took_s = receiver->last_s - receiver->first_s;
    double bytes = (double)(receiver->bytes - receiver->first_bytes);
    return bytes > 0 && took_s > 0 ? bytes / took_s : NAN;
}

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

struct sums sum_up(const struct net_job *job, enum role near, bool any)
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

double arrived_rate(const struct sums *sums)
{
    double took_s = sums->receiver_end_s - sums->receiver_begin_s;
    double bytes = (double)(sums->received.bytes - sums->first_bytes);
    return bytes > 0 && took_s > 0 ? bytes / took_s : NAN;
}

double offered_rate(const struct sums *sums)
{
    double took_s = sums->sender_end_s - sums->sender_begin_s;
    return took_s > 0 ? (double)sums->sent.bytes / took_s : NAN;
}

double sum_of(const struct sums *one, double a, const struct sums *other, double b)
{
    return (one->sockets ? a : 0) + (other->sockets ? b : 0);
}

/* A surplus on one stream makes up for no loss on another. */
double lost_datagrams(const struct sums *sums)
{
    uint64_t there = sums->received.datagrams - sums->surplus;
    return (double)(sums->sent.datagrams - there);
}

double lost_ratio(const struct sums *sums)
{
    double sent = (double)sums->sent.datagrams;
    return sent > 0 ? lost_datagrams(sums) / sent : NAN;
}

double cpu_s(const struct net_job *job, bool far)
{
    double sum_s = 0;
    for (unsigned i = 0; i < test_own_sockets(&job->test); i++) {
        bool near_receives = test_place(&job->test, i).near == ROLE_RECEIVE;
        sum_s += (near_receives == far ? net_job_sender(job, i) : net_job_receiver(job, i))->cpu_s;
    }
    return sum_s;
}
