/* Arrays in the memory of a device: how large they are, and whether there is room for them. */
#ifndef GPU_BENCH_ARRAYS_H
#define GPU_BENCH_ARRAYS_H

#include "gpu.h"

enum {
    ARRAYS_BYTES_LEAST = 512 << 20, /* of an array whose size is auto, where there is room */
};

struct arrays_demand {
    unsigned arrays;      /* on the device */
    unsigned host_arrays; /* on the host, as large */
    struct gpu *peer;     /* that has as many arrays as the device; NULL: none */
    uint64_t granule;     /* a size is a multiple of it */
    const char *granule_name;
    uint64_t beside_bytes; /* on the device, whatever the size */
    double beside_ratio;   /* … and for each byte of an array */
    uint64_t wanted_bytes; /* where size_bytes is a word, if there is room */
    uint64_t modest_bytes; /* … and where there is none for these; 0: as much as fits */
};

/* Four times the L2 cache of this device and at least 512 MiB. */
uint64_t arrays_bytes_wanted(const struct gpu_device *device);
/* Of arrays that are passed over again and again: 2 GiB and at least the above, where a GPU's memory
 * has 16 GiB or more. Less: as above. */
uint64_t arrays_bytes_to_stream(const struct gpu_device *device);
/* Settles the parameter size_bytes, the bytes of one array: a number is held against what is free,
 * a word becomes a number that fits. Nothing is allocated. 0 or an exit_code with its reason. */
int arrays_settle(struct gpu_job *job, const struct arrays_demand *demand, uint64_t *bytes);
/* Warns where so many bytes, over and over again, come from the L2 cache in part. */
void arrays_warn_of_cache(struct gpu_job *job, uint64_t bytes);

/* Whether a part of an array holds contents_word() of this seed, read back and looked at on the
 * host; of any size. `what` names the array. 0 or an exit_code with its reason. */
int arrays_check(struct gpu_job *job, struct gpu_queue *queue, const struct gpu_memory *memory,
                 uint64_t offset, uint64_t bytes, uint32_t seed, const char *what);
/* Fills an array from the host with contents_word(). */
int arrays_fill(struct gpu_job *job, struct gpu_queue *queue, const struct gpu_memory *memory,
                uint32_t seed);
/* Says which word of `what` is wrong; EXIT_WRONG. */
int arrays_wrong(struct gpu_job *job, const char *what, uint64_t place, uint32_t found,
                 uint32_t wanted);

#endif
