#include "workload.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

enum { MOST_WORKLOADS = 64 };

static const struct workload *registered[MOST_WORKLOADS + 1];

void workload_register(const struct workload *workload)
{
    size_t at = 0;
    while (registered[at] && strcmp(registered[at]->name, workload->name) < 0)
        at++;
    assert(!registered[MOST_WORKLOADS - 1]);
    memmove(registered + at + 1, registered + at, (MOST_WORKLOADS - at) * sizeof *registered);
    registered[at] = workload;
}

const struct workload *const *registered_workloads(void)
{
    return registered;
}
