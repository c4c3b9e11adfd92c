#define _GNU_SOURCE
#include "ticks.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Older C libraries have no name for it. */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static void nothing(int signal)
{
    (void)signal;
}

/* Without SA_RESTART, which is what it is for. */
static void install(void)
{
    struct sigaction action = {.sa_handler = nothing};
    sigaction(SIGRTMIN, &action, NULL);
}

bool ticks_begin(struct ticks *ticks, unsigned interval_ms)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
    struct timespec interval = {interval_ms / 1000, interval_ms % 1000 * 1000000L};
    struct itimerspec every = {interval, interval};
    sigset_t ours;
    pthread_once(&once, install);
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    sigemptyset(&ours);
    sigaddset(&ours, SIGRTMIN);
    pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
    if (timer_create(CLOCK_MONOTONIC, &event, &ticks->timer))
        return false;
    timer_settime(ticks->timer, 0, &every, NULL);
    return true;
}

void ticks_end(struct ticks *ticks)
{
    timer_delete(ticks->timer);
}
