#define _GNU_SOURCE
#include "greeting.h"

#include "monotonic.h"

#include <errno.h>
#include <sys/socket.h>

/* The clock is looked at after so many. */
enum { DRAINED_AT_ONCE = 64 };

void greeting_drain(int fd, double until_s)
{
    char byte;
    for (unsigned drained = 1; drained % DRAINED_AT_ONCE || now_s() < until_s; drained++)
        if (recv(fd, &byte, sizeof byte, MSG_DONTWAIT | MSG_TRUNC) < 0 && errno != ECONNREFUSED &&
            errno != EINTR)
            return;
}
