#define _GNU_SOURCE
#include "output.h"

#include "monotonic.h"
#include "workload.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <unistd.h>

static struct ending no_ending = {.signal_fd = -1, .lifeline_fd = -1};
static struct ending *watched = &no_ending;

void output_watch(struct ending *ending)
{
    watched = ending;
}

/* Waits until stdout takes something. */
static void wait_for_room(void)
{
    double end_s = INFINITY;
    struct pollfd fds[1 + ENDING_FDS];
    do {
        if (watched->why && end_s == INFINITY)
            end_s = now_s() + ENDING_WITHIN_S;
        fds[0] = (struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT};
        ending_fds(watched, fds + 1);
        if (poll(fds, 1 + ENDING_FDS, watched->why ? 50 : -1) < 0)
            continue;
        if (fds[0].revents)
            return;
        ending_take(watched, fds + 1);
    } while (now_s() < end_s);
    _exit(EXIT_FAILED);
}

bool output_write(const char *text, size_t length)
{
    while (length > 0) {
        wait_for_room();
        /* A pipe that polls writable takes this much without blocking. */
        ssize_t written = write(STDOUT_FILENO, text, length < PIPE_BUF ? length : PIPE_BUF);
        if (written < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (written < 0)
            return false;
        text += written;
        length -= (size_t)written;
    }
    return true;
}
