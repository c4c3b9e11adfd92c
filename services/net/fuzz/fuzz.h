/* What is fuzzed, each from a file of its own: it includes the code whose inside it drives. */
#ifndef NET_FUZZ_H
#define NET_FUZZ_H

#include "control.h"
#include "wire.h"

#include <stddef.h>
#include <stdint.h>

/* Every message's reader; what it takes must come out of its writer as it was. */
void fuzz_messages(const uint8_t *bytes, size_t count);
/* A far end whose caller has sent nothing yet. */
void fuzz_door(const uint8_t *bytes, size_t count);
/* A far end whose caller has proved the token. */
void fuzz_far_end(const uint8_t *bytes, size_t count);
/* A near end whose far end has proved it. */
void fuzz_near_end(const uint8_t *bytes, size_t count);
/* The words of a grant. */
void fuzz_grant(const uint8_t *bytes, size_t count);

/* A socket to write answers to, which is not read; emptied by each call. */
int fuzz_socket(void);

/* Puts what fits of the input into the inbox, as inbox_fill() would; how many bytes. */
size_t fuzz_fill(struct inbox *inbox, const uint8_t *bytes, size_t count);

#endif
