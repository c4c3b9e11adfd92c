/* Stands in for pread() and pwrite() of the C library in tests: of more than a page, half is moved,
 * in whole pages. */
#define _GNU_SOURCE
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096 };

static size_t less(size_t bytes)
{
    return bytes > PAGE_BYTES ? bytes / 2 / PAGE_BYTES * PAGE_BYTES : bytes;
}

ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
    return syscall(SYS_pread64, fd, to, less(bytes), offset);
}

ssize_t pwrite(int fd, const void *from, size_t bytes, off_t offset)
{
    return syscall(SYS_pwrite64, fd, from, less(bytes), offset);
}
