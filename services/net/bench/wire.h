/* The bytes of the control connection: frames of u16 type, u16 length and that many bytes, numbers
 * big-endian. What is read may come from any caller that reached the port: every read is checked, a short
 * or wrong one sets `bad` and gives zeros from then on. */
#ifndef NET_BENCH_WIRE_H
#define NET_BENCH_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FRAME_HEADER = 4,
    FRAME_MOST = 16384, /* bytes behind the header */
};

struct reader {
    const uint8_t *at;
    size_t left;
    bool bad;
};

uint8_t read_u8(struct reader *reader);
uint16_t read_u16(struct reader *reader);
uint32_t read_u32(struct reader *reader);
uint64_t read_u64(struct reader *reader);
double read_f64(struct reader *reader); /* a finite one; others are bad */
void read_bytes(struct reader *reader, void *bytes, size_t count);
/* u16 length and that many bytes other than NUL; bad when they do not fit with their NUL. */
void read_text(struct reader *reader, char *text, size_t size);
/* Whether all was read, to the last byte, and none of it was bad. */
bool read_all(const struct reader *reader);

struct frame {
    uint8_t bytes[FRAME_HEADER + FRAME_MOST];
    size_t used; /* header included */
};

void frame_begin(struct frame *frame, unsigned type);
void put_u8(struct frame *frame, uint8_t value);
void put_u16(struct frame *frame, uint16_t value);
void put_u32(struct frame *frame, uint32_t value);
void put_u64(struct frame *frame, uint64_t value);
void put_f64(struct frame *frame, double value);
void put_bytes(struct frame *frame, const void *bytes, size_t count);
void put_text(struct frame *frame, const char *text);

/* Writes the frame to a socket, waiting for room at most `wait_s`. 0 or a negative errno. */
int frame_send(struct frame *frame, int fd, double wait_s);

/* What has come in and was not taken yet. */
struct inbox {
    uint8_t bytes[FRAME_HEADER + FRAME_MOST];
    size_t used;
    size_t taken; /* of the frame given out last */
};

/* Takes what the socket has, without waiting. How many bytes; 0: it has none (or no room: take a
 * frame first); or a negative errno, -ECONNRESET when the other end has closed. */
int inbox_fill(struct inbox *inbox, int fd);
/* The next whole frame, which lasts until the next call: 1 and what is in it, 0 when there is none
 * yet, -EPROTO when it is longer than any. */
int inbox_next(struct inbox *inbox, unsigned *type, struct reader *body);

#endif
