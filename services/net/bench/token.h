/* The one-time token of a session and what is proved with it. SHA-256, constant-time comparison and
 * random numbers are libcrypto's, which is loaded when first needed. */
#ifndef NET_BENCH_TOKEN_H
#define NET_BENCH_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TOKEN_LEAST = 16, /* 128 bits */
    TOKEN_MOST = 32,
    NONCE_BYTES = 16,
    MAC_BYTES = 32,
};

struct token {
    uint8_t bytes[TOKEN_MOST];
    size_t count;
};

/* NULL, or why there is no libcrypto. Any thread; the others must not be called before. */
const char *token_unsupported(void);
/* 32 to 64 hexadecimal digits; false: they are none. */
bool token_parse(const char *text, struct token *token);
/* false when the library has no random numbers. */
bool token_random(void *bytes, size_t count);
/* Of "near" or "far" and both nonces. */
void token_mac(const struct token *token, const char *end, const uint8_t near[NONCE_BYTES],
               const uint8_t far[NONCE_BYTES], uint8_t mac[MAC_BYTES]);
/* In a time that does not tell where they differ. */
bool token_equal(const void *one, const void *other, size_t count);

#endif
