/* The calls by which a naive workload reaches the file: those of the C library, or the system's. */
#ifndef DISK_BENCH_CALLS_H
#define DISK_BENCH_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct channel {
    int fd;       /* -1: not open */
    FILE *stream; /* around it; NULL: none */
};

struct calls {
    const char *name;
    bool stream;                                      /* around the descriptor */
    bool unbuffered;                                  /* … without a buffer of its own */
    bool (*seek)(struct channel *, uint64_t offset);  /* false with errno */
    size_t (*read)(struct channel *, void *, size_t); /* fewer bytes: with errno, or 0 at the end */
    size_t (*write)(struct channel *, const void *, size_t); /* the same */
};

const struct calls *calls_named(const char *name);

/* Takes the descriptor over, whether or not it succeeds. false with errno. */
bool channel_open(struct channel *channel, const struct calls *calls, int fd);
/* What the library has kept back goes to the kernel. false with errno. */
bool channel_flush(struct channel *channel);
void channel_close(struct channel *channel);

#endif
