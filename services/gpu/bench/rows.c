#include "rows.h"

#include <stddef.h>

const char *const rows_backends[] = {"auto", "cuda", "opencl", NULL};
const char *const rows_excludes[] = {"threads", NULL};
