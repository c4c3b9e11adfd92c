#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

/* The writer must give the bytes that the reader took, or the two ends mean different things. */
static void same(const struct frame *frame, const struct reader *body)
{
    if (frame->used != FRAME_HEADER + body->left ||
        memcmp(frame->bytes + FRAME_HEADER, body->at, body->left))
        abort();
}

/* Of a list of CPUs the order is not kept, nor are spellings of it: "3,1-2" is "1-3". */
static void test(struct reader body)
{
    static struct frame frame;
    struct test one, other;
    const char *why;
    if (!control_read_test(&body, &one, &why))
        return;
    control_put_test(&frame, &one);
    struct reader again = {.at = frame.bytes + FRAME_HEADER, .left = frame.used - FRAME_HEADER};
    if (!control_read_test(&again, &other, &why))
        abort();
    size_t used = one.far_cpus.count < test_sockets(&one) ? one.far_cpus.count : test_sockets(&one);
    if (other.far_cpus.count != used || test_sockets(&one) > SOCKETS_MOST)
        abort();
    for (unsigned i = 0; i < test_sockets(&one); i++)
        if (test_place(&one, i).near == test_place(&one, i).far)
            abort();
    test_free(&one);
    test_free(&other);
}

static void handshake(unsigned type, struct reader body)
{
    static struct frame frame;
    struct reader whole = body;
    struct message_hello hello;
    struct message_ready ready;
    uint8_t nonce[NONCE_BYTES], mac[MAC_BYTES];
    if (type == MESSAGE_HELLO && control_read_hello(&body, &hello)) {
        control_put_hello(&frame, &hello);
        if (hello.version == CONTROL_VERSION)
            same(&frame, &whole);
    } else if (type == MESSAGE_CHALLENGE && control_read_challenge(&body, nonce)) {
        control_put_challenge(&frame, nonce);
        same(&frame, &whole);
    } else if (type == MESSAGE_PROOF && control_read_proof(&body, mac)) {
        control_put_proof(&frame, mac);
        same(&frame, &whole);
    } else if (type == MESSAGE_READY && control_read_ready(&body, &ready)) {
        control_put_ready(&frame, &ready);
        same(&frame, &whole);
    }
}

static void printable(const char *text)
{
    for (const char *c = text; *c; c++)
        if (*c < ' ' || *c > '~')
            abort();
}

static void facts_of(struct reader body)
{
    static struct frame frame;
    struct far_facts facts;
    size_t length = body.left;
    if (!control_read_connected(&body, &facts))
        return;
    printable(facts.host_name);
    printable(facts.interface);
    printable(facts.network_mode);
    printable(facts.congestion);
    printable(facts.cpus);
    control_put_connected(&frame, &facts);
    if (frame.used != FRAME_HEADER + length)
        abort();
}

static void opening(unsigned type, struct reader body)
{
    static struct frame frame;
    static struct message_listening listening;
    struct reader whole = body;
    struct message_refused refused;
    if (type == MESSAGE_LISTENING && control_read_listening(&body, &listening)) {
        control_put_listening(&frame, &listening);
        same(&frame, &whole);
    } else if (type == MESSAGE_CONNECTED) {
        facts_of(body);
    } else if (type == MESSAGE_REFUSED && control_read_refused(&body, &refused)) {
        printable(refused.text);
    }
}

static void phases(unsigned type, struct reader body)
{
    static struct frame frame;
    static struct message_progress progress;
    struct reader whole = body;
    struct message_sent sent;
    struct message_counts counts;
    struct message_result result;
    uint8_t phase;
    if (type == MESSAGE_BEGIN && control_read_phase(&body, &phase)) {
        control_put_phase(&frame, MESSAGE_BEGIN, phase);
        same(&frame, &whole);
    } else if (type == MESSAGE_SENT && control_read_sent(&body, &sent)) {
        control_put_sent(&frame, &sent);
        same(&frame, &whole);
    } else if (type == MESSAGE_COUNTS && control_read_counts(&body, &counts)) {
        control_put_counts(&frame, &counts);
        same(&frame, &whole);
    } else if (type == MESSAGE_RESULT && control_read_result(&body, &result)) {
        control_put_result(&frame, &result);
        same(&frame, &whole);
    } else if (type == MESSAGE_HEARTBEAT && control_read_heartbeat(&body, &progress)) {
        control_put_heartbeat(&frame, &progress);
        same(&frame, &whole);
    }
}

void fuzz_messages(const uint8_t *bytes, size_t count)
{
    static struct inbox inbox;
    unsigned type;
    struct reader body;
    inbox = (struct inbox){0};
    fuzz_fill(&inbox, bytes, count);
    while (inbox_next(&inbox, &type, &body) > 0) {
        handshake(type, body);
        opening(type, body);
        phases(type, body);
        if (type == MESSAGE_TEST)
            test(body);
    }
}
