/* The timed region of a workload with a loop of its own: when it ends, and how long each operation
 * took. There are no slices: what waits is interrupted all the time, and a stall is a finding. */
#ifndef HOSTBENCH_LOOP_H
#define HOSTBENCH_LOOP_H

#include "histogram.h"
#include "run.h"

/* Of one thread. */
struct loop {
    uint64_t share; /* operations it may begin; UINT64_MAX: time decides */
    double end_s;
    bool timed;          /* the ramp is over */
    double rate;         /* of a loop that moves in bulk: as the loop reported it */
    const char *no_rate; /* why it has none; NULL: too little was done */
    struct histogram streams[];
};

/* Whether it moves its work in bulk: no histogram is kept then. */
bool loop_in_bulk(const struct workload *workload);
/* How many kinds of operations have figures of their own; 1: all together, 0: none is timed. */
unsigned loop_streams(const struct workload *workload);
/* Memory for the records. 0, or -1 without memory. */
int loop_allocate(struct worker *worker);
void loop_free(struct worker *worker);
/* What loop_allocate() takes for a thread, in bytes. */
size_t loop_bytes(const struct run *run);
/* Both are called by all threads at once; 0 or an exit_code. */
int loop_ramp(struct worker *worker);
int loop_run(struct worker *worker);
/* Why a thread of a loop that moves in bulk has no rate. */
const char *loop_no_rate(const struct worker *worker);
/* From the records to the thread's figures. */
struct thread_figures loop_figures(const struct worker *worker);
/* Adds up what all measured threads did in one stream, or in all of them. */
void loop_merge(const struct trial *trial, unsigned stream, struct histogram *into);
void loop_merge_all(const struct trial *trial, struct histogram *into);
/* Bytes that one operation moves; 0: unknown. */
double loop_block_bytes(const struct run *run);

#endif
