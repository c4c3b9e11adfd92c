/* Small text files of /proc and /sys. */
#ifndef HOSTBENCH_TEXTFILE_H
#define HOSTBENCH_TEXTFILE_H

#include <stdbool.h>
#include <stddef.h>

/* Reads up to size - 1 bytes and ends them with NUL, without the last newline. */
bool textfile_read(const char *path, char *text, size_t size);
/* The first number in the file. */
bool textfile_number(const char *path, double *value);

#endif
