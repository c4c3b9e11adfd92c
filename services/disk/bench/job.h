/* What all parts of disk-bench share: the job that a trial is, read from its parameters. */
#ifndef DISK_BENCH_JOB_H
#define DISK_BENCH_JOB_H

#include "marker.h"
#include "scratch.h"
#include "workload.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum op { OP_READ, OP_WRITE }; /* of mixes: the index of the stream, too */

enum cache_mode {
    CACHE_DIRECT,
    CACHE_DIRECT_FSYNC_END,
    CACHE_DIRECT_DSYNC,
    CACHE_DIRECT_SYNC,
    CACHE_BUFFERED,
    CACHE_BUFFERED_FSYNC_END,
    CACHE_BUFFERED_DSYNC,
    CACHE_BUFFERED_SYNC,
};

/* What a workload's row in the table says of it (run_own()). */
struct disk_kind {
    bool reads, writes;
    bool sequential;
    bool commit; /* each write is followed by fdatasync: fsync_latency */
    bool naive;  /* by the calls of naive.h, past all of the engines; `pattern` says the order */
};

/* How the file comes to be filled. */
struct fill {
    int fd; /* that it is written with; -1: nothing to fill */
    struct marker content;
    uint64_t from, to;      /* what is missing */
    bool allocated;         /* and has been set aside */
    _Atomic uint64_t taken; /* from `from` on, by whichever thread came first */
    double start_s, taken_s;
};

/* Counters at one moment; NaN: unknown. */
struct io_counters {
    double at_s;
    double read_bytes, write_bytes;               /* of this process, that reached block devices */
    double device_read_bytes, device_write_bytes; /* of the device, by all processes */
    double device_busy_s;
};

struct evidence {
    struct io_counters before;
    double cached_before; /* share of the file in the page cache */
    struct io_counters after;
    double cached_after;
};

enum { STEADY_SLOTS = 1024 };

/* Operations done by one thread over time, in slots that become twice as wide whenever the last one
 * is passed: a run of any length needs as many. */
struct steady {
    double slot_s;
    uint64_t done[STEADY_SLOTS];
};

/* What one thread of a naive workload has done in the timed region, by the reports' clock. */
struct naive_region {
    double start_s, end_s; /* by the time of day */
    uint64_t blocks;       /* moved; one that is read and written back counts once */
    uint64_t last;         /* the number of the last one … */
    const char *content;   /* … and what it holds */
};

/* Of one thread; each on cache lines of its own. */
struct disk_thread {
    _Alignas(128) uint64_t writes; /* begun so far, ramp included */
    uint64_t verified;             /* blocks whose content was compared */
    struct steady steady;          /* of the timed region */
    double sync_s;                 /* what its file_sync() took */
    uint64_t left_over;            /* of an open loop: due in time and never begun */
    struct naive_region region;    /* of a naive workload … */
    _Atomic uint64_t moved;        /* … and its bytes in this phase, which outlive the thread */
};

/* Read by all threads, written by thread 0 between their meetings, except `own` and the atomics. */
struct disk_job {
    struct run *run;
    bool reads, writes, sequential, commit, naive;
    double read_share; /* of the operations; 1: reads only, 0: writes only */
    uint64_t block_bytes;
    uint64_t file_bytes; /* as requested; blocks * block_bytes of them are used */
    uint64_t blocks;
    /* Each thread works on blocks [index * region_blocks, (index + 1) * region_blocks), otherwise
     * all work on all: sequential and naive workloads, and whatever is verified, where no block may
     * be written and read at the same time (nor be twice in flight). */
    bool apart;
    uint64_t region_blocks; /* where they are not apart: all blocks */
    unsigned threads, depth;
    double rate; /* operation/s of all threads together; 0: closed loop */
    enum cache_mode mode;
    bool direct, fsync_end; /* as `mode` says */
    bool synced;            /* each write is on the disk when it ends */
    int open_flags;         /* O_DIRECT, O_DSYNC, O_SYNC, as the mode says */
    bool verify;
    uint64_t *written;   /* of each block, where verify: the generation of its last write in this
                          * trial; 0: none. NULL: nothing is verified or written */
    double compressible; /* share of each block that is zeros */
    bool zipf;
    double zipf_theta;
    bool steady_state;
    const struct engine *engine; /* engine.h */
    struct scratch scratch;
    int fd;                     /* the measured file, opened with the flags of the mode */
    uint64_t alignment;         /* of offsets and sizes, where direct; otherwise 1 */
    uint64_t file_id;           /* in every verified block */
    uint64_t write_limit;       /* writes a thread may begin, where a time may end them */
    double planned_write_bytes; /* fill and workload at most; NaN: the time alone decides */
    struct fill fill;
    struct evidence evidence;
    struct disk_thread *own; /* one a thread */
};

/* Operations of total_bytes, of all threads together; 0: there is no total. */
double disk_job_total(const struct disk_job *job);
/* Warns where the time was over before the total was; `done` operations. */
void disk_job_report_sample(const struct disk_job *job, double done);
/* Whether it writes and never waits for the disk: then the page cache is measured. */
bool disk_job_leaves_dirty(const struct disk_job *job);
/* Share of the covered bytes of the file that is in the page cache; NaN: the kernel does not tell. */
double disk_job_cached_ratio(const struct disk_job *job);
/* Blocks that all threads of a naive workload have moved in the timed region. */
double disk_job_naive_blocks(const struct disk_job *job);

/* Bytes of the file that the blocks cover. */
static inline uint64_t disk_job_covered_bytes(const struct disk_job *job)
{
    return job->blocks * job->block_bytes;
}

/* Of a thread. */
static inline struct disk_job *disk_job_of(const struct thread *thread)
{
    return run_shared(thread->run);
}

#endif
