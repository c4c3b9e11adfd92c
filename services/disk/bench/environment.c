#include "environment.h"

#include "workload.h"

#include <stdlib.h>
#include <string.h>

int environment_bytes(struct run *run, const char *variable, double *bytes)
{
    const char *text = getenv(variable);
    if (!text || !*text)
        return EXIT_OK;
    if (text[strspn(text, "0123456789")]) {
        run_reason(run, "%s \"%.100s\": allowed is a whole number of bytes, in digits", variable,
                   text);
        return EXIT_USAGE;
    }
    *bytes = strtod(text, NULL);
    return EXIT_OK;
}
