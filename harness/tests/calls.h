/* For tests that run whole trials: calls a program in a child and reads what it printed. */
#ifndef HARNESS_TESTS_CALLS_H
#define HARNESS_TESTS_CALLS_H

#include "check.h"
#include "workload.h"

#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_MAX = 1 << 16 };

/* Runs the program with these arguments, split at blanks; its exit code, and what it printed. */
static inline int call_program(const struct program *program, const char *root,
                               const char *arguments, char *output)
{
    char path[300], copy[256], *words[32] = {"test-bench"};
    int count = 1, status;
    snprintf(path, sizeof path, "%s/output", root);
    snprintf(copy, sizeof copy, "%s", arguments);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        words[count++] = word;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(freopen(path, "w", stdout));
        exit(bench_main(program, count, words));
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    FILE *stream = fopen(path, "r");
    CHECK(stream);
    output[fread(output, 1, OUTPUT_MAX - 1, stream)] = '\0';
    fclose(stream);
    return WEXITSTATUS(status);
}

/* The first number under this key behind `from`. NaN: null. */
static inline double number_behind(const char *from, const char *key)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = from ? strstr(from, quoted) : NULL;
    CHECK(at);
    return strncmp(at + strlen(quoted), "null", 4) ? strtod(at + strlen(quoted), NULL) : NAN;
}

/* … in the end event, where the metrics come first. */
static inline double number(const char *output, const char *key)
{
    return number_behind(strstr(output, "\"event\":\"end\""), key);
}

#endif
