#define _GNU_SOURCE
#include "ending.h"

#include <signal.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <unistd.h>

bool ending_catch_signals(struct ending *ending)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    signal(SIGPIPE, SIG_IGN);
    ending->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
    return ending->signal_fd >= 0 && sigprocmask(SIG_BLOCK, &set, NULL) == 0;
}

void ending_fds(const struct ending *ending, struct pollfd fds[ENDING_FDS])
{
    fds[0] = (struct pollfd){.fd = ending->signal_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = ending->lifeline_fd, .events = POLLRDHUP};
}

static const char *signal_word(int signal_fd)
{
    struct signalfd_siginfo info;
    if (read(signal_fd, &info, sizeof info) != sizeof info)
        return "ended by a signal";
    switch (info.ssi_signo) {
    case SIGTERM:
        return "ended by SIGTERM";
    case SIGINT:
        return "ended by SIGINT";
    default:
        return "ended by SIGHUP";
    }
}

void ending_take(struct ending *ending, const struct pollfd fds[ENDING_FDS])
{
    const char *why = NULL;
    if (fds[0].revents)
        why = signal_word(ending->signal_fd);
    if (fds[1].revents) {
        why = "ended because its parent is gone (the lifeline closed)";
        ending->lifeline_fd = -1;
    }
    if (!ending->why)
        ending->why = why;
}
