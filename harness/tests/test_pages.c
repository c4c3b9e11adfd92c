/* Arrays in pages of each kind, from this kernel. */
#define _GNU_SOURCE
#include "pages.h"

#include "check.h"
#include "run.h"

#include <math.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MIB = 1024 * 1024 };

static struct run run = {.threads = 1, .lock = PTHREAD_MUTEX_INITIALIZER};

/* Pages of a range that are in memory. */
static size_t resident(const struct pages *pages)
{
    static unsigned char in[64 * MIB / 4096];
    size_t page = (size_t)sysconf(_SC_PAGESIZE), count = 0;
    CHECK(pages->bytes / page <= sizeof in && mincore(pages->base, pages->bytes, in) == 0);
    for (size_t i = 0; i < pages->bytes / page; i++)
        count += in[i] & 1;
    return count;
}

static bool all_zero(const char *at, size_t bytes)
{
    return at[0] == 0 && !memcmp(at, at + 1, bytes - 1);
}

static void nothing_is_there_before_it_is_touched(void)
{
    struct pages pages;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    CHECK(pages_reserve(&run, &pages, 10 * MIB + 1, PAGES_4K) == EXIT_OK);
    CHECK((uintptr_t)pages.base % HUGE_PAGE_BYTES == 0 && pages.bytes == 12 * MIB);
    CHECK(resident(&pages) == 0 && isnan(pages_huge_ratio(&pages)));
    /* A part that ends inside a page. */
    CHECK(pages_touch(&run, &pages, (char *)pages.base + 4 * MIB, 3 * MIB + 1) == EXIT_OK);
    CHECK(resident(&pages) == 3 * MIB / page + 1);
    CHECK(all_zero((char *)pages.base + 4 * MIB, 3 * MIB + 1));
    CHECK(pages_huge_ratio(&pages) == 0);
    pages_release(&pages);
    CHECK(!pages.base);
    pages_release(&pages);
}

/* As many as the kernel has: whether it gives huge ones is its affair, but not the sum. */
static void neighbours_are_distinguished(void)
{
    struct pages huge, small;
    CHECK(pages_reserve(&run, &small, 8 * MIB, PAGES_4K) == EXIT_OK);
    CHECK(pages_reserve(&run, &huge, 8 * MIB, PAGES_HUGE) == EXIT_OK);
    CHECK(pages_touch(&run, &small, small.base, small.bytes) == EXIT_OK);
    CHECK(pages_touch(&run, &huge, huge.base, huge.bytes) == EXIT_OK);
    CHECK(pages_huge_ratio(&small) == 0);
    double ratio = pages_huge_ratio(&huge);
    CHECK(ratio >= 0 && ratio <= 1);
    /* A policy or advice of its own splits the mapping; the parts still count together. */
    CHECK(madvise(huge.base, 2 * MIB, MADV_DONTFORK) == 0);
    CHECK(pages_huge_ratio(&huge) == ratio);
    pages_release(&small);
    CHECK(pages_huge_ratio(&huge) == ratio);
    pages_release(&huge);
}

static void what_was_written_stays(void)
{
    struct pages pages;
    CHECK(pages_reserve(&run, &pages, 4 * MIB, PAGES_HUGE) == EXIT_OK);
    memset(pages.base, 7, pages.bytes);
    CHECK(pages_touch(&run, &pages, pages.base, pages.bytes) == EXIT_OK);
    CHECK(((char *)pages.base)[MIB] == 7);
    pages_release(&pages);
}

static void a_run_that_ends_touches_no_more(void)
{
    struct pages pages;
    CHECK(pages_reserve(&run, &pages, 4 * MIB, PAGES_4K) == EXIT_OK);
    atomic_store(&run.stopping, true);
    CHECK(pages_touch(&run, &pages, pages.base, pages.bytes) == EXIT_OK);
    CHECK(resident(&pages) == 0);
    atomic_store(&run.stopping, false);
    pages_release(&pages);
}

static void memory_that_is_not_left_is_not_taken(void)
{
    struct run many = {.threads = 1 << 30, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct pages pages;
    CHECK(pages_reserve(&many, &pages, (size_t)1 << 42, PAGES_4K) == EXIT_OK);
    CHECK(pages_touch(&many, &pages, pages.base, 4 * MIB) == EXIT_RESOURCE);
    CHECK(strstr(many.reason, "memory ran short while it was filled"));
    pages_release(&pages);
    /* However many threads, they fill no more than there is to fill. */
    CHECK(pages_reserve(&many, &pages, 4 * MIB, PAGES_4K) == EXIT_OK);
    CHECK(pages_touch(&many, &pages, pages.base, 4 * MIB) == EXIT_OK);
    CHECK(resident(&pages) == 4 * MIB / (size_t)sysconf(_SC_PAGESIZE));
    pages_release(&pages);
}

static void addresses_run_out(void)
{
    struct run one = {.threads = 1, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct pages pages;
    CHECK(pages_reserve(&one, &pages, (size_t)1 << 60, PAGES_HUGE) == EXIT_RESOURCE);
    CHECK(strstr(one.reason, "iB of address space") && !pages.base);
}

/* A pool that is empty, or too small for an array of 1 TiB. */
static void a_pool_that_is_too_small_is_no_failure(void)
{
    struct run one = {.threads = 1, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct pages pages;
    CHECK(page_mode_of("hugetlb") == PAGES_HUGETLB && page_mode_of("4k") == PAGES_4K &&
          page_mode_of("huge") == PAGES_HUGE);
    CHECK(!pages_unsupported(PAGES_HUGE));
    CHECK(pages_reserve(&one, &pages, (size_t)1 << 40, PAGES_HUGETLB) == EXIT_UNSUPPORTED);
    CHECK(strstr(one.reason, "pages of 2 MiB are needed") && !pages.base);
    if (pages_unsupported(PAGES_HUGETLB))
        return;
    if (pages_reserve(&one, &pages, 2 * MIB, PAGES_HUGETLB))
        return; /* others have taken it */
    CHECK(pages_touch(&one, &pages, pages.base, pages.bytes) == EXIT_OK);
    CHECK(pages_huge_ratio(&pages) == 1);
    pages_release(&pages);
}

int main(void)
{
    nothing_is_there_before_it_is_touched();
    neighbours_are_distinguished();
    what_was_written_stays();
    a_run_that_ends_touches_no_more();
    memory_that_is_not_left_is_not_taken();
    addresses_run_out();
    a_pool_that_is_too_small_is_no_failure();
    return 0;
}
