/* The arrays that a run works on: how large they are, whether there is memory for them, on which
 * pages and NUMA node they lie. Each thread has its own part, in pages of its own. */
#ifndef MEM_BENCH_WORKING_SET_H
#define MEM_BENCH_WORKING_SET_H

#include "pages.h"
#include "workload.h"

/* What a workload asks for. */
struct demand {
    unsigned arrays;          /* of each thread, all of one size */
    size_t granule;           /* an array is a multiple of so many bytes, and not empty */
    const char *granule_name; /* what that is: a block */
    /* What the run needs beside arrays of so many bytes, all threads together, and a word for it.
     * May be NULL. */
    double (*beside_bytes)(const struct run *, size_t array_bytes);
    const char *beside_name;
    bool beyond_caches; /* a set that caches can hold spoils the figure */
};

struct working_set {
    struct pages pages;
    unsigned arrays;
    size_t array_bytes;
    size_t array_step;  /* from the beginning of one array of a thread to the next */
    size_t thread_step; /* from the part of one thread to the next */
    double huge_page_ratio;
};

/* Parameters of all workloads; the pages are those of the default. */
extern const char *const page_modes[], *const size_words[], *const node_words[];
#define PARAMS_WORKING_SET PARAMS_WORKING_SET_ON("huge")
#define PARAMS_WORKING_SET_ON(default_pages)                                                       \
    {.name = "pages",                                                                              \
     .type = PARAM_CHOICE,                                                                         \
     .initial = (default_pages),                                                                   \
     .choices = page_modes,                                                                        \
     .roles = ROLE_TAG,                                                                            \
     .title = "page mode",                                                                         \
     .help = "Page size of the arrays. huge: requests transparent huge pages of 2 MiB "            \
             "(huge_page_ratio reports the share obtained); hugetlb: uses pages from the pool "    \
             "that the administrator reserved."},                                                  \
        {.name = "size_bytes",                                                                     \
         .type = PARAM_COUNT,                                                                      \
         .unit = "byte",                                                                           \
         .initial = "auto",                                                                        \
         .min = 64,                                                                                \
         .max = 1e15,                                                                              \
         .choices = size_words,                                                                    \
         .roles = ROLE_AXIS,                                                                       \
         .title = "working set",                                                                   \
         .help =                                                                                   \
             "Working set: total size of all arrays of all threads; auto: 4 times the last-level " \
             "caches in use, at least 320 MB per thread, at most 60 % of the available memory."},  \
        {.name = "size_share",                                                                     \
         .type = PARAM_NUMBER,                                                                     \
         .unit = "1",                                                                              \
         .min = 1e-6,                                                                              \
         .max = 0.9,                                                                               \
         .excludes = "size_bytes",                                                                 \
         .help = "Working set as a share of the memory that this process may use."},               \
        {.name = "memory_node",                                                                    \
         .type = PARAM_COUNT,                                                                      \
         .initial = "local",                                                                       \
         .min = 0,                                                                                 \
         .max = 1023,                                                                              \
         .choices = node_words,                                                                    \
         .help = "NUMA node of the arrays; local: each thread's own node, by first touch."}

#define METRIC_HUGE_PAGE_RATIO                                                                     \
    {"huge_page_ratio", "1", HIGHER_IS_BETTER, "Share of the working set that lies in huge pages."}

/* For unsupported(): why there are no such pages. */
const char *working_set_unsupported(const struct run *run);
/* For check(): resolves the size, and refuses one that does not fit. */
int working_set_check(struct run *run, const struct demand *demand);
/* For check(): whether --stride-bytes is whole cache lines; on one of each stride lies one of
 * `what`: "nodes". */
int working_set_check_stride(struct run *run, const char *what);
/* The bytes of one array of one thread, after check(). */
size_t working_set_array_bytes(const struct run *run, const struct demand *demand);
/* For open(): reserves the addresses. To be released even if it fails. */
int working_set_reserve(struct run *run, struct working_set *set, const struct demand *demand);
void working_set_release(struct working_set *set);
/* For setup(): the calling thread touches its part first. */
int working_set_touch(const struct thread *thread, const struct working_set *set);
void *working_set_array(const struct working_set *set, unsigned thread, unsigned array);
/* For calibrate(), on thread 0: what pages were got, and warnings about it. */
void working_set_inspect(struct run *run, struct working_set *set);

#endif
