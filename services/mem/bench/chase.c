#include "chase.h"

#include "order.h"

enum { PIECE = 1024 };

/* Nodes are numbered in the order they are visited in, and each number is the last one and one. */
void chase_begin(struct chase *chase, void *memory, size_t bytes, uint32_t seed)
{
    struct permutation permutation;
    uint32_t places[PIECE];
    *chase = (struct chase){.nodes = memory, .count = bytes / sizeof(struct node)};
    permutation_begin(&permutation, chase->count, seed);
    struct node *last = NULL;
    for (uint64_t number = 0; number < chase->count;) {
        uint64_t left = chase->count - number, piece = left < PIECE ? left : PIECE;
        permutation_fill(&permutation, places, piece);
        for (uint64_t i = 0; i < piece; i++, number++) {
            struct node *node = chase->nodes + places[i];
            node->number = number;
            *(last ? &last->next : &chase->at) = node;
            last = node;
        }
    }
    last->next = chase->at;
}

#if defined(__x86_64__)
#define HOP "mov (%[at]), %[at]\n\t"
#define AGAIN "dec %[units]\n\tjnz 1b\n\t"
#else
#define HOP "ldr %[at], [%[at]]\n\t"
#define AGAIN "subs %[units], %[units], #1\n\tb.ne 1b\n\t"
#endif
#define HOP_8 HOP HOP HOP HOP HOP HOP HOP HOP
#define HOP_64 HOP_8 HOP_8 HOP_8 HOP_8 HOP_8 HOP_8 HOP_8 HOP_8

void chase_units(struct chase *chase, uint64_t units)
{
    struct node *at = chase->at;
    chase->hops += units * CHASE_UNROLLED;
    __asm__ volatile(".p2align 6\n1:\n\t" HOP_64 AGAIN
                     : [at] "+&r"(at), [units] "+&r"(units)
                     :
                     : "cc", "memory");
    chase->at = at;
}

/* Each node leads to one whose number is the next: so from any node on, as many hops as there are
 * nodes go through as many different numbers, which is through all nodes, and come back. */
static bool is_cycle(const struct chase *chase)
{
    const struct node *nodes = chase->nodes, *end = nodes + chase->count;
    for (const struct node *node = nodes; node < end; node++) {
        uint64_t number = node->number + 1 < chase->count ? node->number + 1 : 0;
        if (node->next < nodes || node->next >= end || node->next->number != number)
            return false;
    }
    return true;
}

int chase_verify(const struct thread *thread, const struct chase *chase, uint64_t units)
{
    int failure = run_check_units(thread, chase->hops / CHASE_UNROLLED, units);
    if (failure)
        return failure;
    if (chase->at->number == chase->hops % chase->count && is_cycle(chase))
        return EXIT_OK;
    run_reason(thread->run,
               "the pointers of thread %u, CPU %d, do not lead where they must: this CPU, its "
               "memory or this build works wrongly, trust no figure of it",
               thread->index, thread->cpu);
    return EXIT_WRONG;
}
