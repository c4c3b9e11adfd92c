#include "failure.h"

#include "telemetry.h"

#include <stdarg.h>
#include <stdio.h>

int gpu_fail(struct gpu *gpu, int exit_code, const char *call, long code, const char *code_name,
             const char *format, ...)
{
    char meaning[384];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(meaning, sizeof meaning, format, arguments);
    va_end(arguments);
    const char *trouble = exit_code == EXIT_FAILED ? telemetry_trouble(gpu->telemetry) : NULL;
    run_reason(gpu->run, "%s: %ld%s%s%s: %s%s%s", call, code, code_name ? " (" : "",
               code_name ? code_name : "", code_name ? ")" : "", meaning, trouble ? "; " : "",
               trouble ? trouble : "");
    return exit_code;
}
