/* Reads flows, each the count of its numbers and the numbers in the order they came in; prints what the
 * sequence counted of each, for the tests. */
#include "sequence.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Prints nothing before the flow is read to its end: its writer reads nothing before that either. */
static int flow(size_t count)
{
    static struct sequence sequence;
    sequence_clear(&sequence);
    char *arrivals = calloc(count + 1, 1);
    for (size_t i = 0; arrivals && i < count; i++) {
        uint64_t number;
        if (scanf("%" SCNu64, &number) != 1) {
            free(arrivals);
            return EXIT_FAILURE;
        }
        arrivals[i] = (char)('0' + sequence_add(&sequence, number));
    }
    if (!arrivals)
        return EXIT_FAILURE;
    printf("%s\n%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", arrivals,
           sequence.next, sequence.unique, sequence.duplicated, sequence.reordered,
           sequence.too_late);
    free(arrivals);
    return fflush(stdout);
}

int main(void)
{
    size_t count;
    int failure = 0;
    while (!failure && scanf("%zu", &count) == 1)
        failure = flow(count);
    return failure;
}
