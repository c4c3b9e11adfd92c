#define _GNU_SOURCE
#include "load.h"

#include "stream_tcp.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

/* A thread with its stream. */
struct puller {
    struct load *load;
    struct load_stream of;
    pthread_t thread;
    bool running;
    int result;
    _Atomic uint64_t moved;
};

struct load {
    bool (*stopping)(void *);
    void *context;
    atomic_bool over;
    atomic_bool given_up; /* by the thread that started it */
    unsigned count;
    struct puller pullers[];
};

static bool over(void *context, uint64_t moved_bytes, double at_s)
{
    const struct puller *puller = context;
    (void)moved_bytes, (void)at_s;
    return atomic_load_explicit(&puller->load->over, memory_order_relaxed);
}

static bool stopping(void *context)
{
    const struct load *load = ((const struct puller *)context)->load;
    return atomic_load_explicit(&load->given_up, memory_order_relaxed) ||
           load->stopping(load->context);
}

static void moved(void *context, uint64_t bytes)
{
    atomic_store_explicit(&((struct puller *)context)->moved, bytes, memory_order_relaxed);
}

static void *pull(void *argument)
{
    struct puller *puller = argument;
    const struct driver driver = {puller, over, stopping, moved, NULL};
    puller->result = (puller->of.sends ? tcp_send : tcp_receive)(puller->of.stream, &driver);
    return NULL;
}

/* Threads inherit the CPUs of the thread that starts them, which is pinned to one. */
static int on_cpus(pthread_attr_t *attributes, const struct cpulist *cpus)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (size_t i = 0; i < cpus->count; i++)
        if (cpus->cpus[i] < CPU_SETSIZE)
            CPU_SET((size_t)cpus->cpus[i], &set);
    return cpus->count ? pthread_attr_setaffinity_np(attributes, sizeof set, &set) : 0;
}

static int start(struct load *load, const struct cpulist *cpus)
{
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error)
        return error;
    error = on_cpus(&attributes, cpus);
    for (unsigned i = 0; !error && i < load->count; i++) {
        struct puller *puller = &load->pullers[i];
        error = pthread_create(&puller->thread, &attributes, pull, puller);
        puller->running = !error;
    }
    pthread_attr_destroy(&attributes);
    return error;
}

int load_begin(struct load **load, const struct load_stream *streams, unsigned count,
               const struct cpulist *cpus, bool (*stopping)(void *), void *context)
{
    *load = calloc(1, sizeof **load + count * sizeof(struct puller));
    if (!*load)
        return -ENOMEM;
    (*load)->stopping = stopping;
    (*load)->context = context;
    (*load)->count = count;
    for (unsigned i = 0; i < count; i++)
        (*load)->pullers[i] = (struct puller){.load = *load, .of = streams[i]};
    int error = start(*load, cpus);
    if (!error)
        return 0;
    load_abandon(*load);
    *load = NULL;
    return -error;
}

uint64_t load_moved(const struct load *load)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < load->count; i++)
        bytes += atomic_load_explicit(&load->pullers[i].moved, memory_order_relaxed);
    return bytes;
}

static void join(struct puller *puller)
{
    if (puller->running)
        pthread_join(puller->thread, NULL);
    puller->running = false;
}

void load_stop(struct load *load)
{
    atomic_store(&load->over, true);
    for (unsigned i = 0; i < load->count; i++)
        if (load->pullers[i].of.sends)
            join(&load->pullers[i]);
}

int load_join(struct load *load, struct stream **failed)
{
    int result = 0;
    *failed = NULL;
    for (unsigned i = 0; i < load->count; i++) {
        struct puller *puller = &load->pullers[i];
        join(puller);
        if (puller->result && !result) {
            result = puller->result;
            *failed = puller->of.stream;
        }
    }
    free(load);
    return result;
}

void load_abandon(struct load *load)
{
    struct stream *failed;
    if (!load)
        return;
    atomic_store(&load->given_up, true);
    load_stop(load);
    load_join(load, &failed);
}

double load_rate(const struct stream_counts *receiver)
{
    double seconds = receiver->last_s - receiver->first_s;
    return seconds > 0 ? (double)(receiver->bytes - receiver->first_bytes) / seconds : NAN;
}
