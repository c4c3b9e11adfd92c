/* What a user of CUDA's driver API would write: asynchronous copies in a loop, with pinned memory of
 * the host, between two events. Prints the bytes per second of the median loop. The card is the first
 * that CUDA_VISIBLE_DEVICES lets it see.
 *
 * usage: memcpy_loop h2d|d2h|d2d BYTES SECONDS
 *
 * The driver's library is found at run time, so no toolkit is needed: gcc -O2 memcpy_loop.c -ldl */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COPIES = 8, LOOPS_LEAST = 3, LOOPS_MOST = 4096, WARM_UP = 2 };

typedef uint64_t device_pointer;

/* Types and names are the CUDA driver API reference's. */
#define CALLS(CALL)                                                                                \
    CALL(cuInit, (unsigned flags))                                                                 \
    CALL(cuDeviceGet, (int *device, int ordinal))                                                  \
    CALL(cuDevicePrimaryCtxRetain, (void **context, int device))                                   \
    CALL(cuCtxSetCurrent, (void *context))                                                         \
    CALL(cuMemAlloc_v2, (device_pointer * at, size_t bytes))                                       \
    CALL(cuMemHostAlloc, (void **at, size_t bytes, unsigned flags))                                \
    CALL(cuMemsetD32Async, (device_pointer at, unsigned value, size_t count, void *stream))        \
    CALL(cuStreamCreate, (void **stream, unsigned flags))                                          \
    CALL(cuEventCreate, (void **event, unsigned flags))                                            \
    CALL(cuEventRecord, (void *event, void *stream))                                               \
    CALL(cuStreamSynchronize, (void *stream))                                                      \
    CALL(cuEventElapsedTime, (float *milliseconds, void *from, void *to))                          \
    CALL(cuMemcpyHtoDAsync_v2, (device_pointer to, const void *from, size_t bytes, void *stream))  \
    CALL(cuMemcpyDtoHAsync_v2, (void *to, device_pointer from, size_t bytes, void *stream))        \
    CALL(cuMemcpyDtoDAsync_v2, (device_pointer to, device_pointer from, size_t bytes, void *stream))

static struct {
#define MEMBER(name, parameters) int(*name) parameters;
    CALLS(MEMBER)
#undef MEMBER
} cuda;

static void fail(const char *what, int code)
{
    fprintf(stderr, "memcpy_loop: %s: %d\n", what, code);
    exit(1);
}

#define DO(name, ...)                                                                              \
    do {                                                                                           \
        int code = cuda.name(__VA_ARGS__);                                                         \
        if (code)                                                                                  \
            fail(#name, code);                                                                     \
    } while (0)

static void find_calls(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "memcpy_loop: %s\n", dlerror());
        exit(1);
    }
#define FIND(name, parameters)                                                                     \
    *(void **)&cuda.name = dlsym(library, #name);                                                  \
    if (!cuda.name)                                                                                \
        fail(#name " is missing", 0);
    CALLS(FIND)
#undef FIND
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct loop {
    char way; /* of h2d, d2h, d2d: u(p), d(own), i(nside) */
    size_t bytes;
    void *host, *stream, *begin, *end;
    device_pointer device, other;
};

static double copies_s(const struct loop *loop)
{
    float milliseconds;
    DO(cuEventRecord, loop->begin, loop->stream);
    for (int i = 0; i < COPIES; i++)
        if (loop->way == 'u')
            DO(cuMemcpyHtoDAsync_v2, loop->device, loop->host, loop->bytes, loop->stream);
        else if (loop->way == 'd')
            DO(cuMemcpyDtoHAsync_v2, loop->host, loop->device, loop->bytes, loop->stream);
        else
            DO(cuMemcpyDtoDAsync_v2, loop->other, loop->device, loop->bytes, loop->stream);
    DO(cuEventRecord, loop->end, loop->stream);
    DO(cuStreamSynchronize, loop->stream);
    DO(cuEventElapsedTime, &milliseconds, loop->begin, loop->end);
    return milliseconds * 1e-3;
}

static void prepare(struct loop *loop)
{
    int device;
    void *context;
    DO(cuInit, 0);
    DO(cuDeviceGet, &device, 0);
    DO(cuDevicePrimaryCtxRetain, &context, device);
    DO(cuCtxSetCurrent, context);
    DO(cuMemAlloc_v2, &loop->device, loop->bytes);
    if (loop->way == 'i') {
        DO(cuMemAlloc_v2, &loop->other, loop->bytes);
    } else {
        DO(cuMemHostAlloc, &loop->host, loop->bytes, 0);
        memset(loop->host, 1, loop->bytes);
    }
    DO(cuStreamCreate, &loop->stream, 1); /* CU_STREAM_NON_BLOCKING */
    DO(cuMemsetD32Async, loop->device, 1, loop->bytes / 4, loop->stream);
    DO(cuEventCreate, &loop->begin, 0);
    DO(cuEventCreate, &loop->end, 0);
}

int main(int argc, char **argv)
{
    static double rates[LOOPS_MOST];
    struct loop loop = {0};
    size_t count = 0;
    if (argc == 4)
        loop.way = !strcmp(argv[1], "h2d") ? 'u' : !strcmp(argv[1], "d2h") ? 'd' : 'i';
    if (argc != 4 || (loop.way == 'i' && strcmp(argv[1], "d2d"))) {
        fputs("usage: memcpy_loop h2d|d2h|d2d BYTES SECONDS\n", stderr);
        return 2;
    }
    loop.bytes = strtoull(argv[2], NULL, 10);
    find_calls();
    prepare(&loop);
    for (int i = 0; i < WARM_UP; i++)
        copies_s(&loop);
    double until_s = now_s() + strtod(argv[3], NULL);
    while ((now_s() < until_s || count < LOOPS_LEAST) && count < LOOPS_MOST)
        rates[count++] = (double)loop.bytes * COPIES / copies_s(&loop);
    qsort(rates, count, sizeof *rates, ascending);
    printf("%.6e\n", rates[count / 2]);
    return 0;
}
