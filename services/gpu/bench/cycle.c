#include "cycle.h"

#include <stdlib.h>

/* Vigna's splitmix64 (2015). */
static uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* 0 ... below - 1, for less than 2^32 of them. */
static uint32_t random_below(uint64_t *state, uint32_t below)
{
    return (uint32_t)((random_next(state) >> 32) * below >> 32);
}

int cycle_make(struct cycle *cycle, uint32_t count, uint64_t seed)
{
    *cycle = (struct cycle){.count = count,
                            .order = malloc(count * sizeof *cycle->order),
                            .next = malloc(count * sizeof *cycle->next)};
    if (!cycle->order || !cycle->next) {
        cycle_free(cycle);
        return -1;
    }
    uint32_t *order = cycle->order;
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    /* Durstenfeld's shuffle, of all but the first: a cycle may begin anywhere. */
    for (uint32_t i = count - 1; i > 1; i--) {
        uint32_t other = 1 + random_below(&seed, i), node = order[i];
        order[i] = order[other];
        order[other] = node;
    }
    for (uint32_t i = 0; i < count; i++)
        cycle->next[order[i]] = order[i + 1 < count ? i + 1 : 0];
    return 0;
}

uint32_t cycle_at(const struct cycle *cycle, uint64_t steps)
{
    return cycle->order[steps % cycle->count];
}

void cycle_free(struct cycle *cycle)
{
    free(cycle->order);
    free(cycle->next);
    *cycle = (struct cycle){0};
}
