#include "contents.h"

enum { BLOCK = 4096 }; /* words that are looked at before anybody asks which one is wrong */

uint32_t contents_sum(uint32_t seed, uint64_t place, uint64_t count)
{
    /* One of the two factors is even: half of it, so that nothing is lost modulo 2^32. */
    uint64_t even = count % 2 ? count - 1 : count, other = count % 2 ? count : count - 1;
    uint32_t steps = (uint32_t)(even / 2) * (uint32_t)other; /* 0 + 1 + ... + count - 1 */
    return (uint32_t)count * contents_word(seed, place) + steps * 2654435761u;
}

void contents_fill(uint32_t *to, uint64_t place, uint64_t count, uint32_t seed)
{
    for (uint64_t i = 0; i < count; i++)
        to[i] = contents_word(seed, place + i);
}

static uint32_t differences(const uint32_t *words, uint64_t place, uint64_t count, uint32_t seed)
{
    uint32_t all = 0;
    for (uint64_t i = 0; i < count; i++)
        all |= words[i] ^ contents_word(seed, place + i);
    return all;
}

uint64_t contents_wrong(const uint32_t *words, uint64_t place, uint64_t count, uint32_t seed)
{
    for (uint64_t block = 0; block < count; block += BLOCK) {
        uint64_t length = count - block < BLOCK ? count - block : BLOCK;
        if (!differences(words + block, place + block, length, seed))
            continue;
        for (uint64_t i = block; i < block + length; i++)
            if (words[i] != contents_word(seed, place + i))
                return i;
    }
    return count;
}
