/* What the far end makes of the requested test, before anything is opened for it. */
#ifndef NET_BENCH_FAR_AGREEMENT_H
#define NET_BENCH_FAR_AGREEMENT_H

#include "control.h"
#include "far_sockets.h"
#include "test.h"

#include <stdbool.h>
#include <stddef.h>

/* Whether the session's caps allow it; false with one line in `why`. */
bool agreement_within(const struct test *test, const struct caps *caps, char *why, size_t size);
/* Holds far_cpus against those the process may use, or fills it in: one a core before any SMT
 * sibling. false with one line in `why`. */
bool agreement_place(struct test *test, char *why, size_t size);
/* What the result is to say of the far end. */
void agreement_facts(const struct test *test, const struct far_sockets *sockets, int control_fd,
                     struct far_facts *facts);

#endif
