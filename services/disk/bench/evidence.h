/* Whether it was the disk: what the kernel counted for this process and for the device in the timed
 * region, beside what the workload did. */
#ifndef DISK_BENCH_EVIDENCE_H
#define DISK_BENCH_EVIDENCE_H

struct disk_job;

/* Counters at one moment; NaN: unknown. */
struct io_counters {
    double at_s;
    double read_bytes, write_bytes;               /* of this process, that reached block devices */
    double device_read_bytes, device_write_bytes; /* of the device, whoever caused them */
    double device_busy_s;
};

struct evidence {
    struct io_counters before;
    double cached_before; /* share of the file in the page cache */
    struct io_counters after;
    double cached_after;
};

/* Right before the timed region. */
void evidence_begin(struct disk_job *job);
/* Right after it. */
void evidence_end(struct disk_job *job);
/* For finish(): the metrics, and warnings about what they mean; a naive workload is to be the page
 * cache, so there is nothing to warn of. */
void evidence_report(struct disk_job *job);

#endif
