/* Large arrays, in pages of the requested kind. */
#ifndef HOSTBENCH_PAGES_H
#define HOSTBENCH_PAGES_H

#include <stdatomic.h>
#include <stddef.h>

struct run;

enum page_mode {
    PAGES_4K,      /* transparent huge pages refused */
    PAGES_HUGE,    /* transparent huge pages requested: how many there are is to be looked up */
    PAGES_HUGETLB, /* of the pool that the administrator has reserved */
};

enum { HUGE_PAGE_BYTES = 2 * 1024 * 1024 };

struct pages {
    void *base;   /* at a multiple of HUGE_PAGE_BYTES */
    size_t bytes; /* whole huge pages: as many as requested, or a few more */
    enum page_mode mode;
    int node; /* to which the caller has bound it; below 0, as pages_reserve() leaves it: none */
    atomic_size_t *filled_bytes; /* by all threads so far */
    void *mapping;               /* with a guard before and behind, which keeps neighbours apart */
    size_t mapping_bytes;
};

/* The mode of "4k", "huge" or "hugetlb". */
enum page_mode page_mode_of(const char *word);
/* NULL, or why there can be no such pages here at all: no pool, switched off. */
const char *pages_unsupported(enum page_mode mode);
/* Reserves the addresses; no page is there before it is touched. 0 or an exit_code with its reason:
 * EXIT_UNSUPPORTED where the pool of huge pages is too small. */
int pages_reserve(struct run *run, struct pages *pages, size_t bytes, enum page_mode mode);
/* Brings in the pages of a part of a reservation, on the node of the calling thread unless a policy
 * says otherwise; they read as zero. Goes in small pieces, and looks between them whether memory is
 * left, that of `node` too, and the run goes on. 0 or an exit_code with its reason; EXIT_OK when the run is to end. */
int pages_touch(struct run *run, const struct pages *pages, void *at, size_t bytes);
/* Share of the touched reservation that huge pages back, as the kernel tells it; NaN: it does not. */
double pages_huge_ratio(const struct pages *pages);
/* Fewer than this share of a reservation are fewer than requested. */
extern const double ENOUGH_HUGE_PAGES;
/* The same share. A warning of the trial names it where requested huge pages are missing. */
double pages_inspect(const struct run *run, const struct pages *pages);
/* Gives all of it back. Of one that was never reserved (all zeros), too. */
void pages_release(struct pages *pages);

#endif
