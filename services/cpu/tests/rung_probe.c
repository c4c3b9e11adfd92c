/* Prints the numbers of threads that clock_ladder visits, one a line, for the tests. */
#include "clock_ladder.c"

#include <stdio.h>
#include <stdlib.h>

/* rung_probe THREADS */
int main(int argc, char **argv)
{
    struct ladder ladder;
    if (argc != 2)
        return 2;
    list_rungs(&ladder, (unsigned)strtoul(argv[1], NULL, 10));
    for (unsigned i = 0; i < ladder.rung_count; i++)
        printf("%u\n", ladder.rungs[i].threads);
    return 0;
}
