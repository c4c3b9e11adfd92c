/* A walk over arrays by a kernel: from one end to the other, or in blocks, in order or not. */
#ifndef MEM_BENCH_WALK_H
#define MEM_BENCH_WALK_H

#include "walk_state.h"

/* The arrays an operation works on, which is how many bytes STREAM counts for each byte of one. */
unsigned walk_arrays(enum operation operation);
/* The block and unit sizes for these parameters; `block_bytes` 0: no blocks. */
void ground_divide(struct ground *ground, size_t array_bytes, size_t block_bytes);
/* Bytes that the index and the times of blocks take, all threads together. */
double ground_beside_bytes(const struct run *run, const struct ground *ground, size_t array_bytes);

/* One for each thread, empty; to be freed. NULL without memory. */
struct walk *walks_make(unsigned threads);
/* Adds the metrics block_time_s_…, of all walks together. */
void walks_report_times(struct run *run, const struct walk *walks, const struct ground *ground);

/* Fills the arrays and the index, by the thread that will walk. 0 or an exit_code. */
int walk_begin(struct walk *walk, const struct ground *ground, const struct thread *thread);
void walk_end(struct walk *walk);
/* What was done so far, such as by kernels that were tried, is no part of the figures: neither its
 * units nor the times of its blocks. */
void walk_count_anew(struct walk *walk);
/* The units since then. */
uint64_t walk_units_done(const struct walk *walk);
/* Ends a block that was begun. */
void walk_to_block(struct walk *walk);
/* Ends a part that was begun: ground->libc_bytes each, the last of an array with what is left. */
void walk_to_part(struct walk *walk);
/* One call on the part that begins here; its bytes of an array. */
size_t walk_part(struct walk *walk);
/* Does `units` of work, and waits for its stores. */
void walk_units(struct walk *walk, uint64_t units);
/* The same with a kernel that does nothing, leaving all as it is. */
void walk_empty(const struct walk *walk, uint64_t units);
/* Whether so many units were done, and the arrays and the sum are what the kernels must have made of
 * them. Destroys them. 0 or an exit_code with its reason. */
int walk_verify(const struct thread *thread, struct walk *walk, uint64_t units);

#endif
