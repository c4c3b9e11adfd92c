#include "working_set.h"

#include "caches.h"
#include "kernels.h"
#include "memory.h"
#include "memory_node.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const page_modes[] = {"4k", "huge", "hugetlb", NULL};
const char *const size_words[] = {"auto", NULL};
const char *const node_words[] = {"local", NULL};

static const double AUTO_CACHES = 4; /* times the last-level caches; of all arrays together */
static const double AUTO_THREAD_BYTES = 320e6; /* four times 80 MB, for caches of unknown size */
static const double AUTO_SHARE = 0.6;          /* of the budget */
/* Smaller shares of the memory needed are not named. */
static const double SHARE_NAMED = 0.01;
static const double USABLE_SHARE = 0.95; /* page tables, and whatever else grows meanwhile */

/* Arrays begin some pages and lines apart, the one that is written first: at the same offset in
 * their pages they would share the sets of a cache, and a load would wait for the store before it
 * whose address ends alike. */
enum { STAGGER_BYTES = 5 * PAGE_BYTES + 4 * LINE_BYTES };

static size_t rounded_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* ---- layout --------------------------------------------------------------------------------- */

static void lay_out(struct working_set *set, const struct demand *demand, size_t array_bytes)
{
    set->arrays = demand->arrays;
    set->array_bytes = array_bytes;
    set->array_step = rounded_up(array_bytes, PAGE_BYTES) + STAGGER_BYTES;
    set->thread_step = rounded_up(demand->arrays * set->array_step, HUGE_PAGE_BYTES);
}

void *working_set_array(const struct working_set *set, unsigned thread, unsigned array)
{
    return (char *)set->pages.base + thread * set->thread_step + array * set->array_step;
}

/* ---- size ----------------------------------------------------------------------------------- */

struct needs {
    double arrays_bytes, beside_bytes, threads_bytes;
};

static double total(const struct needs *needs)
{
    return needs->arrays_bytes + needs->beside_bytes + needs->threads_bytes;
}

/* Of arrays of this size. A pool of huge pages has been set aside before. */
static struct needs needs_of(const struct run *run, const struct demand *demand, size_t array_bytes)
{
    struct working_set set;
    bool pooled = page_mode_of(run_choice(run, "pages")) == PAGES_HUGETLB;
    lay_out(&set, demand, array_bytes);
    return (struct needs){
        .arrays_bytes = pooled ? 0 : (double)set.thread_step * run_threads(run),
        .beside_bytes = demand->beside_bytes ? demand->beside_bytes(run, array_bytes) : 0,
        .threads_bytes = run_thread_bytes(run),
    };
}

static size_t array_bytes_of(const struct run *run, const struct demand *demand, double size)
{
    double each = size / run_threads(run) / demand->arrays;
    return (size_t)each / demand->granule * demand->granule;
}

static double size_of(const struct run *run, const struct demand *demand, size_t array_bytes)
{
    return (double)array_bytes * demand->arrays * run_threads(run);
}

/* The largest arrays, at most of these bytes, whose needs are at most `usable`; 0: none. */
static size_t largest_array(const struct run *run, const struct demand *demand, size_t most,
                            double usable)
{
    size_t fits = 0, too_much = most / demand->granule + 1;
    while (too_much - fits > 1) {
        size_t middle = fits + (too_much - fits) / 2;
        struct needs needs = needs_of(run, demand, middle * demand->granule);
        if (total(&needs) <= usable)
            fits = middle;
        else
            too_much = middle;
    }
    return fits * demand->granule;
}

static bool budget_read(const struct run *run, struct memory_budget *budget)
{
    if (!run_memory_budget(run, budget))
        budget->bytes = INFINITY;
    if (!run_choice(run, "memory_node"))
        memory_budget_bind(budget, (int)run_count(run, "memory_node"), "/sys");
    return isfinite(budget->bytes);
}

/* The option that sets the size, as a reason begins. */
static void name_asker(const struct run *run, char *text, size_t size)
{
    if (!run_choice(run, "size_bytes"))
        snprintf(text, size, "--size-bytes %" PRIu64, run_count(run, "size_bytes"));
    else if (run_param_set(run, "size_share"))
        snprintf(text, size, "--size-share %g", run_number(run, "size_share"));
    else
        snprintf(text, size, "--size-bytes auto");
}

/* ", 512 MiB of it index" of a share of the memory; nothing where it does not matter. */
static void name_share(char *text, size_t size, double bytes, double all_bytes, const char *what)
{
    char words[MEMORY_WORDS];
    text[0] = '\0';
    if (bytes >= SHARE_NAMED * all_bytes)
        snprintf(text, size, ", %s of it %s", memory_in_words(bytes, words), what);
}

static int lacks_memory(struct run *run, const struct demand *demand, size_t array_bytes,
                        const struct memory_budget *budget)
{
    struct needs needs = needs_of(run, demand, array_bytes);
    double usable = USABLE_SHARE * budget->bytes, all = total(&needs);
    size_t fits = largest_array(run, demand, array_bytes, usable);
    char asker[64], beside[96], stacks[96], threads[32], remedy[96] = "use fewer threads";
    name_asker(run, asker, sizeof asker);
    name_share(beside, sizeof beside, needs.beside_bytes, all, demand->beside_name);
    snprintf(threads, sizeof threads, "for %u thread%s", run_threads(run),
             run_threads(run) > 1 ? "s" : "");
    name_share(stacks, sizeof stacks, needs.threads_bytes, all, threads);
    if (fits > 0)
        snprintf(remedy, sizeof remedy, "at most --size-bytes %.0f fits",
                 size_of(run, demand, fits));
    char needed_words[MEMORY_WORDS], usable_words[MEMORY_WORDS];
    run_reason(run, "%s: %s of memory are needed%s%s, %s may be taken (95 %% of %s): %s", asker,
               memory_in_words(all, needed_words), beside, stacks,
               memory_in_words(usable, usable_words), budget->limit, remedy);
    return EXIT_RESOURCE;
}

static int too_small(struct run *run, const struct demand *demand)
{
    char asker[64];
    name_asker(run, asker, sizeof asker);
    run_reason(run,
               "%s is too small: %u thread%s with %u array%s each, of one %s of %zu bytes or more, "
               "need at least --size-bytes %.0f",
               asker, run_threads(run), run_threads(run) > 1 ? "s" : "", demand->arrays,
               demand->arrays > 1 ? "s" : "", demand->granule_name, demand->granule,
               size_of(run, demand, demand->granule));
    return EXIT_USAGE;
}

static void warn_of_caches(const struct run *run, double size, const struct caches *caches,
                           bool chosen)
{
    char set[MEMORY_WORDS], llc[MEMORY_WORDS];
    memory_in_words(size, set);
    memory_in_words(caches->llc, llc);
    if (chosen)
        run_warning(run, "cache_influenced",
                    "the working set of %s is all that 60 %% of the memory allows, less than 4 "
                    "times the last-level caches (%s): part of it stays in them",
                    set, llc);
    else
        run_warning(run, "cache_influenced",
                    "the working set of %s is less than 4 times the last-level caches (%s): part "
                    "of it, or all, stays in them",
                    set, llc);
}

static double automatic_size(const struct run *run, const struct demand *demand,
                             const struct caches *caches, const struct memory_budget *budget)
{
    double wanted = fmax(AUTO_CACHES * caches->llc, AUTO_THREAD_BYTES * run_threads(run));
    size_t array_bytes = array_bytes_of(run, demand, wanted) + demand->granule;
    return size_of(run, demand,
                   largest_array(run, demand, array_bytes, AUTO_SHARE * budget->bytes));
}

/* Each thread gets as many elements; what is left of its part behind whole lines or blocks is not
 * used. */
static int check_split(struct run *run)
{
    uint64_t size = run_count(run, "size_bytes"), threads = run_threads(run);
    uint64_t each = threads * ELEMENT_BYTES;
    if (size % each == 0)
        return EXIT_OK;
    run_reason(run,
               "--size-bytes %" PRIu64 " does not split over %" PRIu64
               " threads in elements of %d bytes: use %" PRIu64 " or %" PRIu64,
               size, threads, ELEMENT_BYTES, size / each * each, (size / each + 1) * each);
    return EXIT_USAGE;
}

/* The size that the parameters ask for, in bytes. */
static int requested_size(struct run *run, const struct demand *demand, const struct caches *caches,
                          const struct memory_budget *budget, double *size)
{
    bool given = !run_choice(run, "size_bytes"), share = run_param_set(run, "size_share");
    if (given) {
        *size = (double)run_count(run, "size_bytes");
        return check_split(run);
    }
    if (share && !isfinite(budget->bytes)) {
        run_reason(
            run,
            "--size-share: this kernel does not report how much memory there is: use --size-bytes");
        return EXIT_RESOURCE;
    }
    *size = share ? run_number(run, "size_share") * budget->bytes
                  : automatic_size(run, demand, caches, budget);
    return EXIT_OK;
}

int working_set_check(struct run *run, const struct demand *demand)
{
    struct memory_budget budget;
    struct caches caches;
    double size;
    bool given = !run_choice(run, "size_bytes");
    bool chosen = !given && !run_param_set(run, "size_share");
    int failure = memory_node_check(run);
    if (failure)
        return failure;
    budget_read(run, &budget);
    run_caches(run, &caches);
    failure = requested_size(run, demand, &caches, &budget, &size);
    if (failure)
        return failure;
    size_t array_bytes = array_bytes_of(run, demand, size);
    if (array_bytes == 0)
        return chosen ? lacks_memory(run, demand, demand->granule, &budget)
                      : too_small(run, demand);
    struct needs needs = needs_of(run, demand, array_bytes);
    if (total(&needs) > USABLE_SHARE * budget.bytes)
        return lacks_memory(run, demand, array_bytes, &budget);
    size = size_of(run, demand, array_bytes);
    if (!given)
        run_set_count(run, "size_bytes", (uint64_t)size);
    if (size < AUTO_CACHES * caches.llc && (demand->beyond_caches || chosen))
        warn_of_caches(run, size, &caches, chosen);
    return EXIT_OK;
}

int working_set_check_stride(struct run *run, const char *what)
{
    uint64_t stride = run_count(run, "stride_bytes"), line = LINE_BYTES;
    if (stride % line == 0)
        return EXIT_OK;
    run_reason(run,
               "--stride-bytes %" PRIu64 ": %s are on cache lines of %" PRIu64 " bytes: take "
               "%" PRIu64 " or %" PRIu64,
               stride, what, line, stride / line * line, (stride / line + 1) * line);
    return EXIT_USAGE;
}

size_t working_set_array_bytes(const struct run *run, const struct demand *demand)
{
    return array_bytes_of(run, demand, (double)run_count(run, "size_bytes"));
}

/* ---- memory --------------------------------------------------------------------------------- */

const char *working_set_unsupported(const struct run *run)
{
    return pages_unsupported(page_mode_of(run_choice(run, "pages")));
}

int working_set_reserve(struct run *run, struct working_set *set, const struct demand *demand)
{
    lay_out(set, demand, working_set_array_bytes(run, demand));
    set->huge_page_ratio = NAN;
    int failure = pages_reserve(run, &set->pages, set->thread_step * run_threads(run),
                                page_mode_of(run_choice(run, "pages")));
    if (!failure && !run_choice(run, "memory_node"))
        set->pages.node = (int)run_count(run, "memory_node");
    return failure;
}

void working_set_release(struct working_set *set)
{
    pages_release(&set->pages);
}

int working_set_touch(const struct thread *thread, const struct working_set *set)
{
    void *part = working_set_array(set, thread->index, 0);
    int failure = memory_node_bind(thread, part, set->thread_step);
    return failure ? failure
                   : pages_touch(thread->run, &set->pages, part, set->arrays * set->array_step);
}

void working_set_inspect(struct run *run, struct working_set *set)
{
    set->huge_page_ratio = pages_inspect(run, &set->pages);
    memory_node_inspect(run, set->pages.base, set->thread_step, set->arrays * set->array_step);
}
