/* The near end's control connection: the handshake, and then a thread that keeps heartbeats and takes
 * what the far end reports. All waiting is on `changed`. */
#ifndef NET_BENCH_NEAR_CONTROL_H
#define NET_BENCH_NEAR_CONTROL_H

#include "control.h"
#include "endpoint.h"
#include "stream.h"
#include "wire.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct near_control {
    int fd;                       /* -1: none */
    int stop_fd;                  /* eventfd: the thread is to end */
    struct endpoint near, far;    /* the connection's two ends */
    struct caps caps;             /* what the session allows */
    char far_text[ENDPOINT_TEXT]; /* the far end's address, for messages */
    struct inbox inbox;
    pthread_t thread;
    bool threaded;
    pthread_mutex_t sending; /* a frame is never inside another */

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    unsigned count;          /* sockets of the test */
    struct stream **streams; /* of the near end, which get what was sent to them; NULL: none yet */
    struct opening openings[SOCKETS_MOST];
    unsigned openings_reported;
    bool connected;
    struct far_facts facts;
    int begun; /* the last phase that has; -1: none */
    int ended; /* … whose result is there */
    struct stream_counts counts[SOCKETS_MOST];
    struct message_result result;
    char reason[512]; /* why it is lost */
    int exit_code;

    _Atomic uint64_t moved[SOCKETS_MOST]; /* by the far end's roles in this phase */
    _Atomic double progress_s;            /* when that came; 0: not yet */
    atomic_bool lost;
};

/* Before all others. */
void near_control_init(struct near_control *control);
/* Connects to grant->address and proves the token: both ends know it then. 0, or an exit_code with
 * one line in control->reason. */
int near_control_open(struct near_control *control, const struct grant *grant);
/* Starts the thread, and sends the test. Like the above. */
int near_control_ask(struct near_control *control, const struct test *test);
/* Sends one frame; a failure is a loss. */
void near_control_send(struct near_control *control, struct frame *frame);
/* The first loss counts. */
void near_control_lost(struct near_control *control, int exit_code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* With `lock` held: waits for a change, but no longer than `wait_s`. */
void near_control_wait(struct near_control *control, double wait_s);
/* Says BYE unless it is lost, ends the thread, and closes the connection. */
void near_control_close(struct near_control *control);

#endif
