/* Whether the rate was steady: SNIA's Solid State Storage Performance Test Specification 2.0.2
 * calls five rounds steady when they differ by at most 20 % of their average and the line fitted to
 * them rises or falls by at most 10 % of it. */
#ifndef DISK_BENCH_STEADY_H
#define DISK_BENCH_STEADY_H

struct disk_job;
struct thread;

/* In the timed region, for each operation that is done, where job->steady_state; `now_s` as in
 * now_s(). */
void steady_done(struct thread *thread, double now_s);
/* For finish(): metrics, and the warning not_steady. `worked_s`: as disk_loop_worked_s() gives it. */
void steady_report(struct disk_job *job, double worked_s);

#endif
