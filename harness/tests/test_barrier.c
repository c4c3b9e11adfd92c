/* No thread may enter round n + 1 before all have left round n; spinning and sleeping. */
#include "barrier.h"

#include "check.h"

#include <pthread.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 2000 };

static struct barrier barrier;
static atomic_int in_round[ROUNDS];

static void *go_round(void *argument)
{
    (void)argument;
    for (int round = 0; round < ROUNDS; round++) {
        atomic_fetch_add(&in_round[round], 1);
        barrier_wait(&barrier);
        CHECK(atomic_load(&in_round[round]) == THREADS);
    }
    return NULL;
}

static void meet(unsigned spins)
{
    pthread_t threads[THREADS];
    memset(in_round, 0, sizeof in_round);
    barrier_init(&barrier, THREADS, spins);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, go_round, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* One of two never comes: the other leaves when the flag is set, spinning or asleep. */
static atomic_bool stopping;

static void *wait_alone(void *argument)
{
    struct barrier *alone = argument;
    CHECK(!barrier_wait_unless(alone, &stopping));
    return NULL;
}

static void leave(unsigned spins)
{
    pthread_t thread;
    struct barrier alone;
    atomic_store(&stopping, false);
    barrier_init(&alone, 2, spins);
    CHECK(pthread_create(&thread, NULL, wait_alone, &alone) == 0);
    usleep(20000);
    atomic_store(&stopping, true);
    pthread_join(thread, NULL);
}

/* No thread spins past a word that has changed, and none sleeps past it. */
static atomic_uint word;

static void *wait_for_word(void *argument)
{
    CHECK(word_wait(&word, 7, *(const unsigned *)argument, NULL));
    CHECK(atomic_load(&word) == 8);
    return NULL;
}

static void wake(unsigned spins)
{
    pthread_t thread;
    atomic_store(&word, 7);
    CHECK(pthread_create(&thread, NULL, wait_for_word, &spins) == 0);
    usleep(20000);
    atomic_store(&word, 8);
    word_wake(&word);
    pthread_join(thread, NULL);
}

int main(void)
{
    meet(0);
    meet(100);
    leave(0);
    leave(1u << 30);
    wake(0);
    wake(1u << 30);
    return 0;
}
