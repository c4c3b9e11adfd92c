/* Reads calls of udp_dropped, four numbers each; prints what it returns, for the tests. */
#include "stream_udp.h"

#include <inttypes.h>
#include <stdio.h>

int main(void)
{
    uint64_t buffers, received, datagrams, expected;
    while (scanf("%" SCNu64 "%" SCNu64 "%" SCNu64 "%" SCNu64, &buffers, &received, &datagrams,
                 &expected) == 4)
        printf("%" PRIu64 "\n", udp_dropped(buffers, received, datagrams, expected));
    return 0;
}
