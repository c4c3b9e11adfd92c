/* What the far end does with its sockets: a thread for each in each phase. */
#ifndef NET_BENCH_FAR_ROLES_H
#define NET_BENCH_FAR_ROLES_H

#include "far_sockets.h"
#include "stream.h"
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct far_roles;

struct far_role {
    _Alignas(128) struct stream stream;
    struct far_roles *roles;
    struct place place;
    struct driver driver;
    pthread_t thread;
    int cpu; /* -1: not pinned */
    bool opened, started;
    bool reported; /* what this sender has sent in this phase */
    atomic_bool ended;
    int error; /* once it has ended: 0 or a negative errno */
    _Atomic uint64_t moved;
};

struct far_roles {
    struct test test, load;
    struct far_sockets *sockets;
    struct far_role *roles; /* as in test_place() */
    unsigned count;
    int wake_fd;  /* eventfd: some role has ended */
    int start_fd; /* … and: the senders are to start */
    bool running;
    uint8_t phase;
    atomic_bool started;      /* the near end receives */
    double begun_s, end_s;    /* of the phase; the senders' time is over then */
    double cpu_before_s;      /* of the process */
    atomic_bool stop_sending; /* the near end has ended the phase */
    atomic_bool stopping;     /* give up at once */
};

/* Opens a stream on each socket; the test is copied but for far_cpus, which must last. 0, or a
 * negative errno with one line in `why`. */
int far_roles_open(struct far_roles *roles, const struct test *test, struct far_sockets *sockets,
                   char *why, size_t size);
/* The same: starts all threads. Senders of the test wait, for what they send before the near end
 * receives would be lost, or counted in no time at all. */
int far_roles_begin(struct far_roles *roles, uint8_t phase, char *why, size_t size);
/* The near end receives: the phase's time begins. */
void far_roles_start(struct far_roles *roles);
/* What the near end has sent, or its round trips. */
void far_roles_expect(struct far_roles *roles, unsigned index, uint64_t bytes, uint64_t datagrams);
bool far_roles_all_ended(const struct far_roles *roles);
/* The next role that has ended and was not given out yet in this phase; NULL: none. */
struct far_role *far_roles_next_ended(struct far_roles *roles);
/* Joins the threads, which have all ended. */
void far_roles_join(struct far_roles *roles);
/* Payload that all roles have moved in this phase. */
uint64_t far_roles_moved(const struct far_roles *roles);
/* Has the threads give up, and waits for them up to `wait_s`: false when some have not, which then
 * end with the process; nothing may be freed. */
bool far_roles_stop(struct far_roles *roles, double wait_s);
void far_roles_close(struct far_roles *roles);

#endif
