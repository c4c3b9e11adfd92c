/* Reads numbers in the order they came in; prints what the sequence counted, for the tests. */
#include "sequence.h"

#include <inttypes.h>
#include <stdio.h>

int main(void)
{
    static struct sequence sequence;
    uint64_t number;
    sequence_clear(&sequence);
    while (scanf("%" SCNu64, &number) == 1)
        printf("%d", (int)sequence_add(&sequence, number));
    printf("\n%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", sequence.next,
           sequence.unique, sequence.duplicated, sequence.reordered, sequence.too_late);
    return 0;
}
