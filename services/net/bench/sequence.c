#include "sequence.h"

#include <stdbool.h>
#include <string.h>

enum { WORD_BITS = 64, WORDS = SEQUENCE_WINDOW / WORD_BITS };

void sequence_clear(struct sequence *sequence)
{
    memset(sequence, 0, sizeof *sequence);
}

static uint64_t *word_of(struct sequence *sequence, uint64_t number)
{
    return &sequence->seen[number / WORD_BITS % WORDS];
}

static bool mark(struct sequence *sequence, uint64_t number)
{
    uint64_t *word = word_of(sequence, number), bit = UINT64_C(1) << number % WORD_BITS;
    bool before = *word & bit;
    *word |= bit;
    return before;
}

/* Words are cleared when the highest number enters them, so the window is whole words: the one of
 * the highest number and those before it. */
static void advance(struct sequence *sequence, uint64_t number)
{
    uint64_t first = (sequence->next + WORD_BITS - 1) / WORD_BITS, last = number / WORD_BITS;
    if (last >= first && last - first >= WORDS)
        first = last - WORDS + 1;
    for (uint64_t word = first; word <= last; word++)
        sequence->seen[word % WORDS] = 0;
    sequence->next = number + 1;
}

static bool too_late(const struct sequence *sequence, uint64_t number)
{
    return (sequence->next - 1) / WORD_BITS - number / WORD_BITS >= WORDS;
}

enum arrival sequence_add(struct sequence *sequence, uint64_t number)
{
    bool newest = number >= sequence->next;
    if (newest) {
        advance(sequence, number);
    } else if (too_late(sequence, number)) {
        sequence->too_late++;
        return ARRIVAL_TOO_LATE;
    }
    if (mark(sequence, number)) {
        sequence->duplicated++;
        return ARRIVAL_AGAIN;
    }
    sequence->unique++;
    sequence->reordered += !newest;
    return ARRIVAL_NEW;
}
