/* Stands in for calls of the C library in tests: a disk that takes its time, is not to be had at
 * the moment, and writes down what it is called with. It knows the trial's own transfers by their
 * length, 8192 bytes. As these variables of the environment say:
 *
 * SHIM_TRANSFER_MS   what each transfer takes, in milliseconds
 * SHIM_FDATASYNC_MS  … and each fdatasync()
 * SHIM_EAGAIN        this many transfers out of that many plus one fail with EAGAIN
 * SHIM_TRACE         a file that takes a line for each transfer: "r" or "w", and its offset */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 8192 };

static long setting(const char *name)
{
    const char *value = getenv(name);
    return value ? atol(value) : 0;
}

static void take_ms(long milliseconds)
{
    struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    if (milliseconds > 0)
        nanosleep(&pause, NULL);
}

static void trace(char op, off_t offset)
{
    static int file = -1;
    const char *name = getenv("SHIM_TRACE");
    if (!name)
        return;
    if (file < 0)
        file = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dprintf(file, "%c %lld\n", op, (long long)offset);
}

static ssize_t transfer(long call, char op, int fd, void *at, size_t bytes, off_t offset)
{
    static long put_off;
    if (bytes != BYTES)
        return syscall(call, fd, at, bytes, offset);
    if (put_off < setting("SHIM_EAGAIN")) {
        put_off++;
        errno = EAGAIN;
        return -1;
    }
    put_off = 0;
    trace(op, offset);
    take_ms(setting("SHIM_TRANSFER_MS"));
    return syscall(call, fd, at, bytes, offset);
}

ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
    return transfer(SYS_pread64, 'r', fd, to, bytes, offset);
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t offset)
{
    return transfer(SYS_pwrite64, 'w', fd, (void *)from, bytes, offset);
}

int fdatasync(int fd)
{
    take_ms(setting("SHIM_FDATASYNC_MS"));
    return (int)syscall(SYS_fdatasync, fd);
}
