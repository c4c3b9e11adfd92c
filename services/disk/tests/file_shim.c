/* Stands in for calls of the C library in tests, as the environment says. SHIM_NO_TMPFILE: the file
 * system has no unnamed files. SHIM_WRITE_ERRNO, SHIM_FSYNC_ERRNO, SHIM_FDATASYNC_ERRNO: what these
 * fail with, writes from SHIM_FROM_BYTE of the file on. SHIM_NO_DIRECT: O_DIRECT is taken and means
 * nothing. SHIM_WRITE_MS, SHIM_RANGE_MS: how long a write of a MiB, or writing back a piece, takes more.
 * SHIM_RANGE_ERRNO: what the latter fails with. SHIM_JOIN_S: how long joining a thread takes more.
 * SHIM_NAMES_TAKEN: how many new files have a name that is taken. SHIM_NO_ACCOUNTS: there is no
 * /proc/self/io. SHIM_NO_MINCORE: mincore() is refused. SHIM_LOST_WRITE: of so many writes of less
 * than 64 KiB each the last one is lost; of write() the place moves on. SHIM_BAD_READ: what read()
 * gives has a wrong first byte. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
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

static void take_ms(int ms)
{
    const struct timespec taken = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&taken, NULL);
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
    static int taken;
    if (flags & O_EXCL && taken < number("SHIM_NAMES_TAKEN")) {
        taken++;
        errno = EEXIST;
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
    take_ms((int)((size_t)number("SHIM_WRITE_MS") * bytes >> 20));
    static int writes;
    if (number("SHIM_LOST_WRITE") && bytes < 65536 && ++writes % number("SHIM_LOST_WRITE") == 0)
        return (ssize_t)bytes;
    return syscall(SYS_pwrite64, fd, from, bytes, offset);
}

/* The scratch file: it has no name. */
static bool is_file(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 0;
}

ssize_t write(int fd, const void *from, size_t bytes)
{
    static int writes;
    int lost = number("SHIM_LOST_WRITE");
    if (lost && is_file(fd) && ++writes % lost == 0)
        return lseek(fd, (off_t)bytes, SEEK_CUR) < 0 ? -1 : (ssize_t)bytes;
    return syscall(SYS_write, fd, from, bytes);
}

ssize_t read(int fd, void *into, size_t bytes)
{
    ssize_t got = syscall(SYS_read, fd, into, bytes);
    if (got > 0 && number("SHIM_BAD_READ") && is_file(fd))
        *(char *)into ^= 1;
    return got;
}

int fsync(int fd)
{
    return fails("SHIM_FSYNC_ERRNO") ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return fails("SHIM_FDATASYNC_ERRNO") ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int sync_file_range(int fd, off_t offset, off_t bytes, unsigned flags)
{
    if (fails("SHIM_RANGE_ERRNO"))
        return -1;
    take_ms(number("SHIM_RANGE_MS"));
    return (int)syscall(SYS_sync_file_range, fd, offset, bytes, flags);
}

/* Through the one of the C library, which knows of the thread. */
int pthread_join(pthread_t thread, void **result)
{
    sleep((unsigned)number("SHIM_JOIN_S"));
    return pthread_clockjoin_np(thread, result, CLOCK_MONOTONIC,
                                &(struct timespec){.tv_sec = (time_t)1 << 40});
}

FILE *fopen(const char *path, const char *mode)
{
    FILE *(*real)(const char *, const char *) =
        (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
    return number("SHIM_NO_ACCOUNTS") && !strcmp(path, "/proc/self/io") ? NULL : real(path, mode);
}

int mincore(void *address, size_t bytes, unsigned char *pages)
{
    if (number("SHIM_NO_MINCORE")) {
        errno = EPERM;
        return -1;
    }
    return (int)syscall(SYS_mincore, address, bytes, pages);
}
