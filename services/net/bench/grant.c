#define _GNU_SOURCE
#include "grant.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the words ------------------------------------------------------------------------------ */

struct words {
    char text[GRANT_MOST];
    char *why;
    size_t size;
};

/* The value of a word; NULL when it is not there. `text` is split by grant_parse(). */
static const char *value_of(const struct words *words, size_t length, const char *name)
{
    size_t named = strlen(name);
    for (const char *at = words->text; at < words->text + length; at += strlen(at) + 1)
        if (!strncmp(at, name, named) && at[named] == '=')
            return at + named + 1;
    return NULL;
}

static bool wrong(struct words *words, const char *name, const char *value, const char *allowed)
{
    if (value)
        snprintf(words->why, words->size, "the session has %s=%.64s: %s", name, value, allowed);
    else
        snprintf(words->why, words->size, "the session has no %s: %s", name, allowed);
    return false;
}

/* A token is not to be seen in a log. */
static bool take_token(struct words *words, size_t length, struct token *token)
{
    const char *text = value_of(words, length, "token");
    if (text && token_parse(text, token))
        return true;
    return wrong(words, "token", text ? "…" : NULL, "it must be 32 to 64 hexadecimal digits");
}

static bool take_number(struct words *words, size_t length, const char *name, double least,
                        double most, double initial, double *number)
{
    const char *text = value_of(words, length, name);
    char *end = NULL;
    char allowed[96];
    *number = text ? strtod(text, &end) : initial;
    if ((!text || (*text && !*end)) && isfinite(*number) && *number >= least && *number <= most)
        return true;
    snprintf(allowed, sizeof allowed, "it must be a number from %.9g to %.9g", least, most);
    return wrong(words, name, text, allowed);
}

static bool take_address(struct words *words, size_t length, const char *name, unsigned port,
                         struct endpoint *address)
{
    const char *text = value_of(words, length, name);
    char allowed[96];
    if (!text || !endpoint_parse(text, (uint16_t)port, address))
        return wrong(words, name, text, "it must be an IPv4 or IPv6 address");
    const char *instead = endpoint_refused(address);
    if (!instead)
        return true;
    snprintf(allowed, sizeof allowed, "that is %s; it must be the address of one host", instead);
    return wrong(words, name, text, allowed);
}

/* Splits the text into words; their length together. */
static size_t split(struct words *words, const char *text)
{
    size_t length = strnlen(text, sizeof words->text - 1);
    memcpy(words->text, text, length);
    words->text[length] = '\0';
    for (size_t i = 0; i < length; i++)
        if (strchr(" \t\r\n", words->text[i]))
            words->text[i] = '\0';
    return length;
}

bool grant_parse_near(const char *text, struct grant *grant, char *why, size_t size)
{
    struct words words = {.why = why, .size = size};
    size_t length = split(&words, text);
    double port;
    *grant = (struct grant){0};
    return take_token(&words, length, &grant->token) &&
           take_number(&words, length, "port", 1, 65535, 0, &port) &&
           take_address(&words, length, "address", (unsigned)port, &grant->address);
}

bool grant_parse_far(const char *text, struct grant *grant, char *why, size_t size)
{
    struct words words = {.why = why, .size = size};
    size_t length = split(&words, text);
    double port, streams, bytes;
    *grant = (struct grant){0};
    if (!take_token(&words, length, &grant->token) ||
        !take_number(&words, length, "port", 0, 65535, 0, &port) ||
        !take_address(&words, length, "bind", (unsigned)port, &grant->address) ||
        !take_address(&words, length, "allowed", 0, &grant->allowed) ||
        !take_number(&words, length, "duration_s", 0.1, 1e6, 0, &grant->caps.duration_s) ||
        !take_number(&words, length, "streams", 1, 1e4, 0, &streams) ||
        !take_number(&words, length, "bytes", 0, 1e18, 0, &bytes) ||
        !take_number(&words, length, "rate", 0, 1e15, 0, &grant->caps.rate) ||
        !take_number(&words, length, "expiry_s", 0.1, 3600, 10, &grant->expiry_s))
        return false;
    grant->caps.streams = (unsigned)streams;
    grant->caps.bytes = (uint64_t)bytes;
    return true;
}

bool grant_read(int fd, char text[GRANT_MOST], char *why, size_t size)
{
    size_t used = 0;
    ssize_t count;
    lseek(fd, 0, SEEK_SET); /* its writer may have left it at the end; a pipe has none */
    while ((count = read(fd, text + used, GRANT_MOST - 1 - used)) > 0)
        used += (size_t)count;
    if (count < 0) {
        snprintf(why, size, "--session-fd %d cannot be read: %s", fd, strerror(errno));
        return false;
    }
    text[used] = '\0';
    return true;
}
