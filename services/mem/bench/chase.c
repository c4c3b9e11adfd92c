#include "chase.h"

#include "checked.h"
#include "order.h"

enum { PIECE = 1024 };

/* ---- nodes ---------------------------------------------------------------------------------- */

static struct node *node_at(const struct chase *chase, uint64_t place)
{
    return (struct node *)(chase->memory + place * chase->stride) +
           spread_line(place, chase->stride / sizeof(struct node));
}

static bool is_node(const struct chase *chase, const struct node *node)
{
    uint64_t place = (uint64_t)((const char *)node - chase->memory) / chase->stride;
    return place < chase->count && node == node_at(chase, place);
}

/* The node, by its number, that a chain begins at. */
static uint64_t first_of(const struct chase *chase, unsigned chain)
{
    return chase->count * chain / chase->chains;
}

/* Nodes are numbered in the order they are visited in, and each number is the last one and one. */
void chase_begin(struct chase *chase, void *memory, size_t bytes, size_t stride, unsigned chains,
                 uint32_t seed)
{
    struct permutation permutation;
    uint32_t places[PIECE];
    *chase = (struct chase){
        .memory = memory, .stride = stride, .count = bytes / stride, .chains = chains};
    permutation_begin(&permutation, chase->count, seed);
    struct node *last = NULL;
    unsigned chain = 0;
    for (uint64_t number = 0; number < chase->count;) {
        uint64_t left = chase->count - number, piece = left < PIECE ? left : PIECE;
        permutation_fill(&permutation, places, piece);
        for (uint64_t i = 0; i < piece; i++, number++) {
            struct node *node = node_at(chase, places[i]);
            node->number = number;
            if (last)
                last->next = node;
            if (chain < chains && number == first_of(chase, chain))
                chase->at[chain++] = node;
            last = node;
        }
    }
    last->next = chase->at[0];
}

/* ---- hops ----------------------------------------------------------------------------------- */

#if defined(__x86_64__)
#define HOP "mov (%[at]), %[at]\n\t"
#define AGAIN "dec %[units]\n\tjnz 1b\n\t"
#else
#define HOP "ldr %[at], [%[at]]\n\t"
#define AGAIN "subs %[units], %[units], #1\n\tb.ne 1b\n\t"
#endif
#define HOP_8 HOP HOP HOP HOP HOP HOP HOP HOP
#define HOP_64 HOP_8 HOP_8 HOP_8 HOP_8 HOP_8 HOP_8 HOP_8 HOP_8

static void follow_1(struct node **from, uint64_t units)
{
    struct node *at = *from;
    __asm__ volatile(".p2align 6\n1:\n\t" HOP_64 AGAIN
                     : [at] "+&r"(at), [units] "+&r"(units)
                     :
                     : "cc", "memory");
    *from = at;
}

/* Of a constant number of chains, so that the compiler keeps as many of them in registers as there
 * are; the others are on the stack, some cycles a hop. */
static inline __attribute__((always_inline)) void follow(struct node **from, unsigned chains,
                                                         uint64_t units)
{
    struct node *at[CHAINS_MOST];
#pragma GCC unroll 32
    for (unsigned i = 0; i < chains; i++)
        at[i] = from[i];
    for (uint64_t round = 0; round < units * CHASE_UNROLLED; round++)
#pragma GCC unroll 32
        for (unsigned i = 0; i < chains; i++)
            at[i] = at[i]->next;
#pragma GCC unroll 32
    for (unsigned i = 0; i < chains; i++)
        from[i] = at[i];
}

/* clang-format off */
#define EACH_OF_SEVERAL(M)                                                                         \
    M(2) M(3) M(4) M(5) M(6) M(7) M(8) M(9) M(10) M(11) M(12) M(13) M(14) M(15) M(16) M(17) M(18)  \
    M(19) M(20) M(21) M(22) M(23) M(24) M(25) M(26) M(27) M(28) M(29) M(30) M(31) M(32)
#define FOLLOW(chains)                                                                             \
    static void follow_##chains(struct node **from, uint64_t units)                                \
    {                                                                                              \
        follow(from, chains, units);                                                               \
    }
#define NAME(chains) follow_##chains,

EACH_OF_SEVERAL(FOLLOW)

static void (*const follows[])(struct node **, uint64_t) = {follow_1, EACH_OF_SEVERAL(NAME)};
/* clang-format on */
_Static_assert(sizeof follows / sizeof *follows == CHAINS_MOST, "a loop for each number of chains");

void chase_units(struct chase *chase, uint64_t units)
{
    follows[chase->chains - 1](chase->at, units);
    chase->hops += units * CHASE_UNROLLED;
}

/* ---- check ---------------------------------------------------------------------------------- */

/* Each node leads to one whose number is the next: so from any node on, as many hops as there are
 * nodes go through as many different numbers, which is through all nodes, and come back. */
static bool is_cycle(const struct chase *chase)
{
    for (uint64_t place = 0; place < chase->count; place++) {
        const struct node *node = node_at(chase, place);
        uint64_t number = node->number + 1 < chase->count ? node->number + 1 : 0;
        if (!is_node(chase, node->next) || node->next->number != number)
            return false;
    }
    return true;
}

static bool are_at_their_nodes(const struct chase *chase)
{
    for (unsigned i = 0; i < chase->chains; i++)
        if (chase->at[i]->number != (first_of(chase, i) + chase->hops) % chase->count)
            return false;
    return true;
}

int chase_verify(const struct thread *thread, const struct chase *chase, uint64_t units)
{
    int failure = run_check_units(thread, chase->hops / CHASE_UNROLLED, units);
    if (failure || !RESULTS_ARE_CHECKED)
        return failure;
    if (are_at_their_nodes(chase) && is_cycle(chase))
        return EXIT_OK;
    run_reason(thread->run,
               "the pointers of thread %u, CPU %d, do not lead where they must: this CPU, its "
               "memory or this build does not work correctly; do not trust its figures",
               thread->index, thread->cpu);
    return EXIT_WRONG;
}
