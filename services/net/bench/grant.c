#define _GNU_SOURCE
#include "grant.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <math.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- addresses ------------------------------------------------------------------------------ */

bool address_parse(const char *text, unsigned port, struct sockaddr_storage *address)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    *address = (struct sockaddr_storage){0};
    if (getaddrinfo(text, NULL, &hints, &found))
        return false;
    memcpy(address, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    address_set_port(address, port);
    return true;
}

void address_format(const struct sockaddr_storage *address, char *text, size_t size)
{
    if (getnameinfo((const struct sockaddr *)address, address_length(address), text,
                    (socklen_t)size, NULL, 0, NI_NUMERICHOST))
        snprintf(text, size, "?");
}

unsigned address_port(const struct sockaddr_storage *address)
{
    return ntohs(address->ss_family == AF_INET6
                     ? ((const struct sockaddr_in6 *)address)->sin6_port
                     : ((const struct sockaddr_in *)address)->sin_port);
}

void address_set_port(struct sockaddr_storage *address, unsigned port)
{
    if (address->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)address)->sin6_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in *)address)->sin_port = htons((uint16_t)port);
}

socklen_t address_length(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in);
}

static struct in6_addr host_of(const struct sockaddr_storage *address)
{
    struct in6_addr host = {0};
    if (address->ss_family == AF_INET6)
        return ((const struct sockaddr_in6 *)address)->sin6_addr;
    host.s6_addr[10] = host.s6_addr[11] = 0xff;
    memcpy(host.s6_addr + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
    return host;
}

bool address_same_host(const struct sockaddr_storage *one, const struct sockaddr_storage *other)
{
    struct in6_addr a = host_of(one), b = host_of(other);
    return memcmp(&a, &b, sizeof a) == 0;
}

/* Whether it is the broadcast address of a network this host is in. */
static bool directed_broadcast(const struct in6_addr *host)
{
    struct ifaddrs *all;
    bool found = false;
    if (getifaddrs(&all))
        return false;
    for (const struct ifaddrs *one = all; one && !found; one = one->ifa_next) {
        if (!(one->ifa_flags & IFF_BROADCAST) || !one->ifa_broadaddr ||
            one->ifa_broadaddr->sa_family != AF_INET)
            continue;
        struct sockaddr_storage broadcast = {0};
        memcpy(&broadcast, one->ifa_broadaddr, sizeof(struct sockaddr_in));
        struct in6_addr other = host_of(&broadcast);
        found = memcmp(host, &other, sizeof other) == 0;
    }
    freeifaddrs(all);
    return found;
}

const char *address_no_host(const struct sockaddr_storage *address)
{
    const struct in6_addr host = host_of(address);
    uint32_t four;
    memcpy(&four, host.s6_addr + 12, sizeof four);
    four = ntohl(four);
    if (!IN6_IS_ADDR_V4MAPPED(&host))
        return IN6_IS_ADDR_MULTICAST(&host)     ? "a multicast address"
               : IN6_IS_ADDR_UNSPECIFIED(&host) ? "the address of no host"
                                                : NULL;
    if (IN_MULTICAST(four))
        return "a multicast address";
    if (four == INADDR_BROADCAST || directed_broadcast(&host))
        return "a broadcast address";
    return four == INADDR_ANY ? "the address of no host" : NULL;
}

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
                         struct sockaddr_storage *address)
{
    const char *text = value_of(words, length, name);
    char allowed[96];
    if (!text || !address_parse(text, port, address))
        return wrong(words, name, text, "it must be an IPv4 or IPv6 address");
    const char *instead = address_no_host(address);
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
    lseek(fd, 0, SEEK_SET); /* whoever wrote the file may have left its end; a pipe has none */
    while ((count = read(fd, text + used, GRANT_MOST - 1 - used)) > 0)
        used += (size_t)count;
    if (count < 0) {
        snprintf(why, size, "--session-fd %d cannot be read: %s", fd, strerror(errno));
        return false;
    }
    text[used] = '\0';
    return true;
}
