#include "naive.h"

#include "figures.h"
#include "monotonic.h"
#include "near_loop.h"
#include "net.h"
#include "sums.h"

#include <math.h>

static const double MICROSECOND = 1e-6;

static const char SENT_ONLY[] = "mode echo: what counts has come back";
static const char SENT_AGAIN[] = "TCP sends again what is lost";
static const char NOTHING_SENT[] = "nothing was sent";
static const char NOTHING_ARRIVED[] = "nothing arrived";

/* ---- an asker that counts blocks in bytes --------------------------------------------------- */

static uint64_t bytes_of(const struct near_thread *own, uint64_t blocks)
{
    return blocks * own->job->test.block_bytes;
}

/* Senders end at their share of the total by themselves, askers know of none. */
static bool echo_over(void *context, uint64_t begun, double at_s)
{
    const struct near_thread *own = context;
    uint64_t bytes = bytes_of(own, begun);
    uint64_t share = run_loop_timed(own->thread)
                         ? test_share_bytes(&own->job->test, own->place.index)
                         : UINT64_MAX;
    return bytes >= share || run_loop_over(own->thread, bytes, at_s) ||
           session_lost(own->job->session);
}

static void echo_done(void *context, uint64_t latency_ns)
{
    struct near_thread *own = context;
    (void)latency_ns; /* one time around all of them is all that a naive figure has */
    own->done++;
    atomic_store_explicit(&own->moved, bytes_of(own, own->done), memory_order_relaxed);
}

static bool echoes(const struct net_job *job)
{
    return job->test.kind == KIND_RR;
}

int naive_setup(struct thread *thread)
{
    int failure = near_setup(thread);
    struct near_thread *own = thread->state;
    if (failure || !echoes(own->job))
        return failure;
    own->driver.over = echo_over;
    own->driver.done = echo_done;
    return EXIT_OK;
}

/* ---- a phase -------------------------------------------------------------------------------- */

/* The times of the ramp are overwritten by those of the timed region. */
int naive_loop(struct thread *thread)
{
    struct near_thread *own = thread->state;
    own->naive_begin_us = run_wall_us(thread->run);
    int failure = near_loop(thread);
    own->naive_end_us = run_wall_us(thread->run);
    return failure;
}

uint64_t naive_moved(const struct thread *thread, double *at_s)
{
    const struct near_thread *own = thread->state;
    *at_s = 0;
    if (!atomic_load(&own->job->timed))
        return 0;
    *at_s = now_s();
    return atomic_load_explicit(&own->moved, memory_order_relaxed);
}

/* NaN where the clock did not go on. */
static double rate_of(uint64_t bytes, int64_t begin_us, int64_t end_us)
{
    return bytes > 0 && end_us > begin_us
               ? (double)bytes / ((double)(end_us - begin_us) * MICROSECOND)
               : NAN;
}

int naive_verify(struct thread *thread, uint64_t units)
{
    const struct near_thread *own = thread->state;
    int failure = near_verify(thread, units);
    if (failure || run_stopping(thread->run))
        return failure;
    uint64_t bytes = own->stream->counts.bytes;
    run_bulk_done(thread, bytes, rate_of(bytes, own->naive_begin_us, own->naive_end_us));
    return EXIT_OK;
}

/* ---- figures -------------------------------------------------------------------------------- */

/* From the first thread's begin to the last one's end. */
static double rate_of_all(const struct net_job *job, uint64_t bytes)
{
    int64_t begin_us = INT64_MAX, end_us = INT64_MIN;
    for (unsigned i = 0; i < test_own_sockets(&job->test); i++) {
        const struct near_thread *own = &job->own[i];
        begin_us = own->naive_begin_us < begin_us ? own->naive_begin_us : begin_us;
        end_us = own->naive_end_us > end_us ? own->naive_end_us : end_us;
    }
    return rate_of(bytes, begin_us, end_us);
}

/* Of an asker's counts, `bytes` are those of the blocks that came back. */
static void report_echo(struct net_job *job, const struct sums *all)
{
    struct run *run = job->run;
    double requests = (double)all->sent.datagrams, lost = (double)all->sent.lost_operations;
    figures_report(run, "sender_bytes", requests * job->test.block_bytes, NOTHING_SENT);
    figures_report(run, "receiver_bytes", (double)all->sent.bytes, NOTHING_ARRIVED);
    run_no_metric(run, "arrived_bytes_per_second", SENT_ONLY);
    figures_report(run, "lost_datagrams", lost, NOTHING_SENT);
    figures_report(run, "lost_ratio", lost / requests, NOTHING_SENT);
    figures_warn_of_total(job, all->sent.datagrams * job->test.block_bytes);
}

static void report_send(struct net_job *job, const struct sums *all)
{
    struct run *run = job->run;
    bool tcp = job->test.protocol == PROTOCOL_TCP;
    figures_report(run, "sender_bytes", (double)all->sent.bytes, NOTHING_SENT);
    figures_report(run, "receiver_bytes", (double)all->received.bytes, NOTHING_ARRIVED);
    figures_report(run, "arrived_bytes_per_second", arrived_rate(all), NOTHING_ARRIVED);
    figures_report(run, "lost_datagrams", tcp ? NAN : lost_datagrams(all), SENT_AGAIN);
    figures_report(run, "lost_ratio", tcp ? NAN : lost_ratio(all), tcp ? SENT_AGAIN : NOTHING_SENT);
    figures_warn_of_total(job, all->sent.bytes);
}

void naive_finish(struct thread *thread)
{
    struct net_job *job = net_job_of(thread);
    struct sums all = sum_up(job, ROLE_SEND, true);
    run_bulk_rate(thread->run, rate_of_all(job, all.sent.bytes));
    figures_report_all(job, &all);
    if (echoes(job))
        report_echo(job, &all);
    else
        report_send(job, &all);
    figures_warn_of_strangers(job);
}
