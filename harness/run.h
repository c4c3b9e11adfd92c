/* One trial as the harness sees it. Workloads know only workload.h. */
#ifndef HOSTBENCH_RUN_H
#define HOSTBENCH_RUN_H

#include "barrier.h"
#include "cgroup.h"
#include "counters.h"
#include "disturbance.h"
#include "ending.h"
#include "energy.h"
#include "monotonic.h"
#include "options.h"
#include "placement.h"
#include "statistics.h"
#include "wall_clock.h"
#include "workload.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    OWN_METRICS_MAX = 64,
    LIBRARIES_MAX = 4,
    FACTS_MAX = 32,
    CLOCKS_SHOWN = 63, /* some 40 fall into a second */
};

struct own_metric {
    const char *name;
    double value;    /* NaN: there is none */
    const char *why; /* … for this reason */
};

struct fact {
    const char *name;
    char text[128];
};

struct pair_figure {
    int cpus[2];
    double value;
};

struct node_figure {
    int cpu_node, memory_node;
    const char *metric;
    double value;
};

struct rung_figure {
    unsigned threads;
    double value;
};

/* The first wrong value that a workload found. */
struct wrong {
    bool found; /* otherwise nothing below is set */
    int cpu;
    uint64_t expected, value;
    char place[160];
};

struct run {
    const struct program *program;
    const struct workload *workload;
    struct options options;
    struct placement placement;
    struct cgroup cgroup;
    struct monotonic clock;
    struct wall_clock wall_clock;
    struct ending ending;
    unsigned threads;
    unsigned cpus; /* distinct ones the threads are pinned to */
    uint64_t unit_operations;
    uint64_t batch_max;
    uint64_t block_bytes; /* that an operation of a loop moves; 0: unknown */
    struct own_metric metrics[OWN_METRICS_MAX];
    size_t metric_count;
    struct library libraries[LIBRARIES_MAX];
    size_t library_count;
    struct fact facts[FACTS_MAX];
    size_t fact_count;
    struct pair_figure *pairs; /* see run_pair() */
    size_t pair_count;
    struct rung_figure *rungs; /* see run_rung() */
    size_t rung_count;
    struct node_figure *node_figures; /* see run_node_figure() */
    size_t node_figure_count;
    double bulk_rate;          /* the primary figure of a loop that moves in bulk */
    bool has_helpers;          /* see run_share_cpus() */
    bool times_are_means;      /* see run_times_are_means() */
    void *shared;              /* the workload's own */
    const struct trial *trial; /* once it has begun */
    atomic_bool stopping;
    pthread_mutex_t lock; /* of the failure below */
    int exit_code;        /* the first failure's; EXIT_OK: none */
    char reason[512];
    struct wrong wrong;
};

/* What a thread has done so far; read by the reporting thread while it runs. */
struct progress {
    double start_s; /* of the timed region; 0 before */
    double at_s;    /* end of the last slice; of a team: start_s and the time measured since */
    uint64_t operations;
    uint64_t slices;
    uint64_t clean_slices;
    double clocks[CLOCKS_SHOWN]; /* Hz, the last ones of clean slices, in turn */
    uint64_t clocks_seen;
};

/* What a thread measured. */
struct thread_figures {
    double rate_whole;           /* own work over own time; NaN: no work */
    double rate_clean;           /* median of the clean slices; NaN: too few */
    double rate_best;            /* NaN: no clean slice */
    double operations_per_cycle; /* NaN: too few clean slices had a clock chain behind them */
    double clock_hertz;          /* NaN: no chain was run */
};

/* What a thread of a team saw of the slice that just ended. */
struct team_slice {
    double window_s; /* from the first reading of its counters to the second */
    struct thread_usage used;
    struct counts counted;
    double step_cpu_s;           /* CPU time inside step() */
    double clocks[CLOCKS_SHOWN]; /* Hz, the last ones, in turn */
    uint64_t clocks_seen;
    double clock_read_s; /* when, by the monotonic clock */
};

/* What the threads of a team decide together; the first of them writes it. */
struct team {
    struct barrier barrier;
    uint64_t batch; /* of the next step; 0: the end */
    bool timed;     /* the warm-up is over */
    double start_s; /* of this step */
    double shown_s; /* when its progress was last shown */
    double steal_s; /* before this step */
};

struct loop;

struct worker {
    _Alignas(128) struct thread thread; /* its own cache lines */
    struct trial *trial;
    pthread_t handle;
    bool background; /* makes load, is not measured */
    unsigned rank;   /* among the measured ones, or among the others */
    int tid;
    int schedstat;
    struct counters counters;
    double slice_s; /* target length */
    double step_s;  /* … of one step() */
    uint64_t batch;
    uint64_t requested; /* units of all steps, the warm-up's too; not of a team */
    double units_per_s;
    pthread_mutex_t lock; /* of the progress */
    struct progress progress;
    struct reservoir rates;  /* operation/s of clean slices */
    struct reservoir clocks; /* Hz, of all chains */
    struct reservoir ratios; /* operation/cycle of clean slices with the chain right behind them */
    double best_rate;
    double step_cpu_s;            /* CPU time inside step() */
    uint64_t finished_operations; /* of a team: in whole steps */
    double start_s, stop_s;
    double measured_s; /* of that, inside steps: what figures are made from */
    double watched_s;  /* of that, while the counters below were read */
    struct thread_usage used;
    struct counts counted; /* in the timed region; of a team: in its steps */
    struct team_slice slice;
    struct loop *loop; /* of a workload with a loop of its own */
    struct thread_figures figures;
};

/* Additions per cycle of the first thread: the median of those alone, and the most of those beside
 * the other threads. Both were taken in turn, so a neighbour on the other hardware thread of the
 * core, who comes and goes, takes from both or from neither. NaN: not measured. */
struct sentinel {
    double alone, all;
    _Atomic double begin_s; /* by the first thread; 0 before */
};

struct trial {
    struct run *run;
    struct worker *workers;
    unsigned measured; /* workers that are not in the background */
    struct barrier barrier;
    struct team team;
    pthread_t reporter;
    int wake_fd;           /* eventfd: the timed region began, or all workers are done */
    atomic_uint at_work;   /* workers not done yet */
    atomic_uint measuring; /* measured workers that are not through with the timed region */
    atomic_bool ready;     /* nothing is left to do before the warm-up */
    atomic_uint announced; /* … and the start event is out */
    atomic_bool begun;     /* some thread is in the timed region */
    atomic_bool timed;     /* … and start_s says since when */
    double start_s;
    double reporter_cpu_s;
    struct host_usage host_before, host_after;
    struct energy energy_before, energy_after;
    double stopped_s; /* of the timed region: nothing of this program ran, though it was due */
    struct sentinel sentinel_before, sentinel_after;
    double process_cpu_s; /* in the timed region: all threads, and the kernel's workers for them */
    double empty_loop_s;  /* of one operation, on the first thread; NaN: not measured */
    double empty_loop_ratio;
};

/* Notes a failure; the first one wins. `exit_code` EXIT_OK changes nothing. */
void run_fail(struct run *run, int exit_code);

#endif
