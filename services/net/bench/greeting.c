#define _GNU_SOURCE
#include "greeting.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>

/* More than any receive buffer holds: a sender that does not stop is not waited for. */
enum { DRAINED_MOST = 1 << 20 };

unsigned greeting_drain(int fd)
{
    unsigned drained = 0;
    char byte;
    while (drained < DRAINED_MOST) {
        if (recv(fd, &byte, sizeof byte, MSG_DONTWAIT | MSG_TRUNC) >= 0)
            drained++;
        else if (errno != ECONNREFUSED && errno != EINTR)
            break;
    }
    return drained;
}
