#define _GNU_SOURCE
#include "calls.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* ---- the C library's ------------------------------------------------------------------------ */

static bool stream_seek(struct channel *channel, uint64_t offset)
{
    return fseeko(channel->stream, (off_t)offset, SEEK_SET) == 0;
}

static size_t stream_read(struct channel *channel, void *into, size_t bytes)
{
    errno = 0;
    return fread(into, 1, bytes, channel->stream);
}

static size_t stream_write(struct channel *channel, const void *from, size_t bytes)
{
    errno = 0;
    return fwrite(from, 1, bytes, channel->stream);
}

/* ---- the system's --------------------------------------------------------------------------- */

static bool system_seek(struct channel *channel, uint64_t offset)
{
    return lseek(channel->fd, (off_t)offset, SEEK_SET) >= 0;
}

static size_t system_read(struct channel *channel, void *into, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t got = read(channel->fd, (char *)into + done, bytes - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0)
            errno = 0;
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    return done;
}

static size_t system_write(struct channel *channel, const void *from, size_t bytes)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t taken = write(channel->fd, (const char *)from + done, bytes - done);
        if (taken < 0 && errno == EINTR)
            continue;
        if (taken == 0)
            errno = 0;
        if (taken <= 0)
            break;
        done += (size_t)taken;
    }
    return done;
}

/* ---- the table ------------------------------------------------------------------------------ */

#define STREAM .stream = true, .seek = stream_seek, .read = stream_read, .write = stream_write

static const struct calls all_calls[] = {
    {.name = "stdio", STREAM},
    {.name = "unbuffered", .unbuffered = true, STREAM},
    {.name = "syscalls", .seek = system_seek, .read = system_read, .write = system_write},
};

const struct calls *calls_named(const char *name)
{
    size_t i = 0;
    while (strcmp(all_calls[i].name, name) != 0)
        i++;
    return &all_calls[i];
}

bool channel_open(struct channel *channel, const struct calls *calls, int fd)
{
    *channel = (struct channel){.fd = fd};
    if (fd < 0)
        return false;
    if (!calls->stream)
        return true;
    channel->stream = fdopen(fd, "r+");
    if (!channel->stream) {
        int error = errno;
        channel_close(channel);
        errno = error;
        return false;
    }
    if (calls->unbuffered)
        setbuf(channel->stream, NULL);
    return true;
}

bool channel_flush(struct channel *channel)
{
    return !channel->stream || fflush(channel->stream) == 0;
}

void channel_close(struct channel *channel)
{
    if (channel->stream)
        fclose(channel->stream);
    else if (channel->fd >= 0)
        close(channel->fd);
    *channel = (struct channel){.fd = -1};
}
