#include "../bench/door.c"

#include "fuzz.h"

/* The fuzzer cannot guess a MAC: a caller that is let in has broken in. */
void fuzz_door(const uint8_t *bytes, size_t count)
{
    struct grant grant = {.token.count = TOKEN_LEAST};
    struct door door = {.listener = -1, .grant = &grant};
    struct caller *caller = calloc(1, sizeof *caller);
    bool proved = false;
    if (!caller)
        abort();
    caller->fd = fuzz_socket();
    door.callers[door.count++] = caller;
    for (bool stays = true; stays && count > 0 && !caller->turned_off;) {
        unsigned type;
        struct reader body;
        size_t taken = fuzz_fill(&caller->inbox, bytes, count);
        if (taken == 0)
            break;
        bytes += taken;
        count -= taken;
        while (stays && !proved && !caller->turned_off &&
               inbox_next(&caller->inbox, &type, &body) > 0)
            stays = hear(&door, caller, type, &body, &proved);
    }
    if (proved || door.burnt)
        abort();
    free(caller); /* its socket stays, for the next one */
}
