/* page_fault: the time of the first write to a page of memory. */
#define _GNU_SOURCE
#include "monotonic.h"
#include "pages.h"
#include "partner.h"
#include "textfile.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    REGION_BYTES = 4 * HUGE_PAGE_BYTES, /* given back when all of it has been touched */
    ATTEMPTS = 4,                       /* as many huge pages as the region has */
    FAULTS_TIMED = 64, /* small ones in a row, since reading the clock costs 5 % of one */
};

#define ENABLED "/sys/kernel/mm/transparent_hugepage/enabled"

/* Some faults are of the program's own stack and code, or of a sanitizer's. */
static const double FAULTS_OFF = 0.01, FAULTS_OF_OTHERS = 32;

static const char *const page_words[] = {"4k", "huge", NULL};

struct faulter {
    struct pages pages;
    size_t page_bytes;
    unsigned in_a_row;
    size_t touched; /* bytes of the region */
    uint64_t writes;
    long faults;
};

static const char *unsupported(const struct run *run)
{
    return pages_unsupported(page_mode_of(run_choice(run, "pages")));
}

static long minor_faults(void)
{
    struct rusage used;
    getrusage(RUSAGE_THREAD, &used);
    return used.ru_minflt;
}

/* Writes to the next pages; their mean time. Of a huge page, a second write shows whether it is
 * one: there is a second fault if not. What a sanitizer writes beside would be faults, too. */
__attribute__((noinline, no_sanitize("address"), no_sanitize("thread"))) static uint64_t
touch(struct faulter *faulter)
{
    volatile char *at = (volatile char *)faulter->pages.base + faulter->touched;
    uint64_t start_ns = now_ns();
    for (unsigned i = 0; i < faulter->in_a_row; i++)
        at[i * faulter->page_bytes] = 1;
    uint64_t taken_ns = now_ns() - start_ns;
    if (faulter->pages.mode == PAGES_HUGE)
        at[faulter->page_bytes - 1] = 1;
    faulter->touched += faulter->in_a_row * faulter->page_bytes;
    faulter->writes += faulter->in_a_row;
    return taken_ns / faulter->in_a_row;
}

static int give_back(struct run *run, struct faulter *faulter)
{
    faulter->touched = 0;
    if (madvise(faulter->pages.base, REGION_BYTES, MADV_DONTNEED) == 0)
        return EXIT_OK;
    return partner_lacks(run, "way to give memory back");
}

static int no_huge_page(struct run *run)
{
    char enabled[64];
    bool known = textfile_read(ENABLED, enabled, sizeof enabled);
    if (!known || strstr(enabled, "[never]"))
        run_reason(run, "the kernel gives no huge pages: write madvise to " ENABLED);
    else
        run_reason(run, "the kernel gives no huge page, though they are switched on: this process "
                        "may not have any (PR_SET_THP_DISABLE), or its free memory is in pieces; "
                        "free some, or write 1 to /proc/sys/vm/compact_memory");
    return EXIT_UNSUPPORTED;
}

static int setup(struct thread *thread)
{
    struct run *run = thread->run;
    enum page_mode mode = page_mode_of(run_choice(run, "pages"));
    struct faulter *faulter = calloc(1, sizeof *faulter);
    thread->state = faulter;
    if (!faulter)
        return partner_lacks(run, "memory");
    faulter->page_bytes = mode == PAGES_HUGE ? HUGE_PAGE_BYTES : (size_t)sysconf(_SC_PAGESIZE);
    faulter->in_a_row = mode == PAGES_HUGE ? 1 : FAULTS_TIMED;
    run_set_unit(run, 1, 1);
    if (mode != PAGES_HUGE)
        run_times_are_means(run);
    int failure = pages_reserve(run, &faulter->pages, REGION_BYTES, mode);
    if (failure || mode != PAGES_HUGE)
        return failure;
    /* One of a few is without a fault of the program's own code. */
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        long before = minor_faults();
        touch(faulter);
        if (minor_faults() - before <= 1)
            return EXIT_OK;
    }
    return no_huge_page(run);
}

static int loop(struct thread *thread)
{
    struct faulter *faulter = thread->state;
    int failure = give_back(thread->run, faulter);
    long before = minor_faults();
    faulter->writes = 0;
    while (!failure && !run_loop_over(thread, faulter->writes, now_s())) {
        uint64_t mean_ns = touch(faulter);
        for (unsigned i = 0; i < faulter->in_a_row; i++)
            run_loop_done(thread, 0, mean_ns);
        if (faulter->touched == REGION_BYTES)
            failure = give_back(thread->run, faulter);
    }
    faulter->faults = minor_faults() - before;
    return failure;
}

/* Were a page there already, or a huge one in the place of many, writing to it would be no fault;
 * small ones in the place of a huge one would be two. */
static int verify(struct thread *thread, uint64_t units)
{
    const struct faulter *faulter = thread->state;
    double faults = (double)faulter->faults, writes = (double)faulter->writes;
    (void)units;
    if (fabs(faults - writes) <= FAULTS_OFF * writes + FAULTS_OF_OTHERS)
        return EXIT_OK;
    run_reason(thread->run,
               "%" PRIu64 " first writes to pages made %ld page faults: the kernel gave other "
               "pages than requested, or does not count; there is no figure of one fault",
               faulter->writes, faulter->faults);
    return EXIT_RESOURCE;
}

static void finish(struct thread *thread)
{
    const struct faulter *faulter = thread->state;
    run_metric(thread->run, "faults_per_write",
               faulter->writes ? (double)faulter->faults / (double)faulter->writes : NAN);
}

static void teardown(struct thread *thread)
{
    struct faulter *faulter = thread->state;
    pages_release(&faulter->pages);
    free(faulter);
}

static const struct param params[] = {
    {.name = "pages",
     .type = PARAM_CHOICE,
     .initial = "4k",
     .choices = page_words,
     .roles = ROLE_AXIS | ROLE_TAG,
     .title = "page mode",
     .help = "4k: the base pages of this kernel, usually 4 KiB, without transparent huge pages; "
             "huge: transparent huge pages of 2 MiB."},
    {.name = NULL},
};

static const struct metric metrics[] = {
    {"faults_per_write", "1", LOWER_IS_BETTER,
     "Page faults that the kernel counted per first write to a page. It must be about 1; otherwise "
     "the trial has no figure."},
    {.name = NULL},
};

static const char *const excludes[] = {"threads", NULL};

WORKLOAD(page_fault) = {
    .name = "page_fault",
    .description = "Writes to memory pages for the first time, on one CPU: the kernel provides "
                   "each page and fills it with zeros.",
    .rate = {.name = "fault_time_s",
             .unit = "s",
             .description = "Median time of the first write to a page, which causes a minor page "
                            "fault. With 4k pages it is the median of means over 64 consecutive "
                            "writes. Releasing the pages is not included.",
             .combine = COMBINE_MEDIAN,
             .time = true},
    .params = params,
    .excludes = excludes,
    .metrics = metrics,
    .threads = partner_one_thread,
    .unsupported = unsupported,
    .setup = setup,
    .loop = loop,
    .verify = verify,
    .finish = finish,
    .teardown = teardown,
};
