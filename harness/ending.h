/* What may tell a run to end before its time: SIGTERM, SIGINT, SIGHUP, a closed lifeline. */
#ifndef HOSTBENCH_ENDING_H
#define HOSTBENCH_ENDING_H

#include <poll.h>
#include <stdbool.h>

enum { ENDING_FDS = 2 };

struct ending {
    int signal_fd;
    int lifeline_fd; /* -1: none, or closed by now */
    const char *why; /* NULL: the run goes on */
};

/* Once the run is to end, it has this long for all that is left to do. */
static const double ENDING_WITHIN_S = 0.5;

/* Blocks the signals, so that they are read instead of ending the process at once. */
bool ending_catch_signals(struct ending *ending);
/* Fills in what to poll for. */
void ending_fds(const struct ending *ending, struct pollfd fds[ENDING_FDS]);
/* Takes in what poll() found. */
void ending_take(struct ending *ending, const struct pollfd fds[ENDING_FDS]);

#endif
