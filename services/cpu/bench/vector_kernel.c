#include "vector_kernel.h"

#include "checked.h"
#include "cpu_features.h"
#include "flip.h"
#include "lanes.h"
#include "loops.h"
#include "monotonic.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CLOCK_ITERATIONS = 1200,      /* 96,000 cycles, 30 µs: long against one clock reading */
    REARM_INSTRUCTIONS = 1 << 16, /* at 1 to 8 a cycle: 2 to 20 µs */
    /* A mix is chosen by the shortest of so many loops of some 30 µs. */
    MIX_REPEATS = 20,
    MIX_INSTRUCTIONS = 1 << 18,
    LARGEST_CONSTANT = 16, /* what a lane may be above its expected values in between */
    CHECKSUM_ITERATIONS = 1000,
};

/* About equal mixes: always the first, so that all trials of a case choose the same. */
static const double WORTH_A_CHANGE = 1.03;

const char *const isas[] = {"best", "scalar", "sse2", "avx2", "avx512", "neon", "sve", NULL};
const char *const float_dtypes[] = {"fp64", "fp32", NULL};
const char *const integer_dtypes[] = {"int8", "int16", "int32", "int64", NULL};

struct kernel_state {
    _Alignas(REGISTER_BYTES) unsigned char accumulators[ACCUMULATOR_BYTES];
    _Alignas(REGISTER_BYTES) unsigned char constants[CONSTANTS * TILE_BYTES];
    const struct kernel *kernel;
    uint64_t rearm_iterations;
    uint64_t begin;    /* the first lane is one more, the next two more and so on */
    uint64_t pass_max; /* iterations after which a lane might no longer be exact */
};

/* Of the first thread that has one. */
static struct {
    pthread_mutex_t lock;
    bool is_known;
    uint64_t checksum;
    int cpu;
} first = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- which kernel --------------------------------------------------------------------------- */

static bool is_best(const struct run *run, const char *param)
{
    return !strcmp(run_choice(run, param), "best");
}

/* Whether a choice of the parameters, `best` being any, is this kernel. */
static bool is_requested(const struct kernel *kernel, const struct run *run)
{
    if (kernel->vendor && !cpu_vendor_is(kernel->vendor))
        return false;
    if (strcmp(kernel->dtype, run_choice(run, "dtype")))
        return false;
    if (!is_best(run, "isa") && strcmp(kernel->isa, run_choice(run, "isa")))
        return false;
    return !kernel->mix || is_best(run, "mix") || !strcmp(kernel->mix, run_choice(run, "mix"));
}

static const struct kernel *kernel_find(const struct run *run)
{
    for (const struct kernel *kernel = run_own(run); kernel->dtype; kernel++)
        if (is_requested(kernel, run))
            return kernel;
    return NULL;
}

static void resolve_isa(struct run *run)
{
    const char *best = NULL;
    if (!is_best(run, "isa"))
        return;
    for (const struct kernel *kernel = run_own(run); kernel->dtype; kernel++)
        if (is_requested(kernel, run) && !features_missing(kernel->features))
            best = kernel->isa;
    if (best)
        run_set_choice(run, "isa", best);
}

/* ---- its operands --------------------------------------------------------------------------- */

static const struct lane_type *lane_of(const struct kernel *kernel)
{
    return lane_type(kernel->recipe->lane ? kernel->recipe->lane : kernel->dtype);
}

static const struct lane_type *operand_of(const struct kernel *kernel)
{
    return lane_type(kernel->recipe->operand ? kernel->recipe->operand : kernel->dtype);
}

static unsigned register_bytes(const struct kernel *kernel)
{
    return kernel->register_bytes ? kernel->register_bytes : sve_bytes();
}

/* Of all accumulators together. */
static unsigned lanes_of(const struct kernel *kernel)
{
    return kernel->accumulators * register_bytes(kernel) / lane_of(kernel)->bytes;
}

uint64_t kernel_operations(const struct kernel *kernel)
{
    return (uint64_t)kernel->recipe->operations * kernel->recipe->rounds * lanes_of(kernel);
}

static uint64_t instructions_of(const struct kernel *kernel)
{
    return (uint64_t)kernel->recipe->steps * kernel->recipe->rounds * kernel->accumulators;
}

/* What all lanes may grow by and stay exact; 0: they wrap. */
static uint64_t room_of(const struct kernel *kernel)
{
    const struct recipe *recipe = kernel->recipe;
    uint64_t below = lane_of(kernel)->exact_below / (recipe->growth ? recipe->growth : 1);
    return below ? below - lanes_of(kernel) - LARGEST_CONSTANT : 0;
}

static uint64_t pass_max(const struct kernel *kernel, uint64_t begin)
{
    const struct recipe *recipe = kernel->recipe;
    uint64_t room = room_of(kernel);
    return room ? (room - begin) / (recipe->addend * recipe->rounds) : UINT64_MAX;
}

/* Every bit of a seed reaches every bit of what is made of it (the finaliser of MurmurHash3). */
static uint64_t mixed(uint64_t bits)
{
    bits = (bits ^ bits >> 33) * 0xff51afd7ed558ccdu;
    bits = (bits ^ bits >> 33) * 0xc4ceb9fe1a85ec53u;
    return bits ^ bits >> 33;
}

/* Floating-point lanes keep half of their room to grow, and begin at 0 where a pass needs it all. */
static uint64_t begin_of(const struct kernel *kernel, uint64_t seed)
{
    uint64_t room = room_of(kernel), begin = mixed(seed + 1);
    if (room)
        begin %= room / 2 + 1;
    return pass_max(kernel, begin) ? begin : 0;
}

static void state_init(struct kernel_state *state, const struct kernel *kernel, uint64_t begin)
{
    const struct lane_type *operand = operand_of(kernel);
    unsigned bytes =
        kernel->register_bytes > REGISTER_BYTES ? kernel->register_bytes : REGISTER_BYTES;
    state->kernel = kernel;
    state->rearm_iterations = 1 + REARM_INSTRUCTIONS / instructions_of(kernel);
    state->begin = begin;
    state->pass_max = pass_max(kernel, begin);
    for (unsigned i = 0; i < CONSTANTS; i++)
        for (unsigned lane = 0; lane < bytes / operand->bytes; lane++)
            operand->put(state->constants + (size_t)i * bytes, lane,
                         kernel->recipe->constants[i][lane % PATTERN]);
}

/* multiplier · x + addend */
struct affine {
    uint64_t multiplier, addend;
};

static struct affine repeated(const struct recipe *recipe, uint64_t iterations)
{
    struct affine made = {1, 0}, step = {recipe->multiplier, recipe->addend};
    for (uint64_t n = iterations * recipe->rounds; n; n >>= 1) {
        if (n & 1) {
            made.addend = step.multiplier * made.addend + step.addend;
            made.multiplier *= step.multiplier;
        }
        step.addend += step.multiplier * step.addend;
        step.multiplier *= step.multiplier;
    }
    return made;
}

/* Distinct values in a row, so that two accumulators cannot be mistaken for one another, and what
 * `iterations` make of them. */
static void fill_accumulators(const struct kernel_state *state, void *accumulators,
                              uint64_t iterations)
{
    const struct kernel *kernel = state->kernel;
    const uint64_t begin = state->begin;
    const struct lane_type *lane = lane_of(kernel);
    unsigned lanes = lanes_of(kernel);
    struct affine made = repeated(kernel->recipe, iterations);
    lane->sequence(accumulators, lanes, made.multiplier, made.multiplier * begin + made.addend);
    if (kernel->recipe->second_half) {
        unsigned half = lanes / 2;
        made = repeated(kernel->recipe->second_half, iterations);
        lane->sequence((unsigned char *)accumulators + (size_t)half * lane->bytes, lanes - half,
                       made.multiplier, made.multiplier * (begin + half) + made.addend);
    }
}

/* ---- the best mix --------------------------------------------------------------------------- */

/* Operations a second, by the shortest of several loops: a disturbance only makes them longer. */
static double quick_rate(struct kernel_state *state, const struct kernel *kernel)
{
    uint64_t iterations = 1 + MIX_INSTRUCTIONS / instructions_of(kernel);
    double shortest_s = INFINITY;
    state_init(state, kernel, 0);
    for (int i = 0; i < MIX_REPEATS; i++) {
        fill_accumulators(state, state->accumulators, 0);
        double start_s = now_s();
        kernel->loop(iterations, state->accumulators, state->constants);
        shortest_s = fmin(shortest_s, now_s() - start_s);
    }
    return (double)(iterations * kernel_operations(kernel)) / shortest_s;
}

/* Which mix the ports of this CPU like best shows only when it is tried. The first to try is warmed
 * up and tried again, since a core needs a while to grant a vector licence. */
static void resolve_mix(struct run *run)
{
    static struct kernel_state state;
    const struct kernel *kernel = kernel_find(run), *best = NULL;
    double best_rate = 0;
    if (!kernel || !kernel->mix || !is_best(run, "mix") || features_missing(kernel->features))
        return;
    quick_rate(&state, kernel);
    for (kernel = run_own(run); kernel->dtype; kernel++) {
        double rate = is_requested(kernel, run) ? quick_rate(&state, kernel) : 0;
        if (rate > best_rate * WORTH_A_CHANGE) {
            best = kernel;
            best_rate = rate;
        }
    }
    run_set_choice(run, "mix", best->mix);
}

/* ---- what the harness calls ----------------------------------------------------------------- */

void kernel_resolve(struct run *run)
{
    resolve_isa(run);
    resolve_mix(run);
}

const char *kernel_unsupported(const struct run *run)
{
    /* When `best` found none: the first row of this dtype, the narrowest. */
    const struct kernel *kernel = kernel_find(run);
    if (kernel)
        return features_missing(kernel->features);
    return isa_foreign(run_choice(run, "isa"));
}

const char *kernel_row_unconfirmed(const struct kernel *kernel)
{
#if defined(__aarch64__)
    (void)kernel;
    return "this kernel was not run on hardware before: its evidence is its disassembly and an "
           "emulator that executes it";
#else
    if (kernel->features & FEATURE_AMX_FP16)
        return "this kernel was not run on hardware before: its evidence is its disassembly";
    return NULL;
#endif
}

const char *kernel_unconfirmed(const struct run *run)
{
    return kernel_row_unconfirmed(kernel_find(run));
}

static size_t used_bytes(const struct kernel *kernel)
{
    return (size_t)kernel->accumulators * register_bytes(kernel);
}

static void run_pass(struct kernel_state *state, const struct thread *thread, uint64_t iterations)
{
    fill_accumulators(state, state->accumulators, 0);
    state->kernel->loop(iterations, state->accumulators, state->constants);
    flip_a_bit(state->accumulators, lane_of(state->kernel)->bytes, thread->cpu);
}

static uint64_t lane_bits(const void *lanes, unsigned lane, unsigned bytes)
{
    uint64_t bits = 0;
    memcpy(&bits, (const unsigned char *)lanes + (size_t)lane * bytes, bytes);
    return bits;
}

/* Names the first wrong lane. */
static int refuse_pass(const struct kernel_state *state, const struct thread *thread,
                       const void *expected, uint64_t iterations)
{
    const struct kernel *kernel = state->kernel;
    unsigned bytes = lane_of(kernel)->bytes, lane = 0;
    while (lane_bits(expected, lane, bytes) == lane_bits(state->accumulators, lane, bytes))
        lane++;
    uint64_t right = lane_bits(expected, lane, bytes);
    uint64_t value = lane_bits(state->accumulators, lane, bytes);
    unsigned in_register = register_bytes(kernel) / bytes;
    run_wrong(thread, right, value, "lane %u of accumulator %u", lane % in_register,
              lane / in_register);
    run_reason(thread->run,
               "%s %s: the accumulators are wrong after %" PRIu64 " iterations on CPU %d: lane %u "
               "of accumulator %u is 0x%" PRIx64 " in place of 0x%" PRIx64
               ": this CPU or this build computes incorrectly; do not trust its figures",
               kernel->dtype, kernel->isa, iterations, thread->cpu, lane % in_register,
               lane / in_register, value, right);
    return EXIT_WRONG;
}

/* A pass, compared in full with what must come out. 0 or EXIT_WRONG. */
static int checked_pass(struct kernel_state *state, const struct thread *thread,
                        uint64_t iterations)
{
    _Alignas(REGISTER_BYTES) unsigned char expected[sizeof state->accumulators];
    run_pass(state, thread, iterations);
    fill_accumulators(state, expected, iterations);
    if (memcmp(state->accumulators, expected, used_bytes(state->kernel)))
        return refuse_pass(state, thread, expected, iterations);
    return EXIT_OK;
}

/* All CPUs must get the same. Where they do not, each has found its own pass right: none is named. */
static int compare_checksum(const struct kernel_state *state, const struct thread *thread,
                            uint64_t checksum)
{
    pthread_mutex_lock(&first.lock);
    if (!first.is_known) {
        first.is_known = true;
        first.checksum = checksum;
        first.cpu = thread->cpu;
    }
    pthread_mutex_unlock(&first.lock);
    if (checksum == first.checksum)
        return EXIT_OK;
    run_reason(thread->run,
               "%s %s: the checksum on CPU %d is %016" PRIx64 ", on CPU %d %016" PRIx64
               ": one of them computes incorrectly; do not trust their figures",
               state->kernel->dtype, state->kernel->isa, thread->cpu, checksum, first.cpu,
               first.checksum);
    return EXIT_WRONG;
}

/* What the accumulators of one pass come to (FNV-1a): it needs nothing that the CPU itself has worked
 * out to compare with. */
static int take_checksum(struct kernel_state *state, const struct thread *thread)
{
    uint64_t sum = 0xcbf29ce484222325u;
    char text[20];
    int failure =
        checked_pass(state, thread,
                     state->pass_max < CHECKSUM_ITERATIONS ? state->pass_max : CHECKSUM_ITERATIONS);
    if (failure)
        return failure;
    for (size_t i = 0; i < used_bytes(state->kernel); i++)
        sum = (sum ^ state->accumulators[i]) * 0x100000001b3u;
    snprintf(text, sizeof text, "%016" PRIx64, sum);
    if (thread->index == 0)
        run_fact(thread->run, "checksum", text);
    return compare_checksum(state, thread, sum);
}

int kernel_begin(struct thread *thread, const struct kernel *kernel)
{
    struct kernel_state *state = aligned_alloc(REGISTER_BYTES, sizeof *state);
    if (!state) {
        run_reason(thread->run,
                   "not enough memory for the registers of thread %u: use fewer threads",
                   thread->index);
        return EXIT_RESOURCE;
    }
    thread->state = state;
    state_init(state, kernel, 0);
    if (!RESULTS_ARE_CHECKED) /* what the loops go on from */
        fill_accumulators(state, state->accumulators, 0);
    return EXIT_OK;
}

int kernel_setup(struct thread *thread)
{
    struct run *run = thread->run;
    const struct kernel *kernel = kernel_find(run);
    int failure = kernel_begin(thread, kernel);
    if (!failure && thread->index == 0)
        run_set_unit(run, kernel_operations(kernel), UINT64_MAX / kernel_operations(kernel));
    if (failure || !run_param_set(run, "seed"))
        return failure;
    struct kernel_state *state = thread->state;
    state_init(state, kernel, begin_of(kernel, run_count(run, "seed")));
    failure = take_checksum(state, thread);
    if (failure)
        free(state);
    return failure;
}

int kernel_step(struct thread *thread, uint64_t batch)
{
    struct kernel_state *state = thread->state;
    if (!RESULTS_ARE_CHECKED) {
        state->kernel->loop(batch, state->accumulators, state->constants);
        return EXIT_OK;
    }
    int failure = EXIT_OK;
    for (uint64_t left = batch; left > 0 && !failure;) {
        uint64_t iterations = left < state->pass_max ? left : state->pass_max;
        failure = checked_pass(state, thread, iterations);
        left -= iterations;
    }
    return failure;
}

void kernel_empty_loop(struct thread *thread, uint64_t batch)
{
    (void)thread;
    loop_empty(batch);
}

double kernel_clock_hertz(struct thread *thread)
{
    struct kernel_state *state = thread->state;
    /* The checks since the last step() may have cost the core its vector licence, and the change
     * of clock that gets it back takes some microseconds: they must not be timed. */
    state->kernel->loop(state->rearm_iterations, state->accumulators, state->constants);
    double start_s = now_s();
    state->kernel->chain(CLOCK_ITERATIONS);
    double taken_s = now_s() - start_s - run_clock_read_s(thread->run);
    return CLOCK_ITERATIONS * CHAIN_CYCLES / taken_s;
}

void kernel_teardown(struct thread *thread)
{
    free(thread->state);
}
