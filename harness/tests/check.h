/* The little that the C unit tests need: each is a program that exits 1 at the first failure. */
#ifndef HARNESS_TESTS_CHECK_H
#define HARNESS_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Writes `text` to `root`/`path`, with the directories on the way. */
static inline void put_file(const char *root, const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *slash = strchr(full + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0755);
        *slash = '/';
    }
    FILE *stream = fopen(full, "w");
    CHECK(stream && fputs(text, stream) >= 0 && fclose(stream) == 0);
}

/* A fresh directory in TMPDIR, which the test's caller cleans up. */
static inline const char *fresh_root(void)
{
    static char root[256];
    const char *parent = getenv("TMPDIR");
    snprintf(root, sizeof root, "%s/hostbench-test-XXXXXX", parent ? parent : "/tmp");
    CHECK(mkdtemp(root));
    return root;
}

#endif
