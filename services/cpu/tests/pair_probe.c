/* Prints the pairs of threads that core_to_core plays, one a line, for the tests. */
#include "core_to_core.c"

#include <stdio.h>

/* pair_probe THREADS */
int main(int argc, char **argv)
{
    struct court court = {0};
    if (argc != 2)
        return 2;
    unsigned threads = (unsigned)strtoul(argv[1], NULL, 10);
    court.pairs = calloc(threads * distances(threads), sizeof *court.pairs);
    if (!court.pairs)
        return 1;
    list_pairs(&court, threads);
    for (size_t i = 0; i < court.pair_count; i++)
        printf("%u %u\n", court.pairs[i].first, court.pairs[i].second);
    free(court.pairs);
    return 0;
}
