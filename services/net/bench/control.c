#include "control.h"

#include <string.h>

/* ---- the handshake -------------------------------------------------------------------------- */

void control_put_hello(struct frame *frame, const struct message_hello *hello)
{
    frame_begin(frame, MESSAGE_HELLO);
    put_u16(frame, hello->version);
    put_bytes(frame, hello->nonce, NONCE_BYTES);
}

/* Of another version nothing behind it is looked at: it may have any form. */
bool control_read_hello(struct reader *reader, struct message_hello *hello)
{
    hello->version = read_u16(reader);
    if (!reader->bad && hello->version != CONTROL_VERSION)
        return true;
    read_bytes(reader, hello->nonce, NONCE_BYTES);
    return read_all(reader);
}

void control_put_challenge(struct frame *frame, const uint8_t nonce[NONCE_BYTES])
{
    frame_begin(frame, MESSAGE_CHALLENGE);
    put_bytes(frame, nonce, NONCE_BYTES);
}

bool control_read_challenge(struct reader *reader, uint8_t nonce[NONCE_BYTES])
{
    read_bytes(reader, nonce, NONCE_BYTES);
    return read_all(reader);
}

void control_put_proof(struct frame *frame, const uint8_t mac[MAC_BYTES])
{
    frame_begin(frame, MESSAGE_PROOF);
    put_bytes(frame, mac, MAC_BYTES);
}

bool control_read_proof(struct reader *reader, uint8_t mac[MAC_BYTES])
{
    read_bytes(reader, mac, MAC_BYTES);
    return read_all(reader);
}

void control_put_ready(struct frame *frame, const struct message_ready *ready)
{
    frame_begin(frame, MESSAGE_READY);
    put_bytes(frame, ready->mac, MAC_BYTES);
    put_f64(frame, ready->caps.duration_s);
    put_u32(frame, ready->caps.streams);
    put_u64(frame, ready->caps.bytes);
    put_f64(frame, ready->caps.rate);
}

bool control_read_ready(struct reader *reader, struct message_ready *ready)
{
    read_bytes(reader, ready->mac, MAC_BYTES);
    ready->caps.duration_s = read_f64(reader);
    ready->caps.streams = read_u32(reader);
    ready->caps.bytes = read_u64(reader);
    ready->caps.rate = read_f64(reader);
    return read_all(reader);
}

void control_put_refused(struct frame *frame, enum refusal refusal, const char *text)
{
    frame_begin(frame, MESSAGE_REFUSED);
    put_u8(frame, (uint8_t)refusal);
    put_text(frame, text);
}

/* What another host says is shown to people and stands in JSON: other than printable characters
 * are replaced. */
static void read_printable(struct reader *reader, char *text, size_t size)
{
    read_text(reader, text, size);
    for (char *c = text; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

bool control_read_refused(struct reader *reader, struct message_refused *refused)
{
    uint8_t refusal = read_u8(reader);
    read_printable(reader, refused->text, sizeof refused->text);
    refused->refusal = (enum refusal)refusal;
    return read_all(reader) && refusal >= REFUSAL_PROTOCOL && refusal <= REFUSAL_UNSUPPORTED;
}

/* ---- the test ------------------------------------------------------------------------------- */

enum { TRUNCATE = 1, SPIN = 2 };
/* Room for a CPU a socket, however spread. */
enum { CPUS_TEXT = SOCKETS_MOST * sizeof "8191," };

void control_put_test(struct frame *frame, const struct test *test)
{
    char cpus[CPUS_TEXT];
    struct cpulist used = test->far_cpus; /* further ones are no thread's */
    if (used.count > test_sockets(test))
        used.count = test_sockets(test);
    cpulist_format(&used, cpus, sizeof cpus);
    frame_begin(frame, MESSAGE_TEST);
    put_u8(frame, test->protocol);
    put_u8(frame, test->kind);
    put_u8(frame, test->direction);
    put_u16(frame, (uint16_t)test->streams);
    put_u16(frame, (uint16_t)test->load_streams);
    put_u8(frame, test->load_direction);
    put_u32(frame, test->block_bytes);
    put_f64(frame, test->rate);
    put_u8(frame, test->send_path);
    put_u8(frame, test->udp_path);
    put_u8(frame, (uint8_t)((test->truncate ? TRUNCATE : 0) | (test->spin ? SPIN : 0)));
    put_u32(frame, test->send_buffer_bytes);
    put_u32(frame, test->receive_buffer_bytes);
    put_text(frame, test->congestion);
    put_f64(frame, test->duration_s);
    put_f64(frame, test->ramp_s);
    put_u64(frame, test->work_bytes);
    put_text(frame, cpus);
}

/* One of the first `most` + 1 words of an enum. */
static unsigned read_word(struct reader *reader, unsigned most)
{
    unsigned word = read_u8(reader);
    if (word > most)
        reader->bad = true;
    return reader->bad ? 0 : word;
}

static void read_test(struct reader *reader, struct test *test, char cpus[CPUS_TEXT])
{
    test->protocol = read_word(reader, PROTOCOL_UDP);
    test->kind = read_word(reader, KIND_CRR);
    test->direction = read_word(reader, DIRECTION_BOTH);
    test->streams = read_u16(reader);
    test->load_streams = read_u16(reader);
    test->load_direction = read_word(reader, DIRECTION_BOTH);
    test->block_bytes = read_u32(reader);
    test->rate = read_f64(reader);
    test->send_path = read_word(reader, SEND_ZEROCOPY);
    test->udp_path = read_word(reader, UDP_GSO);
    unsigned flags = read_word(reader, TRUNCATE | SPIN);
    test->truncate = flags & TRUNCATE;
    test->spin = flags & SPIN;
    test->send_buffer_bytes = read_u32(reader);
    test->receive_buffer_bytes = read_u32(reader);
    read_text(reader, test->congestion, sizeof test->congestion);
    test->duration_s = read_f64(reader);
    test->ramp_s = read_f64(reader);
    test->work_bytes = read_u64(reader);
    read_text(reader, cpus, CPUS_TEXT);
}

bool control_read_test(struct reader *reader, struct test *test, const char **why)
{
    char cpus[CPUS_TEXT];
    *test = (struct test){0};
    read_test(reader, test, cpus);
    *why = read_all(reader) ? test_invalid(test) : "its TEST message is malformed";
    if (*why)
        return false;
    if (!*cpus || cpulist_parse(cpus, &test->far_cpus))
        return true;
    *why = "far_cpus must be a CPU list such as 0,2-5";
    return false;
}

/* ---- the data sockets ----------------------------------------------------------------------- */

void control_put_listening(struct frame *frame, const struct message_listening *listening)
{
    frame_begin(frame, MESSAGE_LISTENING);
    put_u16(frame, listening->first);
    put_u16(frame, listening->count);
    for (unsigned i = 0; i < listening->count; i++) {
        put_u16(frame, listening->openings[i].port);
        put_bytes(frame, listening->openings[i].key, KEY_BYTES);
    }
}

/* Whether these sockets can be some of a test's. */
static bool sockets(const struct reader *reader, unsigned first, unsigned count, unsigned most)
{
    return !reader->bad && count <= most && first + count <= SOCKETS_MOST;
}

bool control_read_listening(struct reader *reader, struct message_listening *listening)
{
    listening->first = read_u16(reader);
    listening->count = read_u16(reader);
    if (!sockets(reader, listening->first, listening->count, OPENINGS_A_FRAME))
        return false;
    for (unsigned i = 0; i < listening->count; i++) {
        listening->openings[i].port = read_u16(reader);
        read_bytes(reader, listening->openings[i].key, KEY_BYTES);
    }
    return read_all(reader);
}

void control_put_connected(struct frame *frame, const struct far_facts *facts)
{
    frame_begin(frame, MESSAGE_CONNECTED);
    put_text(frame, facts->host_name);
    put_text(frame, facts->interface);
    put_text(frame, facts->network_mode);
    put_text(frame, facts->congestion);
    put_text(frame, facts->cpus);
    put_u32(frame, facts->interface_mtu_bytes);
    put_u32(frame, facts->path_mtu_bytes);
}

bool control_read_connected(struct reader *reader, struct far_facts *facts)
{
    read_printable(reader, facts->host_name, sizeof facts->host_name);
    read_printable(reader, facts->interface, sizeof facts->interface);
    read_printable(reader, facts->network_mode, sizeof facts->network_mode);
    read_printable(reader, facts->congestion, sizeof facts->congestion);
    read_printable(reader, facts->cpus, sizeof facts->cpus);
    facts->interface_mtu_bytes = read_u32(reader);
    facts->path_mtu_bytes = read_u32(reader);
    return read_all(reader);
}

/* ---- the phases ----------------------------------------------------------------------------- */

void control_put_phase(struct frame *frame, enum message message, uint8_t phase)
{
    frame_begin(frame, message);
    put_u8(frame, phase);
}

bool control_read_phase(struct reader *reader, uint8_t *phase)
{
    *phase = read_u8(reader);
    return read_all(reader) && *phase <= PHASE_TIMED;
}

void control_put_sent(struct frame *frame, const struct message_sent *sent)
{
    frame_begin(frame, MESSAGE_SENT);
    put_u16(frame, sent->index);
    put_u64(frame, sent->bytes);
    put_u64(frame, sent->datagrams);
}

bool control_read_sent(struct reader *reader, struct message_sent *sent)
{
    sent->index = read_u16(reader);
    sent->bytes = read_u64(reader);
    sent->datagrams = read_u64(reader);
    return read_all(reader) && sent->index < SOCKETS_MOST;
}

void control_put_counts(struct frame *frame, const struct message_counts *message)
{
    const struct stream_counts *counts = &message->counts;
    frame_begin(frame, MESSAGE_COUNTS);
    put_u16(frame, message->index);
    put_u64(frame, counts->bytes);
    put_u64(frame, counts->datagrams);
    put_u64(frame, counts->duplicated);
    put_u64(frame, counts->reordered);
    put_u64(frame, counts->refused);
    put_u64(frame, counts->dropped_by_receiver);
    put_u64(frame, counts->lost_operations);
    put_u64(frame, counts->first_bytes);
    put_f64(frame, counts->first_s);
    put_f64(frame, counts->last_s);
    put_f64(frame, counts->cpu_s);
    put_u64(frame, counts->retransmits);
    put_u32(frame, counts->congestion_window_bytes);
    put_u32(frame, counts->path_mtu_bytes);
    put_u32(frame, counts->mss_bytes);
    put_f64(frame, counts->tcp_rtt_s);
    put_u32(frame, counts->send_buffer_bytes);
    put_u32(frame, counts->receive_buffer_bytes);
    put_u64(frame, counts->zerocopy_sent);
    put_u64(frame, counts->zerocopy_copied);
    put_u32(frame, counts->gso_segments);
    put_u8(frame, counts->gro);
}

bool control_read_counts(struct reader *reader, struct message_counts *message)
{
    struct stream_counts *counts = &message->counts;
    message->index = read_u16(reader);
    counts->bytes = read_u64(reader);
    counts->datagrams = read_u64(reader);
    counts->duplicated = read_u64(reader);
    counts->reordered = read_u64(reader);
    counts->refused = read_u64(reader);
    counts->dropped_by_receiver = read_u64(reader);
    counts->lost_operations = read_u64(reader);
    counts->first_bytes = read_u64(reader);
    counts->first_s = read_f64(reader);
    counts->last_s = read_f64(reader);
    counts->cpu_s = read_f64(reader);
    counts->retransmits = read_u64(reader);
    counts->congestion_window_bytes = read_u32(reader);
    counts->path_mtu_bytes = read_u32(reader);
    counts->mss_bytes = read_u32(reader);
    counts->tcp_rtt_s = read_f64(reader);
    counts->send_buffer_bytes = read_u32(reader);
    counts->receive_buffer_bytes = read_u32(reader);
    counts->zerocopy_sent = read_u64(reader);
    counts->zerocopy_copied = read_u64(reader);
    counts->gso_segments = read_u32(reader);
    counts->gro = read_u8(reader);
    return read_all(reader) && message->index < SOCKETS_MOST;
}

void control_put_result(struct frame *frame, const struct message_result *result)
{
    frame_begin(frame, MESSAGE_RESULT);
    put_u8(frame, result->phase);
    put_f64(frame, result->cpu_s);
    put_f64(frame, result->wall_s);
    put_u64(frame, result->strangers);
}

bool control_read_result(struct reader *reader, struct message_result *result)
{
    result->phase = read_u8(reader);
    result->cpu_s = read_f64(reader);
    result->wall_s = read_f64(reader);
    result->strangers = read_u64(reader);
    return read_all(reader);
}

/* ---- all the time --------------------------------------------------------------------------- */

void control_put_heartbeat(struct frame *frame, const struct message_progress *progress)
{
    static const struct message_progress none;
    if (!progress)
        progress = &none;
    frame_begin(frame, MESSAGE_HEARTBEAT);
    put_u16(frame, progress->first);
    put_u16(frame, progress->count);
    for (unsigned i = 0; i < progress->count; i++)
        put_u64(frame, progress->moved[i]);
}

bool control_read_heartbeat(struct reader *reader, struct message_progress *progress)
{
    progress->first = read_u16(reader);
    progress->count = read_u16(reader);
    if (!sockets(reader, progress->first, progress->count, SOCKETS_MOST))
        return false;
    for (unsigned i = 0; i < progress->count; i++)
        progress->moved[i] = read_u64(reader);
    return read_all(reader);
}

void control_put_bye(struct frame *frame)
{
    frame_begin(frame, MESSAGE_BYE);
}
