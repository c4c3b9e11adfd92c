#define _GNU_SOURCE
#include "scratch.h"

#include "block_device.h"
#include "environment.h"
#include "workload.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/stat.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    PROBED_MAX = 4096, /* the largest logical block there is */
    PROBED_MIN = 512,
    NAMES_MAX = 8, /* that are tried */
};

static const double RESERVE_BYTES = 5.0 * 1024 * 1024 * 1024;
static const double RESERVE_SHARE = 0.1; /* of the file system */
static const char VARIABLE[] = "HOSTBENCH_SCRATCH";
static const char REMEDY[] = "set HOSTBENCH_SCRATCH to a directory on the disk to be measured";

/* ---- whether it is on a disk ---------------------------------------------------------------- */

/* File systems whose files are memory; tmpfs takes O_DIRECT all the same. */
static const struct {
    long magic;
    const char *name;
} in_memory[] = {{TMPFS_MAGIC, "tmpfs"}, {RAMFS_MAGIC, "ramfs"}, {HUGETLBFS_MAGIC, "hugetlbfs"}};

/* What holds its files in memory; NULL: nothing that is known. */
static const char *memory_behind(int fd, const struct scratch *scratch)
{
    struct statfs status;
    if (fstatfs(fd, &status))
        return NULL;
    for (size_t i = 0; i < sizeof in_memory / sizeof *in_memory; i++)
        if ((long)status.f_type == in_memory[i].magic)
            return in_memory[i].name;
    return block_device_in_memory(scratch->device) ? "a RAM disk" : NULL;
}

/* For a directory as for a file. */
static int refuse_memory(struct run *run, int fd, struct scratch *scratch)
{
    block_device_of(fd, scratch->device, sizeof scratch->device);
    const char *memory = memory_behind(fd, scratch);
    if (!memory)
        return EXIT_OK;
    run_reason(run, "%s is in memory (%s), not on a disk: %s", scratch->directory, memory, REMEDY);
    return EXIT_RESOURCE;
}

/* ---- the directory -------------------------------------------------------------------------- */

static int no_directory(struct run *run, const struct scratch *scratch, int error)
{
    const char *path = scratch->directory;
    struct stat status;
    if (lstat(path, &status) == 0 && S_ISLNK(status.st_mode))
        run_reason(run, "%s is a symbolic link, and none is followed: name in %s what it points to",
                   path, VARIABLE);
    else if (error == ENOTDIR)
        run_reason(run, "%s is not a directory: %s", path, REMEDY);
    else if (error == ENOENT)
        run_reason(run, "%s does not exist: create it, or %s", path, REMEDY);
    else
        run_reason(run, "%s cannot be opened (%s): %s that user %u may write to", path,
                   strerror(error), REMEDY, (unsigned)geteuid());
    return EXIT_RESOURCE;
}

/* Others must not be able to put something in the way there. What is not ours may be shared like
 * /var/tmp, where only the owner of a file can rename or remove it. */
static int refuse_open_to_all(struct run *run, int directory, const struct scratch *scratch,
                              bool given)
{
    struct stat status;
    if (fstat(directory, &status)) {
        run_reason(run, "%s cannot be looked at: %s", scratch->directory, strerror(errno));
        return EXIT_RESOURCE;
    }
    bool ours = status.st_uid == geteuid();
    bool open_to_all = status.st_mode & S_IWOTH && !(status.st_mode & S_ISVTX);
    if (ours || (given && !open_to_all))
        return EXIT_OK;
    run_reason(run, "%s belongs to user %u%s: set %s to a directory of user %u, mode 0700",
               scratch->directory, (unsigned)status.st_uid,
               open_to_all ? " and every user can write to it" : "", VARIABLE, (unsigned)geteuid());
    return EXIT_RESOURCE;
}

/* `given`: by the operator; false: the default. A name that was cut short would be another's. */
static int name_directory(struct run *run, struct scratch *scratch, bool *given)
{
    const char *text = getenv(VARIABLE);
    size_t size = sizeof scratch->directory;
    *given = text && *text;
    if (!*given)
        snprintf(scratch->directory, size, "/var/tmp/hostbench-%u", (unsigned)geteuid());
    else if ((size_t)snprintf(scratch->directory, size, "%s", text) >= size) {
        run_reason(run, "%s has %zu bytes: use a shorter name, of at most %zu", VARIABLE,
                   strlen(text), size - 1);
        return EXIT_RESOURCE;
    }
    return EXIT_OK;
}

/* A descriptor of the directory, or -1 with run_reason(). */
static int open_directory(struct run *run, struct scratch *scratch)
{
    bool given;
    if (name_directory(run, scratch, &given))
        return -1;
    if (!given)
        mkdir(scratch->directory, 0700); /* where it fails, opening tells why */
    int directory = open(scratch->directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0) {
        no_directory(run, scratch, errno);
        return -1;
    }
    if (!refuse_open_to_all(run, directory, scratch, given) &&
        !refuse_memory(run, directory, scratch))
        return directory;
    close(directory);
    return -1;
}

/* ---- the file ------------------------------------------------------------------------------- */

/* For file systems without O_TMPFILE: a name for the moment between two calls. */
static int open_and_unlink(int directory)
{
    char name[64];
    int fd = -1;
    for (int i = 0; fd < 0 && i < NAMES_MAX && (i == 0 || errno == EEXIST); i++) {
        uint64_t number;
        if (getrandom(&number, sizeof number, 0) != sizeof number)
            return -1;
        snprintf(name, sizeof name, ".hostbench-%016" PRIx64, number);
        fd = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    }
    if (fd >= 0)
        unlinkat(directory, name, 0);
    return fd;
}

static int no_file(struct run *run, const struct scratch *scratch, int error)
{
    if (error == EROFS)
        run_reason(run, "%s is on a read-only file system: %s", scratch->directory, REMEDY);
    else if (error == EACCES || error == EPERM)
        run_reason(run, "%s is not writable by user %u: %s that it may write to",
                   scratch->directory, (unsigned)geteuid(), REMEDY);
    else
        run_reason(run, "no file can be made in %s: %s: %s", scratch->directory, strerror(error),
                   REMEDY);
    return EXIT_RESOURCE;
}

static int make_file(struct run *run, struct scratch *scratch)
{
    int directory = open_directory(run, scratch);
    if (directory < 0)
        return EXIT_RESOURCE;
    scratch->fd = openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (scratch->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
        scratch->fd = open_and_unlink(directory);
    int failure = scratch->fd < 0 ? no_file(run, scratch, errno) : EXIT_OK;
    close(directory);
    return failure;
}

/* ---- the file that a job keeps -------------------------------------------------------------- */

static int refuse_handed(struct run *run, int fd, const char *why)
{
    run_reason(run,
               "--scratch-fd %d %s: pass an unnamed file (O_TMPFILE) that is open for reading and "
               "writing",
               fd, why);
    return EXIT_USAGE;
}

/* Where the file was made, as the kernel tells it: "/var/tmp/#123 (deleted)". */
static void name_directory_of(struct scratch *scratch, int handed)
{
    char link[64], path[sizeof scratch->directory];
    snprintf(link, sizeof link, "/proc/self/fd/%d", handed);
    ssize_t length = readlink(link, path, sizeof path - 1);
    char *last = NULL;
    if (length > 0) {
        path[length] = '\0';
        last = strrchr(path, '/');
    }
    if (last && last > path)
        snprintf(scratch->directory, sizeof scratch->directory, "%.*s", (int)(last - path), path);
    else
        snprintf(scratch->directory, sizeof scratch->directory, "--scratch-fd %d", handed);
}

/* Writes only to a file without a name, which no other process can use. */
static int take_file(struct run *run, struct scratch *scratch, int handed)
{
    struct stat status;
    int flags = fcntl(handed, F_GETFL);
    if (flags < 0 || fstat(handed, &status))
        return refuse_handed(run, handed, "is not open");
    if (!S_ISREG(status.st_mode))
        return refuse_handed(run, handed, "is not a regular file");
    if (status.st_nlink > 0)
        return refuse_handed(run, handed, "has a name, and its owner would lose what is in it");
    if ((flags & O_ACCMODE) != O_RDWR)
        return refuse_handed(run, handed, "is not open for reading and writing");
    name_directory_of(scratch, handed);
    scratch->fd = fcntl(handed, F_DUPFD_CLOEXEC, 0);
    if (scratch->fd < 0)
        return refuse_handed(run, handed, "cannot be duplicated");
    return refuse_memory(run, scratch->fd, scratch);
}

/* ---- as a whole ----------------------------------------------------------------------------- */

static int read_reserve(struct run *run, struct scratch *scratch)
{
    struct statvfs status;
    scratch->reserve_bytes = RESERVE_BYTES;
    if (fstatvfs(scratch->fd, &status) == 0)
        scratch->reserve_bytes =
            fmax(RESERVE_BYTES, RESERVE_SHARE * (double)status.f_blocks * (double)status.f_frsize);
    return environment_bytes(run, "HOSTBENCH_DISK_RESERVE_BYTES", &scratch->reserve_bytes);
}

int scratch_open(struct run *run, struct scratch *scratch)
{
    *scratch = (struct scratch){.fd = -1};
    int failure = run_param_set(run, "scratch_fd")
                      ? take_file(run, scratch, (int)run_count(run, "scratch_fd"))
                      : make_file(run, scratch);
    return failure ? failure : read_reserve(run, scratch);
}

void scratch_close(struct scratch *scratch)
{
    if (scratch->fd >= 0)
        close(scratch->fd);
    scratch->fd = -1;
}

/* An unnamed file can be opened again by the name of its descriptor alone. */
int scratch_reopen(const struct scratch *scratch, int flags)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", scratch->fd);
    return open(path, O_RDWR | O_CLOEXEC | flags);
}

/* ---- alignment ------------------------------------------------------------------------------ */

/* What the kernel reports, since 6.1; 0: it does not. */
static uint64_t reported_alignment(const struct scratch *scratch, bool *none)
{
    *none = false;
#ifdef STATX_DIOALIGN
    struct statx status = {0};
    if (syscall(SYS_statx, scratch->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) ||
        !(status.stx_mask & STATX_DIOALIGN))
        return 0;
    *none = status.stx_dio_offset_align == 0;
    return status.stx_dio_offset_align;
#else
    (void)scratch;
    return 0;
#endif
}

/* Whether that many bytes can be written directly to an empty file, or read from another. */
static bool takes(int direct, void *buffer, size_t bytes, bool empty)
{
    ssize_t done = empty ? pwrite(direct, buffer, bytes, 0) : pread(direct, buffer, bytes, 0);
    return done == (ssize_t)bytes;
}

/* An empty file is about to be filled anyway. */
static uint64_t tried_alignment(const struct scratch *scratch, int direct)
{
    struct stat status;
    void *buffer = aligned_alloc(PROBED_MAX, PROBED_MAX);
    uint64_t found = 0;
    if (!buffer || fstat(scratch->fd, &status))
        return 0;
    memset(buffer, 0, PROBED_MAX);
    for (size_t bytes = PROBED_MIN; bytes <= PROBED_MAX && !found; bytes *= 2)
        if (takes(direct, buffer, bytes, status.st_size < PROBED_MAX))
            found = bytes;
    free(buffer);
    return found;
}

uint64_t scratch_alignment(const struct scratch *scratch)
{
    bool none;
    uint64_t reported = reported_alignment(scratch, &none);
    int direct = none ? -1 : scratch_reopen(scratch, O_DIRECT);
    if (direct < 0)
        return 0;
    uint64_t alignment = reported ? reported : tried_alignment(scratch, direct);
    close(direct);
    return alignment;
}

/* ---- space ---------------------------------------------------------------------------------- */

int scratch_space(struct run *run, const struct scratch *scratch, double more_bytes)
{
    struct statvfs status;
    if (fstatvfs(scratch->fd, &status)) {
        run_reason(run, "the space of %s cannot be read: %s", scratch->directory, strerror(errno));
        return EXIT_RESOURCE;
    }
    double free_bytes = (double)status.f_bavail * (double)status.f_frsize;
    double usable = free_bytes - scratch->reserve_bytes;
    if (more_bytes <= usable)
        return EXIT_OK;
    run_reason(run,
               "%s: %.0f more bytes are needed, %.0f are free and %.0f of them are kept "
               "(HOSTBENCH_DISK_RESERVE_BYTES): free some, or use a --file-bytes smaller by %.0f",
               scratch->directory, more_bytes, free_bytes, scratch->reserve_bytes,
               more_bytes - usable);
    return EXIT_RESOURCE;
}
