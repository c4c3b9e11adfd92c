#include "../bench/far_end.c"

#include "fuzz.h"

#include <assert.h>

/* Sockets and threads are no part of what is fuzzed: these stand in for them. All data sockets are
 * there at once, a sender ends when it is stopped, a receiver when it knows what was sent. */

int far_sockets_open(struct far_sockets *sockets, const struct test *test,
                     const struct endpoint *local, const struct endpoint *near)
{
    *sockets = (struct far_sockets){
        .test = test, .near = *near, .listener = -1, .count = test_sockets(test)};
    sockets->sockets = calloc(sockets->count, sizeof *sockets->sockets);
    for (unsigned i = 0; sockets->sockets && i < sockets->count; i++)
        sockets->sockets[i].fd = -1;
    (void)local;
    return sockets->sockets ? 0 : -ENOMEM;
}

bool far_sockets_all_open(const struct far_sockets *sockets)
{
    (void)sockets;
    return true;
}

unsigned far_sockets_fds(const struct far_sockets *sockets, struct pollfd *fds)
{
    (void)sockets, (void)fds;
    return 0;
}

void far_sockets_serve(struct far_sockets *sockets, const struct pollfd *fds, unsigned count)
{
    (void)sockets, (void)fds, (void)count;
}

void far_sockets_drain(const struct far_sockets *sockets)
{
    (void)sockets;
}

void far_sockets_close(struct far_sockets *sockets)
{
    free(sockets->sockets);
    sockets->sockets = NULL;
}

int far_roles_open(struct far_roles *roles, const struct test *test, struct far_sockets *sockets,
                   char *why, size_t size)
{
    (void)why, (void)size;
    *roles = (struct far_roles){.test = *test,
                                .sockets = sockets,
                                .wake_fd = -1,
                                .start_fd = -1,
                                .count = test_sockets(test)};
    roles->load = test_of_load(test);
    roles->roles = calloc(roles->count, sizeof *roles->roles);
    for (unsigned i = 0; roles->roles && i < roles->count; i++) {
        roles->roles[i].place = test_place(test, i);
        roles->roles[i].stream.test = roles->roles[i].place.load ? &roles->load : &roles->test;
    }
    return roles->roles ? 0 : -ENOMEM;
}

int far_roles_begin(struct far_roles *roles, uint8_t phase, char *why, size_t size)
{
    (void)why, (void)size;
    assert(!roles->running);
    roles->phase = phase;
    roles->running = true;
    atomic_store(&roles->started, false);
    for (unsigned i = 0; i < roles->count; i++)
        atomic_store(&roles->roles[i].stream.expected, STREAM_UNKNOWN);
    return 0;
}

void far_roles_start(struct far_roles *roles)
{
    assert(roles->running && !roles->started);
    atomic_store(&roles->started, true);
}

void far_roles_expect(struct far_roles *roles, unsigned index, uint64_t bytes, uint64_t datagrams)
{
    (void)datagrams;
    assert(index < roles->count && roles->roles[index].place.far != ROLE_SEND);
    atomic_store(&roles->roles[index].stream.expected, bytes);
}

bool far_roles_all_ended(const struct far_roles *roles)
{
    return roles->running;
}

struct far_role *far_roles_next_ended(struct far_roles *roles)
{
    (void)roles;
    return NULL;
}

void far_roles_join(struct far_roles *roles)
{
    for (unsigned i = 0; i < roles->count; i++)
        assert(roles->roles[i].place.far == ROLE_SEND ||
               atomic_load(&roles->roles[i].stream.expected) != STREAM_UNKNOWN);
    roles->running = false;
}

uint64_t far_roles_moved(const struct far_roles *roles)
{
    (void)roles;
    return 0;
}

bool far_roles_stop(struct far_roles *roles, double wait_s)
{
    (void)wait_s;
    roles->running = false;
    return true;
}

void far_roles_close(struct far_roles *roles)
{
    free(roles->roles);
    *roles = (struct far_roles){.wake_fd = -1, .start_fd = -1};
}

/* The first message in the input, with what is behind it if it has no end. */
static size_t first_message(const uint8_t *bytes, size_t count)
{
    struct reader header = {.at = bytes, .left = count};
    read_u16(&header);
    size_t length = FRAME_HEADER + (size_t)read_u16(&header);
    return length < count ? length : count;
}

void fuzz_far_end(const uint8_t *bytes, size_t count)
{
    static struct far_end far;
    struct caller *caller = calloc(1, sizeof *caller);
    if (!caller)
        abort();
    caller->fd = fuzz_socket();
    far = (struct far_end){.control = caller,
                           .state = STATE_PROVEN,
                           .door.listener = -1,
                           .sockets.listener = -1,
                           .roles.wake_fd = -1,
                           .roles.start_fd = -1,
                           .grant.caps = {.duration_s = 1000, .streams = 64}};
    while (count > 0 && !far.outcome) {
        size_t taken = fuzz_fill(&caller->inbox, bytes, first_message(bytes, count));
        if (taken == 0)
            break;
        bytes += taken;
        count -= taken;
        take_messages(&far);
        if (far.state == STATE_OPENING && !far.outcome)
            connected(&far);
    }
    far_roles_close(&far.roles);
    far_sockets_close(&far.sockets);
    test_free(&far.test);
    free(caller);
}
