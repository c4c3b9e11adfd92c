/* libFuzzer's entry. FUZZ_TARGET names what is fuzzed: one at a time, for inputs of one are none of
 * another, and a corpus of all of them would hardly ever try the longest. */
#define _GNU_SOURCE
#include "fuzz.h"

#include "grant.h"
#include "token.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static const struct {
    const char *name;
    void (*take)(const uint8_t *, size_t);
} targets[] = {{"messages", fuzz_messages},
               {"door", fuzz_door},
               {"far_end", fuzz_far_end},
               {"near_end", fuzz_near_end},
               {"grant", fuzz_grant}};
static void (*take)(const uint8_t *, size_t);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    const char *name = getenv("FUZZ_TARGET"), *unsupported = token_unsupported();
    for (size_t i = 0; name && i < sizeof targets / sizeof *targets; i++)
        if (!strcmp(name, targets[i].name))
            take = targets[i].take;
    if (take && !unsupported)
        return 0;
    fprintf(stderr, "%s\n",
            unsupported ? unsupported
                        : "set FUZZ_TARGET to messages, door, far_end, near_end or grant");
    exit(1);
}

/* A TCP connection to ourselves: its ends have the addresses. */
static void connect_ends(int ends[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&address, &length) ||
        connect(ends[0], (struct sockaddr *)&address, length))
        abort();
    ends[1] = accept(listener, NULL, NULL);
    close(listener);
    if (ends[1] < 0)
        abort();
}

int fuzz_socket(void)
{
    static int ends[2];
    char bytes[65536];
    if (ends[0] == 0)
        connect_ends(ends);
    while (recv(ends[1], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        ;
    return ends[0];
}

size_t fuzz_fill(struct inbox *inbox, const uint8_t *bytes, size_t count)
{
    size_t room = sizeof inbox->bytes - inbox->used;
    size_t taken = count < room ? count : room;
    memcpy(inbox->bytes + inbox->used, bytes, taken);
    inbox->used += taken;
    return taken;
}

void fuzz_grant(const uint8_t *bytes, size_t count)
{
    char text[GRANT_MOST], why[300];
    struct grant grant;
    size_t length = count < sizeof text - 1 ? count : sizeof text - 1;
    memcpy(text, bytes, length);
    text[length] = '\0';
    grant_parse_far(text, &grant, why, sizeof why);
    grant_parse_near(text, &grant, why, sizeof why);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    take(bytes, count);
    return 0;
}
