#include "../bench/near_control.c"

#include "fuzz.h"

#include <stdlib.h>

enum { NEAR_STREAMS = 2 };

void fuzz_near_end(const uint8_t *bytes, size_t count)
{
    static struct near_control control;
    static const struct test test = {
        .direction = DIRECTION_BOTH, .streams = 1, .block_bytes = 1, .duration_s = 1};
    struct stream streams[NEAR_STREAMS] = {{.test = &test, .role = ROLE_SEND},
                                           {.test = &test, .role = ROLE_RECEIVE}};
    struct stream *rows[NEAR_STREAMS] = {&streams[0], &streams[1]};
    near_control_init(&control);
    control.count = NEAR_STREAMS;
    control.streams = rows;
    while (count > 0 && !atomic_load(&control.lost)) {
        size_t taken = fuzz_fill(&control.inbox, bytes, count);
        if (taken == 0)
            break;
        bytes += taken;
        count -= taken;
        take_messages(&control);
    }
    if (control.openings_reported > NEAR_STREAMS || streams[0].expected != 0)
        abort();                  /* a sender expects nothing */
    near_control_close(&control); /* it has no connection and no thread */
}
