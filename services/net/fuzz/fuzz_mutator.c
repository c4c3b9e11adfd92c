/* Changes inputs message by message: one in which a single byte more or less shifts all that follows
 * is refused at its first message, and the later ones are never reached. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t count, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t count, size_t most, unsigned seed);

enum { MESSAGES_MOST = 64, GROWTH = 16 };

/* A message in an input, header included. */
struct part {
    size_t at, count;
};

/* What is left over is none. */
static unsigned split(const uint8_t *bytes, size_t count, struct part parts[MESSAGES_MOST])
{
    unsigned found = 0;
    size_t at = 0;
    while (found < MESSAGES_MOST && at + FRAME_HEADER <= count) {
        size_t length = FRAME_HEADER + ((size_t)bytes[at + 2] << 8 | bytes[at + 3]);
        if (length > count - at)
            break;
        parts[found++] = (struct part){at, length};
        at += length;
    }
    return found;
}

/* Puts `new_count` bytes in the place of a part; the input's new length, or 0 without room. */
static size_t replace(uint8_t *bytes, size_t count, size_t most, struct part part,
                      const uint8_t *new, size_t new_count)
{
    if (count - part.count + new_count > most)
        return 0;
    memmove(bytes + part.at + new_count, bytes + part.at + part.count,
            count - part.at - part.count);
    memcpy(bytes + part.at, new, new_count);
    return count - part.count + new_count;
}

static size_t change_body(uint8_t *bytes, size_t count, size_t most, struct part part)
{
    static uint8_t new[FRAME_HEADER + FRAME_MOST + GROWTH];
    size_t body = part.count - FRAME_HEADER;
    size_t room = body + GROWTH < FRAME_MOST ? body + GROWTH : FRAME_MOST;
    memcpy(new, bytes + part.at, part.count);
    body = LLVMFuzzerMutate(new + FRAME_HEADER, body, room);
    new[2] = (uint8_t)(body >> 8);
    new[3] = (uint8_t)body;
    return replace(bytes, count, most, part, new, FRAME_HEADER + body);
}

static size_t insert_copy(uint8_t *bytes, size_t count, size_t most, struct part of, size_t at)
{
    static uint8_t copy[FRAME_HEADER + FRAME_MOST];
    memcpy(copy, bytes + of.at, of.count);
    return replace(bytes, count, most, (struct part){at, 0}, copy, of.count);
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t count, size_t most, unsigned seed)
{
    struct part parts[MESSAGES_MOST];
    unsigned found = split(bytes, count, parts);
    size_t changed = 0;
    if (found > 0) {
        struct part one = parts[seed / 8 % found], other = parts[seed / 512 % found];
        if (seed % 8 < 5)
            changed = change_body(bytes, count, most, one);
        else if (seed % 8 == 5)
            changed = insert_copy(bytes, count, most, one, other.at);
        else if (seed % 8 == 6)
            changed = replace(bytes, count, most, one, bytes, 0);
    }
    return changed ? changed : LLVMFuzzerMutate(bytes, count, most);
}
