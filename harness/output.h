/* Writes to stdout without being held up by it: a reader that does not read must not keep the
 * program from ending when it is to end. */
#ifndef HOSTBENCH_OUTPUT_H
#define HOSTBENCH_OUTPUT_H

#include "ending.h"

#include <stddef.h>

/* From now on output_write() listens to `ending` while it waits. */
void output_watch(struct ending *ending);
/* All or nothing more: false when stdout cannot be written any more (errno says why). Ends the
 * process when it is to end and stdout stays full. */
bool output_write(const char *text, size_t length);

#endif
