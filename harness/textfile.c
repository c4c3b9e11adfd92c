#include "textfile.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

bool textfile_read(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size_t used = 0;
    ssize_t got = 0;
    while (used < size - 1 && (got = read(fd, text + used, size - 1 - used)) > 0)
        used += (size_t)got;
    close(fd);
    if (used > 0 && text[used - 1] == '\n')
        used--;
    text[used] = '\0';
    return got >= 0;
}

bool textfile_number(const char *path, double *value)
{
    char text[64], *end;
    if (!textfile_read(path, text, sizeof text))
        return false;
    *value = strtod(text, &end);
    return end != text;
}
