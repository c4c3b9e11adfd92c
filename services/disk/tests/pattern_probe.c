/* Prints the blocks that a pattern gives, one a line, for the tests. */
#include "pattern.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* pattern_probe sequential|uniform|zipf BLOCKS THREADS INDEX THETA COUNT */
int main(int argc, char **argv)
{
    if (argc != 7)
        return 2;
    uint64_t blocks = strtoull(argv[2], NULL, 10);
    unsigned threads = (unsigned)strtoul(argv[3], NULL, 10);
    struct disk_job job = {
        .sequential = !strcmp(argv[1], "sequential"),
        .zipf = !strcmp(argv[1], "zipf"),
        .zipf_theta = strtod(argv[5], NULL),
        .blocks = blocks,
        .apart = !strcmp(argv[1], "sequential"),
        .region_blocks = strcmp(argv[1], "sequential") ? blocks : blocks / threads,
    };
    struct pattern pattern;
    pattern_init(&pattern, &job, (unsigned)strtoul(argv[4], NULL, 10));
    for (uint64_t left = strtoull(argv[6], NULL, 10); left > 0; left--)
        printf("%" PRIu64 "\n", pattern_next(&pattern));
    return 0;
}
