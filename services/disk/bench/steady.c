#include "steady.h"

#include "job.h"

#include <math.h>

enum { ROUNDS = 5 };

static const double FIRST_SLOT_S = 1e-3;
static const double MOST_RANGE = 0.2, MOST_SLOPE = 0.1; /* SNIA SSS PTS 2.0.2, section 3.2.2 */
static const char SWITCHED_OFF[] = "steady_state is off";
static const char TOO_SHORT[] = "the trial was too short, or nothing was done in a part of it";

static void widen(struct steady *steady)
{
    steady->slot_s *= 2;
    for (unsigned i = 0; i < STEADY_SLOTS; i++) {
        unsigned from = 2 * i;
        steady->done[i] = from < STEADY_SLOTS ? steady->done[from] + steady->done[from + 1] : 0;
    }
}

/* Times count from one moment for all threads, right before the timed region. */
void steady_done(struct thread *thread, double now_s)
{
    struct disk_job *job = disk_job_of(thread);
    struct steady *steady = &job->own[thread->index].steady;
    double at_s = now_s - job->evidence.before.at_s;
    if (steady->slot_s == 0)
        steady->slot_s = FIRST_SLOT_S;
    while (at_s >= steady->slot_s * STEADY_SLOTS)
        widen(steady);
    steady->done[(unsigned)(at_s / steady->slot_s)]++;
}

/* Adds up what the threads have done, in slots of one width; the first thread's. */
static struct steady *merge(struct disk_job *job)
{
    struct steady *all = &job->own[0].steady;
    double widest_s = FIRST_SLOT_S;
    for (unsigned i = 0; i < job->threads; i++)
        widest_s = fmax(widest_s, job->own[i].steady.slot_s);
    for (unsigned i = 0; i < job->threads; i++) {
        struct steady *one = &job->own[i].steady;
        while (one->slot_s > 0 && one->slot_s < widest_s)
            widen(one);
        for (unsigned slot = 0; i > 0 && slot < STEADY_SLOTS; slot++)
            all->done[slot] += one->done[slot];
    }
    all->slot_s = widest_s;
    return all;
}

/* Operations a second in each round; false when there are not enough slots to tell. */
static bool rates_of(const struct steady *all, double elapsed_s, double rates[ROUNDS])
{
    unsigned slots = (unsigned)fmin(STEADY_SLOTS, elapsed_s / all->slot_s);
    unsigned each = slots / ROUNDS;
    if (each < ROUNDS)
        return false;
    for (unsigned round = 0; round < ROUNDS; round++) {
        rates[round] = 0;
        for (unsigned i = 0; i < each; i++)
            rates[round] += (double)all->done[round * each + i] / (each * all->slot_s);
    }
    return true;
}

static double mean_of(const double rates[ROUNDS])
{
    double sum = 0;
    for (unsigned i = 0; i < ROUNDS; i++)
        sum += rates[i];
    return sum / ROUNDS;
}

static double range_ratio(const double rates[ROUNDS])
{
    double least = INFINITY, most = -INFINITY;
    for (unsigned i = 0; i < ROUNDS; i++) {
        least = fmin(least, rates[i]);
        most = fmax(most, rates[i]);
    }
    return (most - least) / mean_of(rates);
}

/* How far the line fitted to the rounds (least squares) rises or falls from the first to the last. */
static double slope_ratio(const double rates[ROUNDS])
{
    double middle = (ROUNDS - 1) / 2.0, products = 0, squares = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        products += (i - middle) * rates[i];
        squares += (i - middle) * (i - middle);
    }
    return fabs(products / squares) * (ROUNDS - 1) / mean_of(rates);
}

static void no_report(struct run *run, const char *why)
{
    run_no_metric(run, "steady_state_range_ratio", why);
    run_no_metric(run, "steady_state_slope_ratio", why);
}

void steady_report(struct disk_job *job, double worked_s)
{
    double rates[ROUNDS];
    if (!job->steady_state) {
        no_report(job->run, SWITCHED_OFF);
        return;
    }
    if (!rates_of(merge(job), worked_s, rates) || mean_of(rates) == 0) {
        no_report(job->run, TOO_SHORT);
        return;
    }
    double range = range_ratio(rates), slope = slope_ratio(rates);
    run_metric(job->run, "steady_state_range_ratio", range);
    run_metric(job->run, "steady_state_slope_ratio", slope);
    if (range > MOST_RANGE || slope > MOST_SLOPE)
        run_warning(job->run, "not_steady",
                    "the rate was not steady: its five rounds differ by %.0f %% of their average "
                    "(at most 20), and their line rises or falls by %.0f %% (at most 10): measure "
                    "longer, or fill and precondition the disk first",
                    100 * range, 100 * slope);
}
