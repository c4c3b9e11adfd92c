/* Where this CPU's counters may be read they count a loop, elsewhere there is a reason and no figure. */
#include "counters.h"

#include "check.h"

#include <errno.h>
#include <math.h>

enum { PASSES = 1000000 };

static void a_loop_is_counted(const struct counters *counters)
{
    struct counts before = counters_read(counters);
    for (int i = 0; i < PASSES; i++)
        __asm__ volatile("");
    struct counts after = counters_read(counters), counted = counts_between(&before, &after);
    if (isnan(counted.cycles)) {
        printf("other users of the counters took turns: not checked\n");
        return;
    }
    /* A pass is an addition or more; no core retires 16 instructions a cycle. */
    CHECK(counted.instructions >= PASSES && counted.instructions < 100.0 * PASSES);
    CHECK(counted.cycles > counted.instructions / 16);
    struct counts twice = counts_sum(&counted, &counted);
    CHECK(twice.cycles == 2 * counted.cycles && twice.instructions == 2 * counted.instructions);
}

static void each_reason_says_what_to_do(void)
{
    CHECK(strstr(counters_missing(EACCES), "perf_event_paranoid"));
    CHECK(strstr(counters_missing(EMFILE), "ulimit -n"));
    CHECK(strstr(counters_missing(ENOENT), "virtual machine"));
    CHECK(strstr(counters_missing(0), "took turns"));
}

int main(void)
{
    struct counters counters = counters_open();
    if (counters.error == 0) {
        a_loop_is_counted(&counters);
    } else {
        CHECK(isnan(counters_read(&counters).cycles));
        printf("not counted here: %s\n", counters_missing(counters.error));
    }
    counters_close(&counters);
    CHECK(isnan(counters_read(&counters).instructions));
    each_reason_says_what_to_do();
    return 0;
}
