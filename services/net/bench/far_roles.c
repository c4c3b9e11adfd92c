#define _GNU_SOURCE
#include "far_roles.h"

#include "monotonic.h"
#include "rr.h"
#include "stream_run.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* Who waits for the start looks that often whether there will be none. */
enum { LOOK_MS = 20 };

/* ---- what a role asks ----------------------------------------------------------------------- */

static bool over(void *context, uint64_t moved_bytes, double at_s)
{
    const struct far_role *role = context;
    const struct far_roles *roles = role->roles;
    (void)moved_bytes; /* the stream itself ends at its share of the work */
    return (!role->place.load && at_s >= roles->end_s) ||
           atomic_load_explicit(&roles->stop_sending, memory_order_relaxed) ||
           atomic_load_explicit(&roles->stopping, memory_order_relaxed);
}

static bool stopping(void *context)
{
    const struct far_role *role = context;
    return atomic_load_explicit(&role->roles->stopping, memory_order_relaxed);
}

static void moved(void *context, uint64_t bytes)
{
    struct far_role *role = context;
    atomic_store_explicit(&role->moved, bytes, memory_order_relaxed);
}

static void done(void *context, uint64_t latency_ns)
{
    (void)context;
    (void)latency_ns;
}

/* ---- opening -------------------------------------------------------------------------------- */

static bool has_socket(const struct far_role *role)
{
    return role->place.load || role->stream.test->kind != KIND_CRR;
}

/* Threads take the CPUs in turn. */
static int cpu_of(const struct test *test, unsigned index)
{
    return test->far_cpus.count > 0 ? test->far_cpus.cpus[index % test->far_cpus.count] : -1;
}

static int open_role(struct far_roles *roles, unsigned index, char *why, size_t size)
{
    struct far_role *role = &roles->roles[index];
    *role = (struct far_role){.roles = roles,
                              .place = test_place(&roles->test, index),
                              .cpu = cpu_of(&roles->test, index),
                              .driver = {role, over, stopping, moved, done}};
    role->stream.test = role->place.load ? &roles->load : &roles->test;
    role->stream.index = role->place.load ? index - test_own_sockets(&roles->test) : index;
    role->stream.fd = roles->sockets->sockets[index].fd;
    role->stream.role = role->place.far;
    if (!has_socket(role))
        return 0;
    int error = stream_open(&role->stream);
    role->opened = error == 0;
    if (error)
        snprintf(why, size, "%s", role->stream.what);
    return error;
}

int far_roles_open(struct far_roles *roles, const struct test *test, struct far_sockets *sockets,
                   char *why, size_t size)
{
    *roles = (struct far_roles){.test = *test,
                                .load = test_of_load(test),
                                .sockets = sockets,
                                .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                                .start_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    unsigned count = test_sockets(test);
    size_t bytes = count * sizeof *roles->roles;
    roles->roles = aligned_alloc(_Alignof(struct far_role), bytes);
    if (!roles->roles || roles->wake_fd < 0 || roles->start_fd < 0) {
        snprintf(why, size, "no memory or descriptor for %u streams", count);
        return -ENOMEM;
    }
    for (; roles->count < count; roles->count++) {
        int error = open_role(roles, roles->count, why, size);
        if (error)
            return error;
    }
    return 0;
}

/* ---- a phase -------------------------------------------------------------------------------- */

/* No thread takes the event out, so it wakes all. */
static void await_start(struct far_roles *roles)
{
    struct pollfd start = {.fd = roles->start_fd, .events = POLLIN};
    while (!atomic_load_explicit(&roles->started, memory_order_acquire) &&
           !atomic_load(&roles->stop_sending) && !atomic_load(&roles->stopping))
        poll(&start, 1, LOOK_MS);
}

static int run_role(struct far_role *role)
{
    if (role->place.far == ROLE_SEND && !role->place.load)
        await_start(role->roles);
    struct far_sockets *sockets = role->roles->sockets;
    if (role->place.far != ROLE_ANSWER)
        return stream_run(&role->stream, &role->driver);
    if (role->stream.test->kind == KIND_RR)
        return rr_answer(&role->stream, &role->driver);
    return crr_answer(sockets->listener, &role->stream, &sockets->near.address,
                      sockets->sockets[role->place.index].key, &sockets->strangers, &role->driver);
}

static int pin(int cpu)
{
    cpu_set_t *set = CPU_ALLOC(CPULIST_MAX);
    size_t size = CPU_ALLOC_SIZE(CPULIST_MAX);
    if (!set)
        return -ENOMEM;
    CPU_ZERO_S(size, set);
    CPU_SET_S((size_t)cpu, size, set);
    int error = sched_setaffinity(0, size, set) ? -errno : 0;
    CPU_FREE(set);
    return error;
}

static void *role_thread(void *context)
{
    struct far_role *role = context;
    role->error = role->cpu >= 0 ? pin(role->cpu) : 0;
    if (role->error)
        snprintf(role->stream.what, sizeof role->stream.what,
                 "pinning a thread to CPU %d of far_cpus: %s", role->cpu, strerror(-role->error));
    else
        role->error = run_role(role);
    atomic_store_explicit(&role->ended, true, memory_order_release);
    eventfd_write(role->roles->wake_fd, 1);
    return NULL;
}

static void prepare(struct far_role *role, uint8_t phase)
{
    stream_begin_phase(&role->stream, phase);
    role->reported = false;
    role->error = 0;
    atomic_store(&role->moved, 0);
    atomic_store(&role->ended, false);
}

static void begin_time(struct far_roles *roles)
{
    double for_s = roles->phase == PHASE_RAMP ? roles->test.ramp_s : roles->test.duration_s;
    roles->cpu_before_s = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    roles->begun_s = now_s();
    roles->end_s = roles->phase == PHASE_TIMED && for_s == 0 ? INFINITY : roles->begun_s + for_s;
}

int far_roles_begin(struct far_roles *roles, uint8_t phase, char *why, size_t size)
{
    eventfd_t before;
    eventfd_read(roles->start_fd, &before);
    roles->phase = phase;
    roles->running = true;
    atomic_store(&roles->started, false);
    atomic_store(&roles->stop_sending, false);
    begin_time(roles);
    for (unsigned i = 0; i < roles->count; i++)
        prepare(&roles->roles[i], phase);
    for (unsigned i = 0; i < roles->count; i++) {
        struct far_role *role = &roles->roles[i];
        int error = pthread_create(&role->thread, NULL, role_thread, role);
        role->started = error == 0;
        if (error) {
            snprintf(why, size, "thread %u of %u cannot be started: %s", i + 1, roles->count,
                     strerror(error));
            return -error;
        }
    }
    return 0;
}

/* Before it no thread looks at the times: only senders do. */
void far_roles_start(struct far_roles *roles)
{
    begin_time(roles);
    atomic_store_explicit(&roles->started, true, memory_order_release);
    eventfd_write(roles->start_fd, 1);
}

void far_roles_expect(struct far_roles *roles, unsigned index, uint64_t bytes, uint64_t datagrams)
{
    struct far_role *role = &roles->roles[index];
    bool in_bytes = role->place.far == ROLE_RECEIVE && role->stream.test->protocol == PROTOCOL_TCP;
    atomic_store_explicit(&role->stream.expected, in_bytes ? bytes : datagrams,
                          memory_order_release);
}

static bool has_ended(const struct far_role *role)
{
    return !role->started || atomic_load_explicit(&role->ended, memory_order_acquire);
}

bool far_roles_all_ended(const struct far_roles *roles)
{
    for (unsigned i = 0; i < roles->count; i++)
        if (!has_ended(&roles->roles[i]))
            return false;
    return true;
}

struct far_role *far_roles_next_ended(struct far_roles *roles)
{
    for (unsigned i = 0; i < roles->count; i++) {
        struct far_role *role = &roles->roles[i];
        if (role->started && !role->reported && has_ended(role)) {
            role->reported = true;
            return role;
        }
    }
    return NULL;
}

void far_roles_join(struct far_roles *roles)
{
    for (unsigned i = 0; i < roles->count; i++)
        if (roles->roles[i].started)
            pthread_join(roles->roles[i].thread, NULL);
    for (unsigned i = 0; i < roles->count; i++)
        roles->roles[i].started = false;
    roles->running = false;
}

uint64_t far_roles_moved(const struct far_roles *roles)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < roles->count; i++)
        bytes += atomic_load_explicit(&roles->roles[i].moved, memory_order_relaxed);
    return bytes;
}

/* ---- the end -------------------------------------------------------------------------------- */

bool far_roles_stop(struct far_roles *roles, double wait_s)
{
    const double until_s = now_s() + wait_s;
    const struct timespec nap = {.tv_nsec = 2000000};
    atomic_store(&roles->stopping, true);
    while (!far_roles_all_ended(roles)) {
        if (now_s() >= until_s)
            return false;
        nanosleep(&nap, NULL);
    }
    far_roles_join(roles);
    return true;
}

void far_roles_close(struct far_roles *roles)
{
    for (unsigned i = 0; i < roles->count; i++)
        if (roles->roles[i].opened)
            stream_close(&roles->roles[i].stream);
    if (roles->wake_fd >= 0)
        close(roles->wake_fd);
    if (roles->start_fd >= 0)
        close(roles->start_fd);
    free(roles->roles);
    *roles = (struct far_roles){.wake_fd = -1, .start_fd = -1};
}
