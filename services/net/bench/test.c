#include "test.h"

#include <math.h>
#include <stddef.h>

enum { LOAD_BLOCK_BYTES = 131072 };

static unsigned directions(enum test_direction direction)
{
    return direction == DIRECTION_BOTH ? 2 : 1;
}

unsigned test_own_sockets(const struct test *test)
{
    return test->streams * (test->kind == KIND_STREAM ? directions(test->direction) : 1);
}

unsigned test_sockets(const struct test *test)
{
    return test_own_sockets(test) + test->load_streams * directions(test->load_direction);
}

static enum role near_role(enum test_direction direction, unsigned streams, unsigned index)
{
    if (direction == DIRECTION_BOTH)
        return index < streams ? ROLE_SEND : ROLE_RECEIVE;
    return direction == DIRECTION_SEND ? ROLE_SEND : ROLE_RECEIVE;
}

struct place test_place(const struct test *test, unsigned index)
{
    unsigned own = test_own_sockets(test);
    struct place place = {.index = index, .load = index >= own};
    if (place.load)
        place.near = near_role(test->load_direction, test->load_streams, index - own);
    else if (test->kind == KIND_STREAM)
        place.near = near_role(test->direction, test->streams, index);
    else
        place.near = ROLE_ASK;
    if (place.near == ROLE_ASK)
        place.far = ROLE_ANSWER;
    else
        place.far = place.near == ROLE_SEND ? ROLE_RECEIVE : ROLE_SEND;
    return place;
}

struct test test_of_load(const struct test *test)
{
    struct test load = *test;
    load.protocol = PROTOCOL_TCP;
    load.kind = KIND_STREAM;
    load.direction = test->load_direction;
    load.streams = test->load_streams;
    load.load_streams = 0;
    if (test->protocol == PROTOCOL_UDP) /* UDP's buffers are no window of TCP's */
        load.send_buffer_bytes = load.receive_buffer_bytes = 0;
    load.block_bytes = LOAD_BLOCK_BYTES;
    load.rate = 0;
    load.send_path = SEND_COPY;
    load.truncate = false;
    load.spin = false;
    load.duration_s = 0;
    load.work_bytes = 0;
    return load;
}

uint64_t test_share_bytes(const struct test *test, unsigned stream)
{
    if (test->work_bytes == 0)
        return UINT64_MAX;
    unsigned all = test_own_sockets(test);
    return test->work_bytes / all + (stream < test->work_bytes % all);
}

static const char *invalid_streams(const struct test *test)
{
    if (test->streams < 1 || test->streams > STREAMS_MOST)
        return "streams must be 1 to 512";
    if (test->load_streams > LOAD_STREAMS_MOST)
        return "load_streams must be 0 to 64";
    if (test->load_streams > 0 && test->kind == KIND_STREAM)
        return "load_streams go with round trips only";
    if (test->kind == KIND_CRR && test->protocol != PROTOCOL_TCP)
        return "crr needs TCP";
    return NULL;
}

static bool amount(double value, double most)
{
    return isfinite(value) && value >= 0 && value <= most;
}

static bool known_congestion(const char *name)
{
    for (const char *c = name; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '_' || *c == '-'))
            return false;
    return true;
}

const char *test_invalid(const struct test *test)
{
    const char *why = invalid_streams(test);
    uint32_t block_most = test->protocol == PROTOCOL_TCP ? TCP_BLOCK_MOST : UDP_BLOCK_MOST;
    if (why)
        return why;
    if (test->block_bytes < 1 || test->block_bytes > block_most)
        return "block_bytes must be 1 to 1048576, of UDP 1 to 65507";
    if (!amount(test->rate, 1e15))
        return "rate must be 0 to 1e15";
    if (!amount(test->duration_s, 1e6) || !amount(test->ramp_s, 1e6))
        return "duration_s and ramp_s must be 0 to 1e6";
    if (test->send_buffer_bytes > 1u << 30 || test->receive_buffer_bytes > 1u << 30)
        return "socket buffers must be at most 1 GiB";
    if (!known_congestion(test->congestion))
        return "congestion must be a name of small letters";
    return NULL;
}

void test_free(struct test *test)
{
    cpulist_free(&test->far_cpus);
}
