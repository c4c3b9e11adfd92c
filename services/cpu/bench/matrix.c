#define _GNU_SOURCE
#include "matrix.h"

#include "memory.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { LINE_BYTES = 64, HUGE_PAGE_BYTES = 2 << 20 };

/* Of what is left: page tables, and whatever else grows meanwhile. */
static const double SPARED_RATIO = 0.02;

size_t matrix_leading_dimension(size_t n, size_t size)
{
    size_t lines = (n * size + LINE_BYTES - 1) / LINE_BYTES;
    return (lines | 1) * LINE_BYTES / size;
}

/* The largest order whose memory is at most `most` bytes; 0: none. */
static size_t largest_order(matrix_bytes *bytes, unsigned threads, size_t n, double most)
{
    size_t fits = 0;
    while (n - fits > 1) {
        size_t middle = fits + (n - fits) / 2;
        if (bytes(middle, threads) <= most)
            fits = middle;
        else
            n = middle;
    }
    return fits;
}

size_t matrix_largest_order(const struct run *run, size_t n, matrix_bytes *bytes)
{
    struct memory_budget left;
    if (!run_memory_budget(run, &left))
        return n;
    double usable = (1 - SPARED_RATIO) * left.bytes;
    return bytes(n, run_threads(run)) <= usable ? n
                                                : largest_order(bytes, run_threads(run), n, usable);
}

int matrix_check_fits(struct run *run, size_t n, matrix_bytes *bytes)
{
    struct memory_budget left;
    unsigned threads = run_threads(run);
    double needed = bytes(n, threads);
    if (!run_memory_budget(run, &left))
        return EXIT_OK;
    double usable = (1 - SPARED_RATIO) * left.bytes;
    if (needed <= usable)
        return EXIT_OK;
    char needed_words[MEMORY_WORDS], left_words[MEMORY_WORDS];
    run_reason(run, "--n %zu needs %s of memory, %s are left (%s): the largest n that fits is %zu",
               n, memory_in_words(needed, needed_words), memory_in_words(left.bytes, left_words),
               left.limit, largest_order(bytes, threads, n, usable));
    return EXIT_RESOURCE;
}

int matrix_check_still_fits(struct run *run, const atomic_size_t *unfilled_bytes)
{
    struct memory_budget left;
    if (!memory_left_read(&left, "/proc", "/sys"))
        return EXIT_OK;
    /* Only now: what another thread fills in between is then missing in neither. */
    double needed = (double)atomic_load(unfilled_bytes);
    if (needed <= left.bytes)
        return EXIT_OK;
    char needed_words[MEMORY_WORDS], left_words[MEMORY_WORDS];
    run_reason(run,
               "memory ran short while it was filled: %s are still needed, %s are left (%s): stop "
               "what uses it, or use a smaller --n",
               memory_in_words(needed, needed_words), memory_in_words(left.bytes, left_words),
               left.limit);
    return EXIT_RESOURCE;
}

static size_t mapped_bytes(size_t bytes)
{
    return (bytes + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
}

void *matrix_map(struct run *run, size_t bytes)
{
    size_t size = mapped_bytes(bytes);
    /* One huge page more, to begin at a multiple of one. */
    char *memory = mmap(NULL, size + HUGE_PAGE_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        char words[MEMORY_WORDS];
        run_reason(run, "no %s of address space (%s): use a smaller --n or raise ulimit -v",
                   memory_in_words((double)size, words), strerror(errno));
        return NULL;
    }
    size_t ahead = -(uintptr_t)memory % HUGE_PAGE_BYTES;
    if (ahead)
        munmap(memory, ahead);
    munmap(memory + ahead + size, HUGE_PAGE_BYTES - ahead);
    /* A kernel without them refuses; the share that was got is a metric. */
    madvise(memory + ahead, size, MADV_HUGEPAGE);
    return memory + ahead;
}

void matrix_unmap(void *memory, size_t bytes)
{
    if (memory)
        munmap(memory, mapped_bytes(bytes));
}

double matrix_huge_page_ratio(const void *memory, size_t bytes)
{
    char line[512];
    uintptr_t first = (uintptr_t)memory, end = first + mapped_bytes(bytes), from = 0, to = 0;
    double huge_kb = NAN, kb;
    FILE *stream = fopen("/proc/self/smaps", "re");
    while (stream && fgets(line, sizeof line, stream)) {
        uintptr_t begins, ends;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &begins, &ends) == 2) {
            from = begins;
            to = ends;
        }
        /* Neighbouring mappings may be one. */
        if (from <= first && end <= to && sscanf(line, "AnonHugePages: %lf kB", &kb) == 1)
            huge_kb = kb * (double)(end - first) / (double)(to - from);
    }
    if (stream)
        fclose(stream);
    return huge_kb * 1024 / (double)(end - first);
}
