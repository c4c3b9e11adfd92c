#define _GNU_SOURCE
#include "token.h"

#include <assert.h>
#include <ctype.h>
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

/* What is used of libcrypto. */
static struct {
    const void *(*sha256)(void);
    unsigned char *(*hmac)(const void *, const void *, int, const unsigned char *, size_t,
                           unsigned char *, unsigned *);
    int (*differ)(const void *, const void *, size_t);
    int (*random)(unsigned char *, int);
    bool loaded;
} crypto;

#if !defined(STATIC_PROGRAM)
static bool find(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

/* Never unloaded. */
static void load(void)
{
    static const char *const names[] = {"libcrypto.so.3", "libcrypto.so.1.1"};
    void *library = NULL;
    for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_NOW);
    crypto.loaded = library && find(library, "EVP_sha256", &crypto.sha256) &&
                    find(library, "HMAC", &crypto.hmac) &&
                    find(library, "CRYPTO_memcmp", &crypto.differ) &&
                    find(library, "RAND_bytes", &crypto.random);
}
static const char WHY_NOT[] = "libcrypto.so.3 is not there, which protects the far end: install "
                              "the package libssl3";
#else
static void load(void)
{
}

static const char WHY_NOT[] =
    "a program without shared libraries cannot load libcrypto.so.3, which "
    "protects the far end";
#endif

const char *token_unsupported(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return crypto.loaded ? NULL : WHY_NOT;
}

static int digit(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

bool token_parse(const char *text, struct token *token)
{
    size_t digits = strspn(text, "0123456789abcdefABCDEF");
    token->count = digits / 2;
    if (text[digits] || digits % 2 || token->count < TOKEN_LEAST || token->count > TOKEN_MOST)
        return false;
    for (size_t i = 0; i < token->count; i++)
        token->bytes[i] = (uint8_t)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
    return true;
}

bool token_random(void *bytes, size_t count)
{
    return crypto.random(bytes, (int)count) == 1;
}

void token_mac(const struct token *token, const char *end, const uint8_t near[NONCE_BYTES],
               const uint8_t far[NONCE_BYTES], uint8_t mac[MAC_BYTES])
{
    uint8_t message[16 + 2 * NONCE_BYTES];
    size_t length = strlen(end);
    unsigned written = 0;
    assert(length <= 16);
    memcpy(message, end, length);
    memcpy(message + length, near, NONCE_BYTES);
    memcpy(message + length + NONCE_BYTES, far, NONCE_BYTES);
    const void *made = crypto.hmac(crypto.sha256(), token->bytes, (int)token->count, message,
                                   length + 2 * NONCE_BYTES, mac, &written);
    assert(made && written == MAC_BYTES);
    (void)made;
}

bool token_equal(const void *one, const void *other, size_t count)
{
    return crypto.differ(one, other, count) == 0;
}
