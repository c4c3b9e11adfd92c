#define _GNU_SOURCE
#include "wire.h"

#include "monotonic.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

/* ---- reading -------------------------------------------------------------------------------- */

/* The next bytes; NULL when there are fewer. */
static const uint8_t *take(struct reader *reader, size_t count)
{
    if (reader->bad || reader->left < count) {
        reader->bad = true;
        return NULL;
    }
    const uint8_t *at = reader->at;
    reader->at += count;
    reader->left -= count;
    return at;
}

static uint64_t read_number(struct reader *reader, size_t bytes)
{
    const uint8_t *at = take(reader, bytes);
    uint64_t value = 0;
    for (size_t i = 0; at && i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

uint8_t read_u8(struct reader *reader)
{
    return (uint8_t)read_number(reader, 1);
}

uint16_t read_u16(struct reader *reader)
{
    return (uint16_t)read_number(reader, 2);
}

uint32_t read_u32(struct reader *reader)
{
    return (uint32_t)read_number(reader, 4);
}

uint64_t read_u64(struct reader *reader)
{
    return read_number(reader, 8);
}

double read_f64(struct reader *reader)
{
    uint64_t bits = read_u64(reader);
    double value;
    memcpy(&value, &bits, sizeof value);
    if (isfinite(value))
        return value;
    reader->bad = true;
    return 0;
}

void read_bytes(struct reader *reader, void *bytes, size_t count)
{
    const uint8_t *at = take(reader, count);
    if (at)
        memcpy(bytes, at, count);
    else
        memset(bytes, 0, count);
}

void read_text(struct reader *reader, char *text, size_t size)
{
    size_t length = read_u16(reader);
    const uint8_t *at = length < size ? take(reader, length) : NULL;
    text[0] = '\0';
    if (!at || memchr(at, '\0', length)) {
        reader->bad = true;
        return;
    }
    memcpy(text, at, length);
    text[length] = '\0';
}

bool read_all(const struct reader *reader)
{
    return !reader->bad && reader->left == 0;
}

/* ---- writing -------------------------------------------------------------------------------- */

void put_bytes(struct frame *frame, const void *bytes, size_t count)
{
    assert(frame->used + count <= sizeof frame->bytes);
    memcpy(frame->bytes + frame->used, bytes, count);
    frame->used += count;
}

static void put_number(struct frame *frame, uint64_t value, size_t bytes)
{
    uint8_t big_endian[8];
    for (size_t i = bytes; i-- > 0; value >>= 8)
        big_endian[i] = (uint8_t)value;
    put_bytes(frame, big_endian, bytes);
}

void put_u8(struct frame *frame, uint8_t value)
{
    put_number(frame, value, 1);
}

void put_u16(struct frame *frame, uint16_t value)
{
    put_number(frame, value, 2);
}

void put_u32(struct frame *frame, uint32_t value)
{
    put_number(frame, value, 4);
}

void put_u64(struct frame *frame, uint64_t value)
{
    put_number(frame, value, 8);
}

void put_f64(struct frame *frame, double value)
{
    uint64_t bits;
    assert(isfinite(value));
    memcpy(&bits, &value, sizeof bits);
    put_number(frame, bits, 8);
}

void put_text(struct frame *frame, const char *text)
{
    size_t length = strlen(text);
    put_u16(frame, (uint16_t)length);
    put_bytes(frame, text, length);
}

void frame_begin(struct frame *frame, unsigned type)
{
    frame->used = 0;
    put_u16(frame, (uint16_t)type);
    put_u16(frame, 0);
}

static void write_length(struct frame *frame)
{
    size_t length = frame->used - FRAME_HEADER;
    frame->bytes[2] = (uint8_t)(length >> 8);
    frame->bytes[3] = (uint8_t)length;
}

int frame_send(struct frame *frame, int fd, double wait_s)
{
    const double end_s = now_s() + wait_s;
    write_length(frame);
    for (size_t sent = 0; sent < frame->used;) {
        ssize_t count =
            send(fd, frame->bytes + sent, frame->used - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count >= 0) {
            sent += (size_t)count;
            continue;
        }
        if (errno != EAGAIN && errno != EINTR)
            return -errno;
        double left_s = end_s - now_s();
        struct pollfd room = {.fd = fd, .events = POLLOUT};
        if (left_s <= 0)
            return -ETIMEDOUT;
        poll(&room, 1, (int)(left_s * 1e3) + 1);
    }
    return 0;
}

/* ---- the inbox ------------------------------------------------------------------------------ */

static void drop_taken(struct inbox *inbox)
{
    inbox->used -= inbox->taken;
    memmove(inbox->bytes, inbox->bytes + inbox->taken, inbox->used);
    inbox->taken = 0;
}

int inbox_fill(struct inbox *inbox, int fd)
{
    drop_taken(inbox);
    size_t room = sizeof inbox->bytes - inbox->used;
    if (room == 0)
        return 0;
    ssize_t count = recv(fd, inbox->bytes + inbox->used, room, MSG_DONTWAIT);
    if (count == 0)
        return -ECONNRESET;
    if (count < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    inbox->used += (size_t)count;
    return (int)count;
}

int inbox_next(struct inbox *inbox, unsigned *type, struct reader *body)
{
    drop_taken(inbox);
    struct reader header = {.at = inbox->bytes, .left = inbox->used};
    *type = read_u16(&header);
    size_t length = read_u16(&header);
    if (header.bad)
        return 0;
    if (length > FRAME_MOST)
        return -EPROTO;
    if (header.left < length)
        return 0;
    *body = (struct reader){.at = header.at, .left = length};
    inbox->taken = FRAME_HEADER + length;
    return 1;
}
