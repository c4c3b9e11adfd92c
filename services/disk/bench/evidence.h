/* Whether it was the disk: what the kernel counted for this process and for the device in the timed
 * region, beside what the workload did. */
#ifndef DISK_BENCH_EVIDENCE_H
#define DISK_BENCH_EVIDENCE_H

struct disk_job;

/* Right before the timed region. */
void evidence_begin(struct disk_job *job);
/* Right after it. */
void evidence_end(struct disk_job *job);
/* For finish(): the metrics, and warnings about what they mean; a naive workload is to be the page
 * cache, so there is nothing to warn of. */
void evidence_report(struct disk_job *job);

#endif
