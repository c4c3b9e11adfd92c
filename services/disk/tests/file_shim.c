/* Stands in for calls of the C library in tests, as the environment says. SHIM_NO_TMPFILE: the file
 * system has no unnamed files. SHIM_WRITE_ERRNO, SHIM_FSYNC_ERRNO, SHIM_FDATASYNC_ERRNO: what these
 * fail with, writes from SHIM_FROM_BYTE of the file on. SHIM_NO_DIRECT: O_DIRECT is taken and means
 * nothing. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static int number(const char *variable)
{
    const char *text = getenv(variable);
    return text ? atoi(text) : 0;
}

/* Whether the call is to fail; errno is set then. */
static int fails(const char *variable)
{
    int error = number(variable);
    if (error)
        errno = error;
    return error;
}

int openat(int directory, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = va_arg(arguments, mode_t);
    va_end(arguments);
    if ((flags & O_TMPFILE) == O_TMPFILE && number("SHIM_NO_TMPFILE")) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, directory, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = va_arg(arguments, mode_t);
    va_end(arguments);
    int kept = number("SHIM_NO_DIRECT") ? flags & ~O_DIRECT : flags;
    return (int)syscall(SYS_openat, AT_FDCWD, path, kept, mode);
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t offset)
{
    if (offset >= number("SHIM_FROM_BYTE") && fails("SHIM_WRITE_ERRNO"))
        return -1;
    return syscall(SYS_pwrite64, fd, from, bytes, offset);
}

int fsync(int fd)
{
    return fails("SHIM_FSYNC_ERRNO") ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return fails("SHIM_FDATASYNC_ERRNO") ? -1 : (int)syscall(SYS_fdatasync, fd);
}
