/* The types that the lanes of a register can have, and whole numbers in them. */
#ifndef CPU_BENCH_LANES_H
#define CPU_BENCH_LANES_H

#include <stdint.h>

struct lane_type {
    const char *name;
    unsigned bytes;
    /* Every whole number below has an exact value of its own; 0: integers wrap instead. */
    uint64_t exact_below;
    /* Puts `value` into lane `index`. */
    void (*put)(void *lanes, unsigned index, double value);
    /* Puts multiplier · (i + 1) + addend into lane i of `count`; floating-point types take a
     * multiplier of 1 and values below `exact_below` only. NULL: a type of operands only. */
    void (*sequence)(void *lanes, unsigned count, uint64_t multiplier, uint64_t addend);
};

/* The type called `name`, which must exist. */
const struct lane_type *lane_type(const char *name);

#endif
