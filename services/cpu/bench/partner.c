#define _GNU_SOURCE
#include "partner.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LOOK_AGAIN_NS = 50 * 1000 * 1000 };

/* A thread that has been woken may find its turn over before it has slept. */
static const double LEAST_SWITCHES = 0.9;

bool partner_sleep(atomic_uint *word, unsigned seen)
{
    const struct timespec look_again = {.tv_nsec = LOOK_AGAIN_NS};
    return syscall(SYS_futex, word, FUTEX_WAIT, seen, &look_again, NULL, 0) == 0 ||
           errno != ETIMEDOUT;
}

void partner_wake(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

uint64_t partner_switches(void)
{
    struct rusage used;
    getrusage(RUSAGE_THREAD, &used);
    return (uint64_t)(used.ru_nvcsw + used.ru_nivcsw);
}

int partner_check_switches(struct run *run, uint64_t turns, uint64_t switches)
{
    if (switches == 0 || (double)switches >= LEAST_SWITCHES * (double)turns)
        return EXIT_OK;
    run_reason(run,
               "%" PRIu64 " turns were taken with %" PRIu64
               " switches of the CPU: the kernel does not keep both sides on one CPU, or counts "
               "wrongly; do not trust its figures",
               turns, switches);
    return EXIT_RESOURCE;
}

int partner_lacks(struct run *run, const char *what)
{
    run_reason(run, "no %s (%s): close other programs, or raise the limit of this user", what,
               strerror(errno));
    return EXIT_RESOURCE;
}

unsigned partner_one_thread(const struct run *run)
{
    (void)run;
    return 1;
}
