#include "crew.h"

#include "barrier.h"
#include "monotonic.h"

#include <math.h>
#include <pthread.h>
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
    unsigned char *members; /* each with the workload's own state behind it */
    size_t member_bytes;    /* both together */
    void *state;
    /* For the samples, which another thread makes. */
    pthread_mutex_t lock;
    uint64_t work;
    double taken_s;
};

/* ---- life ----------------------------------------------------------------------------------- */

static int lacks_memory(struct run *run)
{
    run_reason(run, "no memory for %u threads: use fewer", run_threads(run));
    return EXIT_RESOURCE;
}

static size_t whole_lines(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void *zeroed_lines(size_t bytes)
{
    void *lines = aligned_alloc(ALIGNMENT, bytes);
    return lines ? memset(lines, 0, bytes) : NULL;
}

int crew_open(struct run *run, size_t state_bytes, size_t member_bytes)
{
    struct crew *crew = calloc(1, sizeof *crew);
    run_set_shared(run, crew);
    if (!crew)
        return lacks_memory(run);
    pthread_mutex_init(&crew->lock, NULL);
    crew->threads = run_threads(run);
    crew->member_bytes = sizeof(struct member) + whole_lines(member_bytes);
    crew->members = zeroed_lines(crew->threads * crew->member_bytes);
    crew->state = zeroed_lines(whole_lines(state_bytes));
    if (!crew->members || !crew->state)
        return lacks_memory(run);
    return EXIT_OK;
}

void crew_close(struct run *run)
{
    struct crew *crew = run_shared(run);
    if (!crew)
        return;
    free(crew->members);
    free(crew->state);
    free(crew);
}

void *crew_state(const struct run *run)
{
    const struct crew *crew = run_shared(run);
    return crew ? crew->state : NULL;
}

static struct member *member_of(const struct run *run, unsigned index)
{
    const struct crew *crew = run_shared(run);
    return (struct member *)(crew->members + index * crew->member_bytes);
}

void *crew_member(const struct run *run, unsigned index)
{
    return member_of(run, index) + 1;
}

int crew_prepare(struct thread *thread)
{
    struct crew *crew = run_shared(thread->run);
    if (thread->index == 0)
        atomic_store(&crew->over, false);
    return EXIT_OK;
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

/* ---- calls ---------------------------------------------------------------------------------- */

static void wake(struct member *member)
{
    atomic_fetch_add(&member->called, 1);
    word_wake(&member->called);
}

void crew_call(const struct run *run, unsigned index)
{
    struct member *member = member_of(run, index);
    atomic_store(&member->wanted, true);
    wake(member);
}

void crew_dismiss(const struct run *run, unsigned index)
{
    atomic_store(&member_of(run, index)->wanted, false);
}

bool crew_join(const struct run *run, unsigned index)
{
    struct member *member = member_of(run, index);
    for (;;) {
        unsigned idle = atomic_load(&member->idle);
        if (idle == atomic_load(&member->called))
            return true;
        if (!word_wait(&member->idle, idle, run_spins(run), run_stop_flag(run)))
            return false;
    }
}

void crew_end(const struct run *run)
{
    struct crew *crew = run_shared(run);
    atomic_store(&crew->over, true);
    for (unsigned i = 0; i < crew->threads; i++) {
        crew_dismiss(run, i);
        wake(member_of(run, i));
    }
}

bool crew_wait(const struct thread *thread)
{
    const struct crew *crew = run_shared(thread->run);
    struct member *member = member_of(thread->run, thread->index);
    atomic_store(&member->idle, member->answered);
    word_wake(&member->idle);
    if (!word_wait(&member->called, member->answered, 0, run_stop_flag(thread->run)))
        return false;
    /* Calls that came while it was working are answered together: the latest one counts. */
    member->answered = atomic_load(&member->called);
    return !atomic_load(&crew->over);
}

bool crew_wanted(const struct thread *thread)
{
    const struct member *member = member_of(thread->run, thread->index);
    return atomic_load_explicit(&member->wanted, memory_order_relaxed) &&
           !run_stopping(thread->run);
}

/* ---- samples -------------------------------------------------------------------------------- */

void crew_note(const struct run *run, uint64_t work, double taken_s)
{
    struct crew *crew = run_shared(run);
    pthread_mutex_lock(&crew->lock);
    crew->work += work;
    crew->taken_s += taken_s;
    pthread_mutex_unlock(&crew->lock);
}

uint64_t crew_moved(const struct thread *thread, double *at_s)
{
    struct crew *crew = run_shared(thread->run);
    if (thread->index > 0)
        return 0;
    pthread_mutex_lock(&crew->lock);
    uint64_t work = crew->work;
    *at_s += crew->taken_s;
    pthread_mutex_unlock(&crew->lock);
    return work;
}
