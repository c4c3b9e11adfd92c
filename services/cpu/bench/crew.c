#include "crew.h"

#include "barrier.h"
#include "monotonic.h"

#include <math.h>
#include <stdlib.h>

enum {
    ALIGNMENT = 128,  /* no cache line of two threads */
    TIMED_PASSES = 3, /* the shortest counts: a disturbance only makes them longer */
    BATCH_MOST = 1 << 24,
};

/* Long against the check of a pass. */
static const double PASS_S = 100e-6;

struct member {
    _Alignas(ALIGNMENT) atomic_uint called;
    unsigned answered;
    atomic_uint idle; /* the call after which it sleeps again */
    atomic_bool wanted;
};

struct crew {
    unsigned threads;
    atomic_bool over;
    struct member *members;
};

struct crew *crew_open(const struct run *run)
{
    struct crew *crew = calloc(1, sizeof *crew);
    if (!crew)
        return NULL;
    crew->threads = run_threads(run);
    crew->members = aligned_alloc(ALIGNMENT, crew->threads * sizeof *crew->members);
    if (!crew->members) {
        free(crew);
        return NULL;
    }
    memset(crew->members, 0, crew->threads * sizeof *crew->members);
    return crew;
}

void crew_close(struct crew *crew)
{
    if (crew)
        free(crew->members);
    free(crew);
}

int crew_find_batch(struct thread *thread, int (*step)(struct thread *, uint64_t), uint64_t *batch)
{
    for (*batch = 1; *batch < BATCH_MOST; *batch *= 2) {
        double shortest_s = INFINITY;
        for (int i = 0; i < TIMED_PASSES; i++) {
            double start_s = now_s();
            int failure = step(thread, *batch);
            if (failure)
                return failure;
            shortest_s = fmin(shortest_s, now_s() - start_s);
        }
        if (shortest_s > PASS_S / 2)
            break;
    }
    return EXIT_OK;
}

static void wake(struct member *member)
{
    atomic_fetch_add(&member->called, 1);
    word_wake(&member->called);
}

void crew_call(struct crew *crew, unsigned index)
{
    atomic_store(&crew->members[index].wanted, true);
    wake(&crew->members[index]);
}

void crew_dismiss(struct crew *crew, unsigned index)
{
    atomic_store(&crew->members[index].wanted, false);
}

bool crew_join(struct crew *crew, unsigned index, const struct run *run)
{
    struct member *member = &crew->members[index];
    for (;;) {
        unsigned idle = atomic_load(&member->idle);
        if (idle == atomic_load(&member->called))
            return true;
        if (!word_wait(&member->idle, idle, run_spins(run), run_stop_flag(run)))
            return false;
    }
}

void crew_end(struct crew *crew)
{
    atomic_store(&crew->over, true);
    for (unsigned i = 1; i < crew->threads; i++) {
        crew_dismiss(crew, i);
        wake(&crew->members[i]);
    }
}

void crew_begin(struct crew *crew)
{
    atomic_store(&crew->over, false);
}

bool crew_wait(struct crew *crew, const struct thread *thread)
{
    struct member *member = &crew->members[thread->index];
    atomic_store(&member->idle, member->answered);
    word_wake(&member->idle);
    if (!word_wait(&member->called, member->answered, 0, run_stop_flag(thread->run)))
        return false;
    /* Calls that came while it was working are answered together: the latest one counts. */
    member->answered = atomic_load(&member->called);
    return !atomic_load(&crew->over);
}

bool crew_wanted(const struct crew *crew, const struct thread *thread)
{
    return atomic_load_explicit(&crew->members[thread->index].wanted, memory_order_relaxed) &&
           !run_stopping(thread->run);
}
