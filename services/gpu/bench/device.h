/* What a workload asks of a driver, in the drivers' own terms, and the two drivers that answer: CUDA's
 * and OpenCL's. No other header of a driver is needed above it. */
#ifndef GPU_BENCH_DEVICE_H
#define GPU_BENCH_DEVICE_H

#include "workload.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GPU_DEVICES_MAX = 64,
    GPU_LOOKED_MAX = 512,
    GPU_ARGUMENT_BYTES = 128, /* a tensor map of CUDA's */
};

struct gpu_backend;
struct telemetry;

enum gpu_type { GPU_IS_GPU, GPU_IS_CPU, GPU_IS_OTHER };

/* An entry of --list-devices. Zero and "": unknown, or the backend has no such thing. */
struct gpu_device {
    const struct gpu_backend *backend;
    int ordinal;                             /* the backend's own */
    unsigned opencl_platform, opencl_device; /* of OpenCL alone: as it counts them */
    char name[128];
    char uuid[64];   /* as NVML and nvidia-smi write it: GPU-8-4-4-4-12; of others whatever names it
                        again, made of [A-Za-z0-9._-] */
    char pci[32];    /* 0000:01:00.0 */
    char driver[64]; /* its version */
    char vendor[32];
    enum gpu_type type;
    int cc_major, cc_minor; /* compute capability; 0.0: no CUDA */
    unsigned compute_units;
    double clock_hertz, memory_clock_hertz; /* at most */
    unsigned bus_width_bits;
    uint64_t l2_bytes, memory_bytes;
    uint64_t allocation_bytes; /* the largest single allocation; 0: as memory_bytes */
    unsigned group_size_max;
    unsigned shared_bytes; /* that a group may have, opted in */
    bool ecc, fp64, fp16;
    bool unified; /* its memory is the host's */
};

/* What one backend found, and what it says about its search: always, also when it found some. */
struct gpu_list {
    struct gpu_device devices[GPU_DEVICES_MAX];
    size_t count;
    char looked[GPU_LOOKED_MAX]; /* "libcuda.so.1 is not installed" */
};

/* ---- objects. Made and released by the backend; the fields may be read by all -------------- */

/* A device that is in use by this trial: its context. */
struct gpu {
    struct run *run;
    struct gpu_device device;
    struct telemetry *telemetry; /* that knows what the card itself has reported; may be NULL */
    bool free_unknown; /* the driver does not tell what others hold: free_memory() leaves it out */
    void *own;         /* the backend's */
};

/* Memory of the device. */
struct gpu_memory {
    struct gpu *gpu;
    uint64_t bytes;
    uint64_t handle; /* CUdeviceptr, or a cl_mem */
};

/* Memory of the host that the device copies from and to. */
struct gpu_host_memory {
    struct gpu *gpu;
    uint64_t bytes;
    bool pinned;
    void *at;
    void *own; /* the backend's */
};

struct gpu_kernel {
    struct gpu *gpu;
    char name[64];
    char build[96]; /* what it was made from: "CUBIN sm_90", "PTX compute_120 by the driver",
                       "OpenCL C by the driver" */
    bool
        by_the_driver; /* compiled from PTX: the driver, not our compiler, chose the instructions */
    unsigned group_size_max;
    void *own;
};

/* Work in it is done in order. */
struct gpu_queue {
    struct gpu *gpu;
    void *own; /* CUstream, or a cl_command_queue */
};

/* A point of time in a queue, by the device's clock. May be given to calls again and again. */
struct gpu_event {
    struct gpu *gpu;
    void *own;
    bool at_start; /* the backend's */
};

/* ---- requests ------------------------------------------------------------------------------- */

enum gpu_argument_kind { GPU_ARGUMENT_MEMORY, GPU_ARGUMENT_VALUE };

struct gpu_argument {
    enum gpu_argument_kind kind;
    const struct gpu_memory *memory;
    size_t bytes; /* of the value */
    union {
        uint32_t u32;
        uint64_t u64;
        float f32;
        double f64;
        unsigned char raw[GPU_ARGUMENT_BYTES];
    } value;
};

#define GPU_ARG_MEMORY(at) ((struct gpu_argument){.kind = GPU_ARGUMENT_MEMORY, .memory = (at)})
#define GPU_ARG_U32(number)                                                                        \
    ((struct gpu_argument){.kind = GPU_ARGUMENT_VALUE, .bytes = 4, .value.u32 = (number)})
#define GPU_ARG_U64(number)                                                                        \
    ((struct gpu_argument){.kind = GPU_ARGUMENT_VALUE, .bytes = 8, .value.u64 = (number)})

struct gpu_launch {
    const struct gpu_kernel *kernel;
    unsigned groups, group_size; /* of one dimension */
    unsigned shared_bytes;       /* dynamic ones */
    const struct gpu_argument *arguments;
    unsigned count;
};

enum gpu_copy_kind { GPU_HOST_TO_DEVICE, GPU_DEVICE_TO_HOST, GPU_DEVICE_TO_DEVICE };

/* The device's ends are `to` and `from`, the host's is `host`. */
struct gpu_copy {
    enum gpu_copy_kind kind;
    const struct gpu_memory *to, *from;
    uint64_t to_offset, from_offset;
    void *host;
    uint64_t bytes;
};

/* Every function that returns an int returns 0 or an exit_code, with its reason by gpu_fail(). Those
 * that give an object leave it NULL on failure; a release takes NULL. Events that a call takes may be
 * NULL: `begin` is when the device begins with this very piece of work, `end` when it is done. */
struct gpu_backend {
    const char *name; /* cuda, opencl: a choice of the parameter backend */

    /* Appends what it finds; whose device it is, the caller notes. Always says in `looked` what it
     * looked for and found. Never fails. */
    void (*list)(struct gpu_list *list, char looked[GPU_LOOKED_MAX]);

    /* gpu->run and gpu->device are set. */
    int (*open)(struct gpu *gpu);
    void (*close)(struct gpu *gpu); /* whether or not open() succeeded */

    int (*memory)(struct gpu *gpu, uint64_t bytes, struct gpu_memory **memory);
    void (*release_memory)(struct gpu_memory *memory);
    int (*free_memory)(struct gpu *gpu, uint64_t *bytes); /* left now */
    int (*host_memory)(struct gpu *gpu, uint64_t bytes, bool pinned,
                       struct gpu_host_memory **memory);
    void (*release_host_memory)(struct gpu_host_memory *memory);

    /* From the embedded set. EXIT_UNSUPPORTED where there is none for this device. */
    int (*kernel)(struct gpu *gpu, const char *name, struct gpu_kernel **kernel);
    void (*release_kernel)(struct gpu_kernel *kernel);

    int (*queue)(struct gpu *gpu, struct gpu_queue **queue);
    void (*release_queue)(struct gpu_queue *queue);
    int (*event)(struct gpu *gpu, struct gpu_event **event);
    void (*release_event)(struct gpu_event *event);

    /* These queue their work and begin it without a further call (clFlush). */
    int (*launch)(struct gpu_queue *queue, const struct gpu_launch *launch, struct gpu_event *begin,
                  struct gpu_event *end);
    int (*copy)(struct gpu_queue *queue, const struct gpu_copy *copy, struct gpu_event *begin,
                struct gpu_event *end);
    /* 32-bit words; offset and bytes are multiples of 4. */
    int (*fill)(struct gpu_queue *queue, const struct gpu_memory *memory, uint64_t offset,
                uint64_t bytes, uint32_t word);
    /* When all that was queued before is done. */
    int (*record)(struct gpu_queue *queue, struct gpu_event *event);

    /* Does not wait. Also returns a failure of the device since then (Xid, ECC, lost). */
    int (*done)(const struct gpu_event *event, bool *done);
    /* Both are done. Seconds from `from` to `to`, of any queues of this device; may be negative. */
    int (*elapsed)(const struct gpu_event *from, const struct gpu_event *to, double *seconds);
    /* Waits in the driver's own way, without heed of the end of the run: for short work, and for
     * what measures this very call. */
    int (*finish)(struct gpu_queue *queue);

    /* Lets `gpu` reach the memory of `peer`, if that is possible. NULL: the backend has no peers.
     * EXIT_UNSUPPORTED: they cannot. */
    int (*peer)(struct gpu *gpu, struct gpu *peer);
    /* From a memory of one device to that of another, in a queue of either. */
    int (*peer_copy)(struct gpu_queue *queue, const struct gpu_copy *copy, struct gpu_event *begin,
                     struct gpu_event *end);
};

extern const struct gpu_backend cuda_backend;
extern const struct gpu_backend opencl_backend;

/* ---- device.c: what all share --------------------------------------------------------------- */

/* Dynamic shared memory that a group takes for no other reason than that just so many groups have room
 * on a multiprocessor: with room for more, those of a grid that fills each of them once would be spread
 * unevenly. CUDA only; 0: unknown. */
unsigned gpu_ballast_bytes(const struct gpu_device *device, unsigned groups);
/* Until the event is done. Sleeps between looks, comes back early (0) when the run is to stop:
 * ask run_stopping(). */
int gpu_wait(const struct gpu_event *event);
/* All that is queued, in the same manner. */
int gpu_drain(struct gpu_queue *queue);
/* Between two looks at an event. */
void gpu_pause(void);
/* Copies, and waits for that. The host's memory need not be pinned. */
int gpu_upload(struct gpu_queue *queue, const struct gpu_memory *to, uint64_t offset,
               const void *from, uint64_t bytes);
int gpu_download(struct gpu_queue *queue, const struct gpu_memory *from, uint64_t offset, void *to,
                 uint64_t bytes);

#endif
