/* The matrix of numa: pairs of a node with CPUs and a node with memory, what each pair has shown, and
 * the memory itself. */
#ifndef MEM_BENCH_NUMA_MATRIX_H
#define MEM_BENCH_NUMA_MATRIX_H

#include "chase.h"
#include "kernels.h"
#include "pages.h"
#include "statistics.h"
#include "workload.h"

enum { NUMA_CHUNK_BYTES = 1 << 18 }; /* read between two looks at the clock: some 10 to 100 µs */

enum figure { IDLE_TIME, LOADED_TIME, BANDWIDTH, LOAD, FIGURES };

/* What is done to a pair in a round: the time idle, the bandwidth, the time under load. */
enum { NUMA_STEPS = 3 };

/* The CPUs of a node; the first thread leads what they do. */
struct side {
    int node;
    unsigned *threads;
    unsigned count;
};

/* The memory of a node: pointers lead through its first half, the second one is read. */
struct home {
    int node;
    struct pages pages;
    size_t half_bytes;
    struct chase chase;
    uint64_t units; /* of the chase */
    uint64_t chunks;
    uint64_t *sums; /* what each chunk adds up to */
};

struct pair {
    const struct side *side;
    struct home *home;
    struct reservoir seen[FIGURES];
    double figures[FIGURES]; /* medians; NaN: none */
};

struct matrix {
    struct side *sides;
    struct home *homes;
    struct pair *pairs;
    size_t side_count, home_count, pair_count;
    kernel_function *read;
    double step_s; /* how long a step takes */
    uint64_t step; /* which of the steps of a round over all pairs, and how many there were */
    /* Of the timed region: its first step, and when that began. */
    uint64_t first_step;
    double began_s;
};

/* Gives the reason; EXIT_RESOURCE. */
int numa_lacks_memory(struct run *run);
/* Reserves the memory and chooses the pairs and the length of a step, so that a round takes no longer
 * than the run is to. The matrix is zeroed before. 0 or an exit_code with its reason. */
int numa_matrix_open(struct run *run, struct matrix *matrix);
/* Of one that was opened in part, too. */
void numa_matrix_close(struct matrix *matrix);

/* Fills the memory of the nodes that are this thread's to fill. 0 or an exit_code with its reason. */
int numa_matrix_fill(const struct thread *thread, struct matrix *matrix);
/* Whether each page of that memory is where it belongs, and the pointers led where they should. 0 or
 * an exit_code with its reason. */
int numa_matrix_verify(const struct thread *thread, const struct matrix *matrix);

/* A part of the half that is read. */
unsigned char *numa_chunk(const struct home *home, uint64_t chunk);

#endif
