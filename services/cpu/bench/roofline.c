/* roofline: vectors are read from memory in order, and each goes into as many fused multiply-adds as
 * the parameter says. Few of them, and memory is the limit; many, and the core is. After Williams,
 * Waterman and Patterson, "Roofline", CACM 52(4), 2009. */
#include "caches.h"
#include "cpu_features.h"
#include "lanes.h"
#include "loops.h"
#include "memory.h"
#include "monotonic.h"
#include "pages.h"
#include "vector_kernel.h"
#include "workload.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum {
    CLOCK_ITERATIONS = 1200, /* as the other kernels' */
    REARM_ITERATIONS = 200,  /* of the loop of `fma`: some tens of thousands of instructions */
    COLUMN_VALUES = 7,       /* which a vector's lanes take in turn … */
    UNIT_VALUES = 4,         /* … and units add in turn: the contents repeat after so many */
    FILL_BYTES = 1 << 20,    /* between two looks whether the run is to end */
    SIZE_LEAST = 256 * 1024, /* so long a call that its beginning and end do not matter */
};

static const double AUTO_CACHES = 4;
static const double AUTO_LEAST_BYTES = 256e6; /* of caches that are not known */
static const double AUTO_SHARE = 0.6;
static const double USABLE_SHARE = 0.95; /* page tables, and whatever else grows meanwhile */

/* A unit of work is one vector for each accumulator. With the constants ½ and 2 an accumulator gets
 * half of what its vector holds, then 1 for each further multiply-add: whole numbers, so that the
 * sums are exact. */
static const double HALF = 0.5, TWO = 2;

struct shared {
    struct pages pages;
    size_t thread_step;
    uint64_t units; /* of one thread's array */
};

/* What a loop works on. */
struct sweep {
    _Alignas(REGISTER_BYTES) unsigned char accumulators[ACCUMULATOR_BYTES];
    _Alignas(REGISTER_BYTES) unsigned char constants[2 * REGISTER_BYTES];
    const unsigned char *memory; /* where the next unit begins */
    uint64_t further;            /* multiply-adds of a vector after the first */
    const unsigned char *array;
    uint64_t at, units;
    uint64_t pass_max; /* units after which a lane might no longer be exact */
    const struct kernel *kernel, *registers;
};

/* ---- the loops ------------------------------------------------------------------------------ */

/* Laid out by hand: the formatter does not see where an instruction ends. */
/* clang-format off */
#if defined(__x86_64__)
#define FROM_MEMORY(a, op, bytes, r, half, two) op " " bytes "*" a "(%[memory]), %%" r half ", %%" r a "\n\t"
#define FURTHER(a, op, bytes, r, half, two) op " %%" r two ", %%" r half ", %%" r a "\n\t"
#define SWEEP(name, EACH, count, op, r, mov, bytes, half, two, clobbers)                           \
    static void name##_loop(uint64_t units, void *state, const void *constants)                    \
    {                                                                                              \
        const struct sweep *sweep = state;                                                         \
        const unsigned char *memory = sweep->memory;                                               \
        uint64_t left = 0;                                                                         \
        __asm__ volatile(mov " (%[constants]), %%" r half "\n\t"                                   \
                         mov " 64(%[constants]), %%" r two "\n\t"                                  \
                         EACH(LOAD, mov, bytes, r)                                                 \
                         LOOP_BEGIN                                                                \
                         EACH(FROM_MEMORY, op, bytes, r, half, two)                                \
                         "add $" bytes "*" count ", %[memory]\n\t"                                 \
                         "mov %[further], %[left]\n\t"                                             \
                         "test %[left], %[left]\n\t"                                               \
                         "jz 3f\n\t"                                                               \
                         ".p2align 6\n2:\n\t"                                                      \
                         EACH(FURTHER, op, bytes, r, half, two)                                    \
                         "dec %[left]\n\tjnz 2b\n"                                                 \
                         "3:\n\t"                                                                  \
                         LOOP_END                                                                  \
                         EACH(STORE, mov, bytes, r)                                                \
                         LEAVE_AVX                                                                 \
                         : [n] "+&r"(units), [memory] "+&r"(memory), [left] "+&r"(left)            \
                         : [state] "r"(state), [constants] "r"(constants),                         \
                           [further] "r"(sweep->further)                                           \
                         : "cc", "memory", clobbers);                                              \
    }
#define SWEEP_VEX(name, op, r, bytes) \
    SWEEP(name, EACH_12, "12", op, r, "vmovdqa", bytes, XK0, XK1, CLOBBER_16)
#define SWEEP_AVX512(name, op) \
    SWEEP(name, EACH_24, "24", op, "zmm", "vmovdqa64", "64", ZK0, ZK1, CLOBBER_32)

SWEEP_VEX(roofline_fp64_sse2, "vfmadd231pd", "xmm", "16")
SWEEP_VEX(roofline_fp32_sse2, "vfmadd231ps", "xmm", "16")
SWEEP_VEX(roofline_fp64_avx2, "vfmadd231pd", "ymm", "32")
SWEEP_VEX(roofline_fp32_avx2, "vfmadd231ps", "ymm", "32")
SWEEP_AVX512(roofline_fp64_avx512, "vfmadd231pd")
SWEEP_AVX512(roofline_fp32_avx512, "vfmadd231ps")
#else
#define FROM_MEMORY(a, t, shape)                                                                   \
    "ldr q" t ", [%[memory], #16*" a "]\n\tfmla v" a shape ", v" t shape ", v" ZK0 shape "\n\t"
#define FURTHER(a, shape) "fmla v" a shape ", v" ZK1 shape ", v" ZK0 shape "\n\t"
#define SWEEP_NEON(name, shape)                                                                    \
    static void name##_loop(uint64_t units, void *state, const void *constants)                    \
    {                                                                                              \
        const struct sweep *sweep = state;                                                         \
        const unsigned char *memory = sweep->memory;                                               \
        uint64_t left = 0;                                                                         \
        __asm__ volatile("ldr q" ZK0 ", [%[constants]]\n\t"                                        \
                         "ldr q" ZK1 ", [%[constants], #64]\n\t"                                   \
                         EACH_24(LOAD, "q", "16")                                                  \
                         LOOP_BEGIN                                                                \
                         EACH_24_WITH_3(FROM_MEMORY, "24", "25", "26", shape)                      \
                         "add %[memory], %[memory], #16*24\n\t"                                    \
                         "mov %[left], %[further]\n\t"                                             \
                         "cbz %[left], 3f\n\t"                                                     \
                         ".p2align 6\n2:\n\t"                                                      \
                         EACH_24(FURTHER, shape)                                                   \
                         "subs %[left], %[left], #1\n\tb.ne 2b\n"                                  \
                         "3:\n\t"                                                                  \
                         LOOP_END                                                                  \
                         EACH_24(STORE, "q", "16")                                                 \
                         : [n] "+&r"(units), [memory] "+&r"(memory), [left] "+&r"(left)            \
                         : [state] "r"(state), [constants] "r"(constants),                         \
                           [further] "r"(sweep->further)                                           \
                         : "cc", "memory", CLOBBER_32);                                            \
    }

SWEEP_NEON(roofline_fp64_neon, ".2d")
SWEEP_NEON(roofline_fp32_neon, ".4s")
#endif
/* clang-format on */

#define SWEEP_ROW(type, set, needs, bytes, count)                                                  \
    {.dtype = #type,                                                                               \
     .isa = #set,                                                                                  \
     .features = (needs),                                                                          \
     .register_bytes = (bytes),                                                                    \
     .accumulators = (count),                                                                      \
     .loop = roofline_##type##_##set##_loop}

static const struct kernel kernels[] = {
#if defined(__x86_64__)
    SWEEP_ROW(fp64, sse2, FEATURE_FMA, 16, 12),
    SWEEP_ROW(fp64, avx2, FEATURE_AVX2 | FEATURE_FMA, 32, 12),
    SWEEP_ROW(fp64, avx512, FEATURE_AVX512F, 64, 24),
    SWEEP_ROW(fp32, sse2, FEATURE_FMA, 16, 12),
    SWEEP_ROW(fp32, avx2, FEATURE_AVX2 | FEATURE_FMA, 32, 12),
    SWEEP_ROW(fp32, avx512, FEATURE_AVX512F, 64, 24),
#else
    SWEEP_ROW(fp64, neon, FEATURE_NEON, 16, 24),
    SWEEP_ROW(fp32, neon, FEATURE_NEON, 16, 24),
#endif
    {.dtype = NULL},
};

/* The row with the data type and instruction set of this run, which has one. */
static const struct kernel *row_of(const struct run *run, const struct kernel *rows)
{
    while (strcmp(rows->dtype, run_choice(run, "dtype")) ||
           strcmp(rows->isa, run_choice(run, "isa")))
        rows++;
    return rows;
}

static size_t unit_bytes(const struct kernel *kernel)
{
    return (size_t)kernel->accumulators * kernel->register_bytes;
}

static unsigned lanes_of(const struct kernel *kernel)
{
    return (unsigned)unit_bytes(kernel) / lane_type(kernel->dtype)->bytes;
}

/* ---- memory --------------------------------------------------------------------------------- */

static size_t rounded_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static void resolve_size(struct run *run, const struct memory_budget *budget)
{
    struct caches caches;
    char array[MEMORY_WORDS], llc[MEMORY_WORDS];
    if (!run_choice(run, "size_bytes"))
        return;
    run_caches(run, &caches);
    double wanted = fmax(AUTO_CACHES * caches.llc, AUTO_LEAST_BYTES);
    double size = fmin(wanted, AUTO_SHARE * budget->bytes);
    run_set_count(run, "size_bytes", (uint64_t)size);
    if (size < AUTO_CACHES * caches.llc)
        run_warning(run, "cache_influenced",
                    "the array of %s is all that 60 %% of the memory allows (%s), less than 4 "
                    "times the last-level caches (%s): the sloping roof is partly theirs",
                    memory_in_words(size, array), budget->limit, memory_in_words(caches.llc, llc));
}

static int check(struct run *run)
{
    struct memory_budget budget;
    bool known = run_memory_budget(run, &budget);
    if (!known)
        budget.bytes = INFINITY;
    resolve_size(run, &budget);
    double needed = (double)run_count(run, "size_bytes") +
                    (double)run_threads(run) * HUGE_PAGE_BYTES + run_thread_bytes(run);
    if (needed > USABLE_SHARE * budget.bytes) {
        char needed_words[MEMORY_WORDS], left_words[MEMORY_WORDS];
        run_reason(run,
                   "--size-bytes %" PRIu64 " on %u threads needs %s of memory, %s are left (%s): "
                   "use a smaller size or fewer threads",
                   run_count(run, "size_bytes"), run_threads(run),
                   memory_in_words(needed, needed_words), memory_in_words(budget.bytes, left_words),
                   budget.limit);
        return EXIT_RESOURCE;
    }
    if (run_count(run, "size_bytes") / run_threads(run) >= SIZE_LEAST)
        return EXIT_OK;
    run_reason(run,
               "--size-bytes %" PRIu64 " leaves each of %u threads less than the %d bytes that it "
               "needs: use a larger size or fewer threads",
               run_count(run, "size_bytes"), run_threads(run), SIZE_LEAST);
    return EXIT_USAGE;
}

static int open_roofline(struct run *run)
{
    const struct kernel *kernel = row_of(run, kernels);
    struct shared *shared = calloc(1, sizeof *shared);
    if (!shared) {
        run_reason(run, "not enough memory to begin with");
        return EXIT_RESOURCE;
    }
    run_set_shared(run, shared);
    size_t thread_bytes = run_count(run, "size_bytes") / run_threads(run);
    shared->units = thread_bytes / unit_bytes(kernel);
    shared->thread_step = rounded_up(thread_bytes, HUGE_PAGE_BYTES);
    return pages_reserve(run, &shared->pages, shared->thread_step * run_threads(run), PAGES_HUGE);
}

static void close_roofline(struct run *run)
{
    struct shared *shared = run_shared(run);
    if (shared)
        pages_release(&shared->pages);
    free(shared);
}

static unsigned column_value(unsigned lane)
{
    return 1 + lane % COLUMN_VALUES;
}

/* The units from which the contents repeat, then the same again. */
static void fill(struct run *run, const struct kernel *kernel, unsigned char *array, size_t bytes)
{
    const struct lane_type *type = lane_type(kernel->dtype);
    size_t pattern = UNIT_VALUES * unit_bytes(kernel);
    for (unsigned unit = 0; unit < UNIT_VALUES; unit++)
        for (unsigned lane = 0; lane < lanes_of(kernel); lane++)
            type->put(array + unit * unit_bytes(kernel), lane, (column_value(lane) + unit) / HALF);
    for (size_t filled = pattern; filled < bytes && !run_stopping(run);) {
        size_t piece = filled < FILL_BYTES ? filled : FILL_BYTES / pattern * pattern;
        piece = piece < bytes - filled ? piece : bytes - filled;
        memcpy(array + filled, array, piece);
        filled += piece;
    }
}

/* ---- sums ----------------------------------------------------------------------------------- */

/* What the units before this one add to a lane, above its column's value. */
static uint64_t added_before(uint64_t unit)
{
    uint64_t whole = unit / UNIT_VALUES, part = unit % UNIT_VALUES;
    return whole * (UNIT_VALUES * (UNIT_VALUES - 1) / 2) + part * (part - 1) / 2;
}

static uint64_t pass_max(const struct kernel *kernel, uint64_t further)
{
    uint64_t most = COLUMN_VALUES + UNIT_VALUES - 1 + further;
    return (lane_type(kernel->dtype)->exact_below - lanes_of(kernel)) / most;
}

/* Each lane began with a number of its own, so that two accumulators cannot be mistaken. */
static bool is_right(const struct sweep *sweep, uint64_t units, uint64_t added)
{
    const struct lane_type *type = lane_type(sweep->kernel->dtype);
    _Alignas(REGISTER_BYTES) unsigned char expected[sizeof sweep->accumulators];
    for (unsigned lane = 0; lane < lanes_of(sweep->kernel); lane++)
        type->put(expected, lane,
                  (double)(lane + 1 + units * (column_value(lane) + sweep->further) + added));
    return !memcmp(sweep->accumulators, expected, unit_bytes(sweep->kernel));
}

/* From where the last one ended, again from the beginning at the end of the array. */
static bool pass(struct sweep *sweep, uint64_t units)
{
    const struct kernel *kernel = sweep->kernel;
    uint64_t added = 0;
    lane_type(kernel->dtype)->sequence(sweep->accumulators, lanes_of(kernel), 1, 0);
    for (uint64_t left = units; left > 0;) {
        uint64_t here = sweep->units - sweep->at;
        here = here < left ? here : left;
        sweep->memory = sweep->array + sweep->at * unit_bytes(kernel);
        kernel->loop(here, sweep, sweep->constants);
        added += added_before(sweep->at + here) - added_before(sweep->at);
        sweep->at = (sweep->at + here) % sweep->units;
        left -= here;
    }
    return is_right(sweep, units, added);
}

/* ---- what the harness calls ----------------------------------------------------------------- */

static void begin(struct run *run, struct sweep *sweep, unsigned char *array)
{
    const struct shared *shared = run_shared(run);
    const struct kernel *kernel = row_of(run, kernels);
    const struct lane_type *type = lane_type(kernel->dtype);
    sweep->kernel = kernel;
    sweep->registers = row_of(run, fma_kernels);
    sweep->array = array;
    sweep->units = shared->units;
    sweep->at = 0;
    sweep->further = run_count(run, "fmas") - 1;
    sweep->pass_max = pass_max(kernel, sweep->further);
    for (unsigned lane = 0; lane < REGISTER_BYTES / type->bytes; lane++) {
        type->put(sweep->constants, lane, HALF);
        type->put(sweep->constants + REGISTER_BYTES, lane, TWO);
    }
    fill(run, kernel, array, sweep->units * unit_bytes(kernel));
}

static uint64_t operations_of_unit(const struct run *run)
{
    return 2 * run_count(run, "fmas") * lanes_of(row_of(run, kernels));
}

static int setup(struct thread *thread)
{
    struct run *run = thread->run;
    const struct shared *shared = run_shared(run);
    unsigned char *array =
        (unsigned char *)shared->pages.base + thread->index * shared->thread_step;
    size_t bytes = shared->units * unit_bytes(row_of(run, kernels));
    int failure = pages_touch(run, &shared->pages, array, bytes);
    if (failure || run_stopping(run))
        return failure;
    struct sweep *sweep = aligned_alloc(REGISTER_BYTES, sizeof *sweep);
    if (!sweep) {
        run_reason(run, "not enough memory for the registers of thread %u: use fewer threads",
                   thread->index);
        return EXIT_RESOURCE;
    }
    thread->state = sweep;
    begin(run, sweep, array);
    if (thread->index == 0)
        run_set_unit(run, operations_of_unit(run), UINT64_MAX / operations_of_unit(run));
    return EXIT_OK;
}

static int step(struct thread *thread, uint64_t batch)
{
    struct sweep *sweep = thread->state;
    for (uint64_t left = batch; left > 0;) {
        uint64_t units = left < sweep->pass_max ? left : sweep->pass_max;
        if (!pass(sweep, units)) {
            run_reason(thread->run,
                       "%s %s: the sums are wrong after %" PRIu64
                       " units on CPU %d: this CPU, its memory or this build does not work "
                       "correctly; do not trust its figures",
                       sweep->kernel->dtype, sweep->kernel->isa, units, thread->cpu);
            return EXIT_WRONG;
        }
        left -= units;
    }
    return EXIT_OK;
}

/* As that of the kernels on registers (vector_kernel.c), with the chain of `fma`. */
static double clock_hertz(struct thread *thread)
{
    struct sweep *sweep = thread->state;
    _Alignas(REGISTER_BYTES) unsigned char constants[CONSTANTS * REGISTER_BYTES] = {0};
    sweep->registers->loop(REARM_ITERATIONS, sweep->accumulators, constants);
    double start_s = now_s();
    sweep->registers->chain(CLOCK_ITERATIONS);
    double taken_s = now_s() - start_s - run_clock_read_s(thread->run);
    return CLOCK_ITERATIONS * CHAIN_CYCLES / taken_s;
}

static void finish(struct thread *thread)
{
    struct run *run = thread->run;
    const struct shared *shared = run_shared(run);
    double per_byte = (double)operations_of_unit(run) / (double)unit_bytes(row_of(run, kernels));
    run_metric(run, "operations_per_byte", per_byte);
    run_metric(run, "bytes_per_second", run_rate(run) / per_byte);
    run_metric(run, "huge_page_ratio", pages_inspect(run, &shared->pages));
}

static void teardown(struct thread *thread)
{
    free(thread->state);
}

/* ---- table ---------------------------------------------------------------------------------- */

static const char *const sizes[] = {"auto", NULL};
static const char *const vector_isas[] = {"best", "sse2", "avx2", "avx512", "neon", NULL};

static const struct param params[] = {
    PARAM_DTYPE(float_dtypes, "fp64"),
    PARAM_ISA(vector_isas, "sse2 stands for the 128-bit FMA3 instructions."),
    {.name = "fmas",
     .type = PARAM_COUNT,
     .initial = "1",
     .min = 1,
     .max = 4096,
     .roles = ROLE_AXIS,
     .noun = "FMA",
     .help = "Fused multiply-adds per loaded vector. The arithmetic intensity in operations per "
             "byte is a quarter of this number for fp64 and half of it for fp32."},
    {.name = "size_bytes",
     .type = PARAM_COUNT,
     .unit = "byte",
     .initial = "auto",
     .min = SIZE_LEAST,
     .max = 1e15,
     .choices = sizes,
     .roles = ROLE_AXIS,
     .title = "working set",
     .help = "Total size of the arrays of all threads; auto: 4 times the last-level caches in use, "
             "at least 256 MB, at most 60 % of the available memory."},
    {.name = NULL},
};

static const struct metric metrics[] = {
    {"operations_per_byte", "operation/byte", HIGHER_IS_BETTER,
     "Arithmetic intensity: floating-point operations per loaded byte."},
    {"bytes_per_second", "byte/s", HIGHER_IS_BETTER,
     "Bytes loaded per second at the rate of operations_per_second."},
    {"huge_page_ratio", "1", HIGHER_IS_BETTER,
     "Share of the arrays that lies in huge pages, which roofline requests. Without them, the "
     "sloping roof is lower."},
    {.name = NULL},
};

WORKLOAD(roofline) = {
    .name = "roofline",
    .description = "Reads vectors from memory and runs fused multiply-adds on each: shows where "
                   "the limit moves from the memory to the core.",
    .rate =
        OPERATION_RATE("Floating-point operations per second, two per fused multiply-add and lane"),
    .params = params,
    .metrics = metrics,
    .setup_s = 0.3,
    .setup_s_per_byte = 1e-9,
    .own = kernels,
    .resolve = kernel_resolve,
    .unsupported = kernel_unsupported,
    .unconfirmed = kernel_unconfirmed,
    .check = check,
    .open = open_roofline,
    .close = close_roofline,
    .setup = setup,
    .step = step,
    .clock_hertz = clock_hertz,
    .finish = finish,
    .teardown = teardown,
};
