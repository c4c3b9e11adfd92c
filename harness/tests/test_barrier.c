/* No thread may enter round n + 1 before all have left round n; spinning and sleeping. */
#include "barrier.h"

#include "check.h"

#include <pthread.h>

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

int main(void)
{
    meet(0);
    meet(100);
    return 0;
}
