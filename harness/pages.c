#define _GNU_SOURCE
#include "pages.h"

#include "memory.h"
#include "run.h"
#include "textfile.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#ifndef MAP_HUGE_2MB
#define MAP_HUGE_2MB (21 << 26)
#endif

/* A part is touched in so many pieces, of these sizes. */
enum { PIECES = 16, PIECE_MIN = HUGE_PAGE_BYTES, PIECE_MAX = 16 * HUGE_PAGE_BYTES };

const double ENOUGH_HUGE_PAGES = 0.99;

#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"

static size_t rounded_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

enum page_mode page_mode_of(const char *word)
{
    if (!strcmp(word, "4k"))
        return PAGES_4K;
    return !strcmp(word, "hugetlb") ? PAGES_HUGETLB : PAGES_HUGE;
}

const char *pages_unsupported(enum page_mode mode)
{
    double pages;
    if (mode != PAGES_HUGETLB)
        return NULL;
    if (!textfile_number(POOL "nr_hugepages", &pages))
        return "this kernel keeps no pool of 2 MiB pages";
    return pages > 0 ? NULL : "no 2 MiB pages are reserved here (vm.nr_hugepages is 0)";
}

/* ---- reserving ------------------------------------------------------------------------------ */

static int no_addresses(struct run *run, size_t bytes)
{
    char words[MEMORY_WORDS];
    run_reason(run, "no %s of address space (%s): use less, or raise ulimit -v",
               memory_in_words((double)bytes, words), strerror(errno));
    return EXIT_RESOURCE;
}

static int no_pool(struct run *run, size_t bytes)
{
    double free_pages = 0, reserved_pages = 0;
    textfile_number(POOL "free_hugepages", &free_pages);
    textfile_number(POOL "resv_hugepages", &reserved_pages);
    run_reason(run,
               "%zu pages of 2 MiB are needed, %.0f are free in the pool (%s): reserve more "
               "(vm.nr_hugepages), use less, or use other pages",
               bytes / HUGE_PAGE_BYTES, free_pages - reserved_pages, strerror(errno));
    return EXIT_UNSUPPORTED;
}

/* Makes the middle of the mapping usable. */
static int open_middle(struct run *run, const struct pages *pages)
{
    int pooled = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_HUGETLB | MAP_HUGE_2MB;
    if (pages->mode == PAGES_HUGETLB) {
        void *middle = mmap(pages->base, pages->bytes, PROT_READ | PROT_WRITE, pooled, -1, 0);
        return middle == MAP_FAILED ? no_pool(run, pages->bytes) : EXIT_OK;
    }
    if (mprotect(pages->base, pages->bytes, PROT_READ | PROT_WRITE))
        return no_addresses(run, pages->bytes);
    /* A kernel without them refuses either; the share that was got is looked up. */
    madvise(pages->base, pages->bytes, pages->mode == PAGES_HUGE ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return EXIT_OK;
}

int pages_reserve(struct run *run, struct pages *pages, size_t bytes, enum page_mode mode)
{
    *pages = (struct pages){.bytes = rounded_up(bytes, HUGE_PAGE_BYTES), .mode = mode, .node = -1};
    /* One huge page to begin at a multiple of one, and guards of at least a page. */
    pages->mapping_bytes = pages->bytes + 2 * HUGE_PAGE_BYTES;
    void *mapping = mmap(NULL, pages->mapping_bytes, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pages->filled_bytes = calloc(1, sizeof *pages->filled_bytes);
    if (mapping != MAP_FAILED)
        pages->mapping = mapping;
    if (!pages->mapping || !pages->filled_bytes) {
        int failure = no_addresses(run, pages->mapping_bytes);
        pages_release(pages);
        return failure;
    }
    pages->base = (char *)mapping + HUGE_PAGE_BYTES - (uintptr_t)mapping % HUGE_PAGE_BYTES;
    int failure = open_middle(run, pages);
    if (failure)
        pages_release(pages);
    return failure;
}

void pages_release(struct pages *pages)
{
    if (pages->mapping)
        munmap(pages->mapping, pages->mapping_bytes);
    free(pages->filled_bytes);
    *pages = (struct pages){0};
}

/* ---- touching ------------------------------------------------------------------------------- */

/* Pages of the pool were set aside when they were reserved. The others are there while memory is:
 * all threads may be about to fill a piece, as long as that much is not filled. */
static int check_left(struct run *run, const struct pages *pages, size_t piece)
{
    struct memory_budget left;
    if (pages->mode == PAGES_HUGETLB || !memory_left_read(&left, "/proc", "/sys"))
        return EXIT_OK;
    if (pages->node >= 0)
        memory_budget_bind(&left, pages->node, "/sys");
    /* Only now: what another thread fills in between is then missing in neither. */
    double unfilled = (double)pages->bytes - (double)atomic_load(pages->filled_bytes);
    double needed = fmin((double)piece * run_threads(run), unfilled);
    if (left.bytes >= needed)
        return EXIT_OK;
    char left_words[MEMORY_WORDS], needed_words[MEMORY_WORDS];
    run_reason(run,
               "memory ran short while it was filled: %s are left (%s), the next pieces of all "
               "threads use %s: stop what uses it, or use less",
               memory_in_words(left.bytes, left_words), left.limit,
               memory_in_words(needed, needed_words));
    return EXIT_RESOURCE;
}

/* The kernel fills whole pages, without a fault for each; one that cannot is made to by writing. */
static int fill(struct run *run, char *at, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t ahead = (uintptr_t)at % page;
    if (madvise(at - ahead, rounded_up(bytes + ahead, page), MADV_POPULATE_WRITE) == 0)
        return EXIT_OK;
    if (errno != EINVAL) {
        char words[MEMORY_WORDS];
        run_reason(run,
                   "the kernel gave no pages for %s (%s): use less, or check for a limit on such "
                   "pages in the control group",
                   memory_in_words((double)bytes, words), strerror(errno));
        return EXIT_RESOURCE;
    }
    memset(at, 0, bytes);
    return EXIT_OK;
}

int pages_touch(struct run *run, const struct pages *pages, void *at, size_t bytes)
{
    size_t piece = rounded_up(bytes / PIECES + 1, PIECE_MIN);
    char *next = at, *end = next + bytes;
    if (piece > PIECE_MAX)
        piece = PIECE_MAX;
    while (next < end && !run_stopping(run)) {
        size_t left = (size_t)(end - next), now = left < piece ? left : piece;
        int failure = check_left(run, pages, now);
        if (!failure)
            failure = fill(run, next, now);
        if (failure)
            return failure;
        atomic_fetch_add(pages->filled_bytes, now);
        next += now;
    }
    return EXIT_OK;
}

/* ---- what was got --------------------------------------------------------------------------- */

/* Sums of /proc/self/smaps over the reservation, in KiB: parts of it with a policy of their own are
 * mappings of their own. */
struct backing {
    double resident, huge;
};

static void add_line(struct backing *backing, const char *line)
{
    double kb;
    if (sscanf(line, "Rss: %lf kB", &kb) == 1)
        backing->resident += kb;
    else if (sscanf(line, "AnonHugePages: %lf kB", &kb) == 1)
        backing->huge += kb;
    else if (sscanf(line, "Private_Hugetlb: %lf kB", &kb) == 1) { /* not in Rss */
        backing->resident += kb;
        backing->huge += kb;
    }
}

double pages_huge_ratio(const struct pages *pages)
{
    char line[512];
    uintptr_t first = (uintptr_t)pages->base, end = first + pages->bytes;
    struct backing backing = {0};
    bool inside = false;
    FILE *stream = fopen("/proc/self/smaps", "re");
    while (stream && fgets(line, sizeof line, stream)) {
        uintptr_t from, to;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2)
            inside = first <= from && to <= end;
        else if (inside)
            add_line(&backing, line);
    }
    if (stream)
        fclose(stream);
    return backing.resident > 0 ? backing.huge / backing.resident : NAN;
}

double pages_inspect(const struct run *run, const struct pages *pages)
{
    double ratio = pages_huge_ratio(pages);
    if (pages->mode == PAGES_HUGE && ratio < ENOUGH_HUGE_PAGES)
        run_warning(run, "huge_pages_missing",
                    "only %.0f %% of the working set lies in huge pages: the kernel refuses them "
                    "(/sys/kernel/mm/transparent_hugepage/enabled) or has no free ones; the figure "
                    "holds for this mixture",
                    100 * ratio);
    return ratio;
}
