#include "flip.h"

#ifdef HOSTBENCH_FLIPS
#include <stdio.h>
#include <stdlib.h>

void flip_a_bit(unsigned char *lanes, unsigned bytes, int cpu)
{
    static _Thread_local unsigned long passes;
    unsigned lane, bit;
    unsigned long every;
    int on;
    const char *text = getenv("HOSTBENCH_FLIP");
    if (!text || sscanf(text, "%d:%u:%u:%lu", &on, &lane, &bit, &every) != 4)
        return;
    if (cpu == on && ++passes % every == 0)
        lanes[lane * bytes + bit / 8] ^= (unsigned char)(1u << bit % 8);
}
#endif
