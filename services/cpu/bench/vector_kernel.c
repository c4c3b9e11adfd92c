#include "vector_kernel.h"

#include "cpu_features.h"
#include "loops.h"
#include "monotonic.h"

#include <stdlib.h>
#include <string.h>

/* fp32 holds whole numbers exactly up to 2^24: an accumulator must stay below. */
enum {
    CLOCK_ITERATIONS = 1200,      /* 96,000 cycles, 30 µs: long against one clock reading */
    REARM_INSTRUCTIONS = 1 << 16, /* at 1 to 8 a cycle: 2 to 20 µs */
};

static const uint64_t EXACT_FP32 = 1u << 24;

struct kernel_state {
    _Alignas(REGISTER_BYTES_MAX) unsigned char accumulators[ACCUMULATORS_MAX * REGISTER_BYTES_MAX];
    _Alignas(REGISTER_BYTES_MAX) unsigned char constants[CONSTANTS * REGISTER_BYTES_MAX];
    const struct kernel *kernel;
    uint64_t rearm_iterations;
};

struct element {
    const char *dtype;
    unsigned bytes;
    /* Puts first, first + step, … in `count` lanes; integers wrap. */
    void (*fill)(void *lanes, unsigned count, double first, unsigned step);
};

#define DEFINE_FILL(dtype, type)                                                                   \
    static void fill_##dtype(void *lanes, unsigned count, double first, unsigned step)             \
    {                                                                                              \
        type value = is_fp(#dtype) ? (type)first : (type)(uint64_t)first;                          \
        for (unsigned i = 0; i < count; i++, value = (type)(value + (type)step))                   \
            ((type *)lanes)[i] = value;                                                            \
    }

static bool is_fp(const char *dtype)
{
    return dtype[0] == 'f';
}

DEFINE_FILL(int8, uint8_t)
DEFINE_FILL(int16, uint16_t)
DEFINE_FILL(int32, uint32_t)
DEFINE_FILL(int64, uint64_t)
DEFINE_FILL(fp32, float)
DEFINE_FILL(fp64, double)

static const struct element elements[] = {
    {"int8", 1, fill_int8},   {"int16", 2, fill_int16}, {"int32", 4, fill_int32},
    {"int64", 8, fill_int64}, {"fp32", 4, fill_fp32},   {"fp64", 8, fill_fp64},
};

static const struct element *element_of(const struct kernel *kernel)
{
    const struct element *element = elements;
    while (strcmp(element->dtype, kernel->dtype))
        element++;
    return element;
}

static const struct kernel *kernel_find(const struct run *run)
{
    const char *dtype = run_choice(run, "dtype"), *isa = run_choice(run, "isa");
    for (const struct kernel *kernel = run_own(run); kernel->dtype; kernel++)
        if (!strcmp(kernel->dtype, dtype) && !strcmp(kernel->isa, isa))
            return kernel;
    return NULL;
}

void kernel_resolve(struct run *run)
{
    const char *best = NULL;
    if (strcmp(run_choice(run, "isa"), "best"))
        return;
    for (const struct kernel *kernel = run_own(run); kernel->dtype; kernel++)
        if (!strcmp(kernel->dtype, run_choice(run, "dtype")) && !features_missing(kernel->features))
            best = kernel->isa;
    if (best)
        run_set_choice(run, "isa", best);
}

const char *kernel_unsupported(const struct run *run)
{
    const struct kernel *kernel = kernel_find(run);
    if (kernel)
        return features_missing(kernel->features);
    /* `best` found none: even the first row of this dtype, the narrowest, lacks something. */
    for (kernel = run_own(run); !strcmp(run_choice(run, "isa"), "best") && kernel->dtype; kernel++)
        if (!strcmp(kernel->dtype, run_choice(run, "dtype")))
            return features_missing(kernel->features);
#if defined(__x86_64__)
    if (!strcmp(run_choice(run, "isa"), "neon"))
        return "neon needs an aarch64 CPU";
#else
    if (strcmp(run_choice(run, "isa"), "scalar") && strcmp(run_choice(run, "isa"), "best"))
        return "this instruction set needs an x86-64 CPU";
#endif
    return "this CPU has no instruction of this width for this dtype";
}

/* Of all accumulators together. */
static unsigned lanes_of(const struct kernel *kernel)
{
    return kernel->accumulators * kernel->register_bytes / element_of(kernel)->bytes;
}

/* Added: 8, or 8 x 1/2 by FMA. Subtracted: 7, or 6 x 1/2. Each pair adds one. */
static void fill_constants(struct kernel_state *state)
{
    const struct element *element = element_of(state->kernel);
    bool fused = state->kernel->operations == 2;
    const double values[CONSTANTS] = {8, fused ? 6 : 7, 0.5};
    for (unsigned i = 0; i < CONSTANTS; i++)
        element->fill(state->constants + (size_t)i * REGISTER_BYTES_MAX,
                      REGISTER_BYTES_MAX / element->bytes, values[i], 0);
}

int kernel_setup(struct thread *thread)
{
    const struct kernel *kernel = kernel_find(thread->run);
    struct kernel_state *state = aligned_alloc(REGISTER_BYTES_MAX, sizeof *state);
    if (!state) {
        run_reason(thread->run, "no memory for the registers of thread %u: use fewer threads",
                   thread->index);
        return EXIT_RESOURCE;
    }
    thread->state = state;
    state->kernel = kernel;
    state->rearm_iterations = REARM_INSTRUCTIONS / (2 * PAIRS * kernel->accumulators);
    fill_constants(state);
    if (thread->index == 0) {
        uint64_t operations = 2ull * PAIRS * lanes_of(kernel) * kernel->operations;
        run_set_unit(thread->run, operations, (EXACT_FP32 - 2ull * lanes_of(kernel)) / PAIRS);
    }
    return EXIT_OK;
}

/* Distinct values, so that two accumulators cannot be mistaken for one another. */
static void fill_accumulators(const struct kernel *kernel, void *accumulators, uint64_t moved)
{
    element_of(kernel)->fill(accumulators, lanes_of(kernel), 1.0 + (double)moved, 1);
}

int kernel_step(struct thread *thread, uint64_t batch)
{
    struct kernel_state *state = thread->state;
    const struct kernel *kernel = state->kernel;
    _Alignas(REGISTER_BYTES_MAX) unsigned char expected[sizeof state->accumulators];
    size_t used = (size_t)kernel->accumulators * kernel->register_bytes;
    fill_accumulators(kernel, state->accumulators, 0);
    kernel->loop(batch, state->accumulators, state->constants);
    fill_accumulators(kernel, expected, batch * PAIRS);
    if (!memcmp(state->accumulators, expected, used))
        return EXIT_OK;
    run_reason(
        thread->run,
        "%s %s: the accumulators are wrong after %llu iterations on CPU %d: this CPU or this "
        "build computes wrongly, trust no figure of it",
        kernel->dtype, kernel->isa, (unsigned long long)batch, thread->cpu);
    return EXIT_WRONG;
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
