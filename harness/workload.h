/* What a benchmark program declares: its table of workloads, their parameters and metrics.
 * Help, --list, the API schema and docs/workloads.md derive from this table. */
#ifndef HOSTBENCH_WORKLOAD_H
#define HOSTBENCH_WORKLOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum exit_code {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_RESOURCE = 3,
    EXIT_UNSUPPORTED = 4,
    EXIT_WRONG = 5,
};

/* PARAM_TEXT: a name of something outside, such as a device: 1 to 128 of A-Z a-z 0-9 : . _ - */
enum param_type { PARAM_COUNT, PARAM_NUMBER, PARAM_CHOICE, PARAM_CPU_LIST, PARAM_TEXT };

/* SCOPE_HOST: set by the caller on this host, never by a request. */
enum param_scope { SCOPE_REQUEST, SCOPE_HOST };

/* What a parameter is for the figures of a case. Without a role it is part of what is measured and
 * stands in the case's label, and so does an axis or a tag; both may be one parameter. */
enum param_role {
    ROLE_AXIS = 1, /* charts are drawn over it; without ROLE_TAG, a field of points */
    ROLE_TAG = 2,  /* it takes few values, which distinguish series; a tag of points */
    ROLE_HOW = 4,  /* how is measured, not what: in no label, no axis and no tag */
};

struct param {
    const char *name; /* snake_case; the option is --kebab-case */
    enum param_type type;
    enum param_scope scope;
    const char *unit;    /* NULL: none */
    const char *initial; /* default as text; NULL: not set */
    /* Of PARAM_COUNT and PARAM_NUMBER, both inclusive. PARAM_CPU_LIST: a max stands where the CPUs
     * may be another host's, and is the highest number; 0: they are those that this process may
     * use. */
    double min, max;
    const char *const *choices; /* NULL-terminated; words a number takes too */
    const char *help;

    unsigned roles;    /* of enum param_role */
    const char *title; /* in words, for axes: "instruction set"; NULL: made of the name */
    const char *noun;  /* what its number counts, in labels: "thread"; NULL: it counts nothing */
    bool named;        /* its words mean nothing without its name: "lock each" */
    /* The word that the program replaces by what it stands for here; NULL: none. Words that a number
     * takes too are all replaced by a number. */
    const char *resolved;
    /* The later trials of a case are called with what the first one put in the place of such a
     * word. */
    bool resolved_once;
    /* Choices that the host may lack, each followed by the one that is measured in its place, with
     * the warning direct_unavailable; NULL-terminated; NULL: none. */
    const char *const *fallbacks;
    const char *facts[2]; /* PARAM_TEXT: facts of the start event that name the same thing */
    const char *excludes; /* the parameter that cannot be given beside it; NULL: none */
    /* It fixes or bounds the work: given, the default of duration_s does not hold. A workload has
     * one such parameter, so that one of its own excludes the common `work`. When its unit is not
     * that of the rate, check() makes run_set_count(run, "work", …) of it. */
    bool ends_trial;
};

enum direction { HIGHER_IS_BETTER, LOWER_IS_BETTER };

struct metric {
    const char *name;
    const char *unit;
    enum direction direction;
    const char *description;
};

/* How the rates of the threads become the rate of the trial. */
enum combine {
    COMBINE_SUM,    /* throughput: threads add up */
    COMBINE_MEDIAN, /* a property of each core, such as its clock; all times */
};

struct rate {
    const char *name; /* the primary metric */
    const char *unit;
    const char *description;
    enum combine combine;
    const char *work; /* what is counted: "byte"; NULL: "operation" */
    /* The figure is the time of one operation: lower is better. Threads are timed alike, their
     * rates only reported the other way round; COMBINE_MEDIAN. */
    bool time;
};

/* Whether bytes are counted. */
static inline bool rate_in_bytes(const struct rate *rate)
{
    return rate->work && !strcmp(rate->work, "byte");
}

struct run;

/* A figure of a moment, for a sample. */
struct observed {
    const char *name; /* must last */
    double value;     /* NaN: there is none */
};

enum { OBSERVED_MAX = 16 };

/* A library that does part of the measured work, for the start event. The texts must last. */
struct library {
    const char *name; /* OpenBLAS */
    const char *version;
    const char *path;   /* the file that was loaded, symbolic links resolved */
    const char *detail; /* build, variant chosen for this CPU; NULL: nothing to say */
};

struct thread {
    struct run *run;
    unsigned index;
    int cpu;
    void *state; /* the workload's own, set by its setup() */
};

struct workload {
    const char *name;
    const char *description;
    struct rate rate;
    /* Own ones, ended by a NULL name; may be NULL. One with the name of a common one replaces it. */
    const struct param *params;
    const char *const *excludes;  /* common ones it does not take, NULL-terminated; may be NULL */
    const struct metric *metrics; /* beyond those every workload of its kind has; may be NULL */
    double setup_s; /* a trial with the defaults takes before its warm-up, about; for estimates */
    double
        setup_s_per_byte; /* … with size_bytes given, for each of them; 0: as with the defaults */
    const void *own;      /* whatever its functions share; run_own() gives it back */
    /* It measures the way that is known to mislead, to show by how much. Its figure has no limit, no
     * peer and no place among the best. */
    bool naive;
    /* A team works on one problem: all threads call step() at once with the same batch, and its
     * time ends with the last of them. One unit may take long; it is never cut short. */
    bool team;
    /* Of loops only: the names of what has figures of its own too, such as "read" and
     * "write", NULL-terminated. NULL: there is one kind of operation. */
    const char *const *streams;
    /* How many threads there are, where parameters of its own tell that; it excludes `threads` then,
     * and `cpus` still places them. NULL: `threads` says it. */
    unsigned (*threads)(const struct run *);
    /* Of each thread, where its functions call what needs much, such as a compiler; 0: 256 KiB. */
    size_t stack_bytes;

    /* Replaces `best` choices by what they stand for. May be NULL. */
    void (*resolve)(struct run *);
    /* NULL, or why it cannot run here with these parameters. */
    const char *(*unsupported)(const struct run *);
    /* NULL, or why its figure deserves caution until somebody has confirmed it: printed as the
     * warning not_run_on_hardware. May be NULL. */
    const char *(*unconfirmed)(const struct run *);
    /* Once threads and CPUs are chosen, before anything starts: what parameters mean together,
     * whether there is memory for them. May replace words by what they stand for, but no number
     * that was given. 0 or an exit_code. May be NULL. */
    int (*check)(struct run *);
    /* Once, before the threads start: whatever they share, given to run_set_shared(). 0 or an
     * exit_code. May be NULL. */
    int (*open)(struct run *);
    void (*close)(struct run *); /* whether or not open() succeeded; may be NULL */
    /* Called per thread, pinned, before the warm-up: first touch happens here. 0 or an exit_code. */
    int (*setup)(struct thread *);
    /* By all threads at once, after the setup() of all of them and before the warm-up: tries out
     * what `best` is here. May use run_meet(), and thread 0 may use run_set_choice(): the start
     * event comes after it. 0 or an exit_code. May be NULL. */
    int (*calibrate)(struct thread *);
    /* Whether this thread only makes load: it works as long as a measured one does, and none of it
     * is in the figures. Thread 0 is always measured. NULL: all are. Not of teams and
     * loops. */
    bool (*background)(const struct thread *);
    /* Does `batch` units of work and checks its result. 0 or an exit_code. */
    int (*step)(struct thread *, uint64_t batch);
    /* Instead of step(): the workload's own loop, for work that waits for something outside the
     * CPU. Called twice by all threads at once: for the ramp (warm-up), then for the timed region.
     * Does operations until run_loop_over() says so, telling each with run_loop_done(), and comes
     * back when none is under way. 0 or an exit_code. */
    int (*loop)(struct thread *);
    /* Of a loop that moves its work in bulk and times no single operation: what this thread
     * has moved in this phase so far, in the unit of the rate, and when that was so (CLOCK_MONOTONIC,
     * in seconds). For the samples; called by another thread at any time in the timed region. Its
     * loop() or verify() tells run_bulk_done(), its finish() run_bulk_rate(). NULL: it is no such
     * loop. */
    uint64_t (*moved)(const struct thread *, double *at_s);
    /* Of loops: further figures for each sample, of the time since the last one. Called by another
     * thread in the timed region; writes at most `most`, OBSERVED_MAX, and gives their number. May
     * be NULL. */
    size_t (*observe)(struct run *, struct observed *figures, size_t most);
    /* The bare loop of `batch` units: counter and branch only. May be NULL. */
    void (*empty_loop)(struct thread *, uint64_t batch);
    /* The core clock under the vector licence that step() runs under, in some tens of
     * microseconds; called right after it. May be NULL. */
    double (*clock_hertz)(struct thread *);
    /* Adds the metrics of its own with run_metric(), on thread 0 after the timed region, when the
     * figures of all threads are known. */
    void (*finish)(struct thread *);
    void (*teardown)(struct thread *);

    /* By all threads at once, not timed. Of teams before each step: new operands. Of loops once,
     * when all are through with the ramp and before the timed region; may use run_meet(). 0 or an
     * exit_code. May be NULL. */
    int (*prepare)(struct thread *);
    /* The check of the result, by all threads at once, not timed: of a team after each step, with
     * its batch; of others once after the timed region, of whatever all steps have left, with the
     * units that this thread's steps had to do together. 0 or an exit_code. May be NULL. */
    int (*verify)(struct thread *, uint64_t units);
    /* Instead of steps where the largest batch is 1, that is where one step is long: keeps the
     * core busy alike until `until_s` of the monotonic clock. May be NULL. */
    int (*warm_up)(struct thread *, double until_s);
};

struct program {
    const char *name;                        /* cpu-bench */
    const char *subsystem;                   /* cpu */
    const struct workload *const *workloads; /* NULL-terminated */
};

/* Defines a row of the table of registered_workloads(): WORKLOAD(fma) = {.name = "fma", …}; in a C
 * file that is linked into the program, and nowhere else. */
#define WORKLOAD(id)                                                                               \
    static const struct workload id##_workload;                                                    \
    __attribute__((constructor)) static void id##_register(void)                                   \
    {                                                                                              \
        workload_register(&id##_workload);                                                         \
    }                                                                                              \
    static const struct workload id##_workload

/* For WORKLOAD. */
void workload_register(const struct workload *workload);
/* The rows of WORKLOAD in the order of their names; ends with a NULL. */
const struct workload *const *registered_workloads(void);

/* The whole life of a benchmark program; returns its exit code. */
int bench_main(const struct program *program, int argc, char **argv);

/* Whether a parameter was given or has a default. */
bool run_param_set(const struct run *run, const char *param);
/* The chosen word of a parameter, or its text; NULL when it was given a number. */
const char *run_choice(const struct run *run, const char *param);
/* Replaces a choice (resolve(), check() and calibrate() only; setup() where there is one thread). */
void run_set_choice(struct run *run, const char *param, const char *choice);
/* The number a PARAM_COUNT parameter was given or resolved to. */
uint64_t run_count(const struct run *run, const char *param);
/* Replaces a count, or its word by what it stands for; when, as above. */
void run_set_count(struct run *run, const char *param, uint64_t count);
/* The number a PARAM_NUMBER parameter was given. */
double run_number(const struct run *run, const char *param);
const void *run_own(const struct run *run);
unsigned run_threads(const struct run *run);
/* The distinct CPUs that they are pinned to. */
unsigned run_cpus(const struct run *run);
/* Where a thread is pinned. */
int run_cpu(const struct run *run, unsigned thread);
struct cpulist;
/* A PARAM_CPU_LIST parameter as it was given or resolved; empty: not set. */
const struct cpulist *run_cpu_list(const struct run *run, const char *param);
/* Takes a list over (check() only). */
void run_set_cpu_list(struct run *run, const char *param, struct cpulist *list);
/* The CPUs that this process may use and no thread is pinned to, one per core before any SMT
 * sibling; to be freed. Empty: there are none. */
struct cpulist run_cpus_left(const struct run *run);
/* Whether two threads are on SMT siblings: two CPUs of one core. */
bool run_siblings(const struct run *run, unsigned first, unsigned second);
/* Whether two of the CPUs that this process may use are. */
bool run_siblings_visible(void);
/* Whether there are more threads than CPUs: rates of threads that share one do not add up. */
bool run_oversubscribed(const struct run *run);
/* The workload has threads beside those of the trial, and too few CPUs for all: who waits for a CPU
 * may wait for them, which is no disturbance (loops only). */
void run_share_cpus(struct run *run);
/* What run_loop_done() gets is the mean of several operations in a row (loops only). */
void run_times_are_means(struct run *run);
void run_set_shared(struct run *run, void *shared);
void *run_shared(const struct run *run);
/* Names a library that does part of the work (resolve() only). */
void run_library(struct run *run, const struct library *library);
/* Something found about the surroundings, for the start event: open(), setup() and calibrate() only,
 * by one thread at a time. The name must last; the text is copied, and nothing is reported when it
 * is empty. A second text of a name takes the place of the first. */
void run_fact(struct run *run, const char *name, const char *text);
/* The time of day, for workloads that measure as is done by hand, as it would be if it had not
 * been set since the trial began. */
int64_t run_wall_us(struct run *run);
/* By how much it was set forward since, as far as run_wall_us() has seen. */
int64_t run_wall_set_us(const struct run *run);
/* Operations (of a byte rate: bytes) that one unit of step() stands for, and the largest batch
 * step() may be given. */
void run_set_unit(struct run *run, uint64_t operations, uint64_t batch_max);
/* What the harness takes for the threads of this run: stacks and the records of their slices. */
double run_thread_bytes(const struct run *run);
/* What one reading of the clock costs, in seconds. */
double run_clock_read_s(const struct run *run);
/* Whether the clock moves in steps that are too coarse to time a clock chain. */
bool run_clock_coarse(const struct run *run);
/* In finish(): operations (of a byte rate: bytes) a second of all measured threads together, of the
 * clean slices where the primary figure is. */
double run_rate(const struct run *run);
/* In finish(): units of step() a second, summed over the background threads. */
double run_background_rate(const struct run *run);
/* In finish(): the share of the time for which the background threads had a CPU; NaN: none is. */
double run_background_cpu_ratio(const struct run *run);
/* For verify(): whether all requested units were done. 0 or an exit_code with its
 * reason. */
int run_check_units(const struct thread *thread, uint64_t done, uint64_t requested);
/* Records a metric of the workload's own: each that its table lists, by this or by the next one. */
void run_metric(struct run *run, const char *name, double value);
/* … or why there is no figure for it here; the text must last. */
void run_no_metric(struct run *run, const char *name, const char *why);
/* In finish(): the primary figure of two CPUs alone, where a workload measures them in pairs. */
void run_pair(struct run *run, int first_cpu, int second_cpu, double value);
/* In finish(): the primary figure with the first `threads` threads alone at work, where a workload
 * measures one number of threads after another. */
void run_rung(struct run *run, unsigned threads, double value);
/* In finish(): a figure of the CPUs of one NUMA node with the memory of another, or of the same. The
 * name must last. */
void run_node_figure(struct run *run, int cpu_node, int memory_node, const char *metric,
                     double value);
/* Formats the reason of a failure that setup() or step() is about to return. One line: the value,
 * what is allowed, the remedy. The first reason wins. */
void run_reason(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Names the wrong value behind a run_reason() of EXIT_WRONG for programs: what this thread's CPU
 * read, what belongs there, and the place. The first one wins. */
void run_wrong(const struct thread *thread, uint64_t expected, uint64_t value, const char *format,
               ...) __attribute__((format(printf, 4, 5)));
/* Tells the reader of the figures something about them: a word for programs, a line for people. It
 * is printed behind the start event, not at all when the trial fails before that. */
void run_warning(const struct run *run, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* True once the run is to end; long setup() code checks it now and then. */
bool run_stopping(const struct run *run);

/* Waits for all other threads, in setup() and calibrate(), in teams and loops. false when the run has to
 * end meanwhile: return at once. */
bool run_meet(struct thread *thread);

/* ---- for loops ---- */

/* Bytes that one operation moves, for bytes_per_second beside operations_per_second; not needed
 * where the rate counts bytes. */
void run_set_block_bytes(struct run *run, uint64_t bytes);
/* false: the ramp, which is not recorded. */
bool run_loop_timed(const struct thread *thread);
/* Whether to begin no further operation at `at_s` (CLOCK_MONOTONIC, in seconds): the time is over,
 * this thread's share of the work is begun (`begun` operations so far in this phase), or the run is
 * to stop. Call it at least every 100 ms, also while waiting: a run that has to stop ends within a
 * second. */
bool run_loop_over(const struct thread *thread, uint64_t begun, double at_s);
/* One operation of this thread is done: `latency_ns` after it was begun (closed loop) or due (open
 * loop). `stream`: index into workload->streams, 0 when it has none. Some nanoseconds: no lock, no
 * system call. */
void run_loop_done(struct thread *thread, unsigned stream, uint64_t latency_ns);
/* In finish(): the operations of one stream, of all threads in the timed region. */
uint64_t run_loop_operations(const struct run *run, unsigned stream);
/* In finish(): from the first start to the last stop, in seconds. */
double run_loop_elapsed_s(const struct run *run);

/* ---- for loops that move in bulk ---- */

/* From loop() of the timed region, or verify(): the work of this thread that has arrived, in the unit
 * of the rate (operations, where the figure is a time), and its rate by the clock that counts, which
 * may be another host's or a device's; NaN: none. */
void run_bulk_done(struct thread *thread, uint64_t work, double rate);
/* The same for a thread without a rate, and why it has none. The first thread's reason is also that
 * of the primary figure. The text must outlive the run. */
void run_bulk_none(struct thread *thread, uint64_t work, const char *why);
/* In finish(): the primary figure, a rate or a time. NaN: too little was done to tell. */
void run_bulk_rate(struct run *run, double rate);

/* ---- for teams ---- */

/* How long threads that wait for one another spin before they sleep, in turns of a loop. */
unsigned run_spins(const struct run *run);
/* The flag behind run_stopping(), for waits of the workload's own. */
const atomic_bool *run_stop_flag(const struct run *run);
/* From within a long step, by each thread between two pieces of work: measures the clock when it
 * is due. */
void run_checkpoint(struct thread *thread);
/* From within a long step, by one thread: the operations of this step that the team has done so
 * far. What the samples show. */
void run_progress(struct thread *thread, double operations);

#endif
