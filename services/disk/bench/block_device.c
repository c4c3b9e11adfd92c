#define _GNU_SOURCE
#include "block_device.h"

#include "textfile.h"

#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const double SECTOR_BYTES = 512; /* of these counters, on any device */

static void name_device(dev_t number, char *device, size_t size)
{
    snprintf(device, size, "%u:%u", major(number), minor(number));
}

static bool is_known(const char *device)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/dev/block/%s/stat", device);
    return access(path, R_OK) == 0;
}

/* What is mounted where files have this anonymous device number: btrfs and its like give the
 * device's name as the source of the mount. */
static bool mounted_from(const char *anonymous, char *source, size_t size)
{
    char line[4096], device[32], format[32];
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    bool found = false;
    snprintf(format, sizeof format, " - %%*s %%%zus", size - 1);
    while (mounts && !found && fgets(line, sizeof line, mounts)) {
        const char *behind = strstr(line, " - ");
        found = behind && sscanf(line, "%*d %*d %31s", device) == 1 && !strcmp(device, anonymous) &&
                sscanf(behind, format, source) == 1;
    }
    if (mounts)
        fclose(mounts);
    return found;
}

void block_device_of(int fd, char *device, size_t size)
{
    struct stat status;
    char source[1024];
    device[0] = '\0';
    if (fstat(fd, &status))
        return;
    name_device(status.st_dev, device, size);
    if (is_known(device))
        return;
    bool found = mounted_from(device, source, sizeof source) && stat(source, &status) == 0 &&
                 S_ISBLK(status.st_mode);
    if (found)
        name_device(status.st_rdev, device, size);
    if (!found || !is_known(device))
        device[0] = '\0';
}

bool block_device_in_memory(const char *device)
{
    char path[128], target[1024];
    if (!*device)
        return false;
    snprintf(path, sizeof path, "/sys/dev/block/%s", device);
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0)
        return false;
    target[length] = '\0';
    const char *name = basename(target);
    return !strncmp(name, "zram", 4) || !strncmp(name, "ram", 3);
}

bool block_device_counters(const char *device, double *read_bytes, double *write_bytes,
                           double *busy_s)
{
    char path[128], text[512];
    unsigned long long sectors_read, sectors_written, busy_ms;
    snprintf(path, sizeof path, "/sys/dev/block/%s/stat", device);
    /* Documentation/block/stat.rst: the 3rd, 7th and 10th number. */
    if (!*device || !textfile_read(path, text, sizeof text) ||
        sscanf(text, "%*u %*u %llu %*u %*u %*u %llu %*u %*u %llu", &sectors_read, &sectors_written,
               &busy_ms) != 3)
        return false;
    *read_bytes = SECTOR_BYTES * (double)sectors_read;
    *write_bytes = SECTOR_BYTES * (double)sectors_written;
    *busy_s = 1e-3 * (double)busy_ms;
    return true;
}
