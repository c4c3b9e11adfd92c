/* The NDJSON events on stdout. */
#ifndef HOSTBENCH_EVENTS_H
#define HOSTBENCH_EVENTS_H

#include "run.h"

struct sampled {
    const char *name;
    double value; /* NaN: nothing was finished */
};

/* All return false when stdout is gone. The main thread alone prints. */
bool event_start(const struct run *run);
bool event_sample(double t_s, double dt_s, const struct sampled *metrics, size_t count);
bool event_end(const struct trial *trial);
bool event_skip(const struct program *program, const char *reason);
/* Also prints the message on stderr, for people. `wrong` may be NULL. */
bool event_error(const struct program *program, const char *code, const char *message,
                 const struct wrong *wrong);

#endif
