/* Every device that some backend finds, each once: its index is its place here. */
#ifndef GPU_BENCH_DEVICES_H
#define GPU_BENCH_DEVICES_H

#include "device.h"

enum { GPU_BACKENDS = 2 };

/* What different backends say of one device; the first is the one to prefer. */
struct device_entry {
    struct gpu_device by[GPU_BACKENDS];
    unsigned count;
};

struct device_list {
    struct device_entry entries[GPU_DEVICES_MAX];
    size_t count;
    char looked[GPU_BACKENDS][GPU_LOOKED_MAX]; /* in the order of preference */
};

enum device_answer { DEVICE_FOUND, DEVICE_UNSUPPORTED, DEVICE_UNKNOWN };

/* Asks each driver once. Another one is loaded by that, which starts threads, takes memory, and may
 * crash or hang: a trial asks no more of them than it needs. */
const struct device_list *devices_here(void);
/* … no driver behind that of this backend. An index is the same in both. */
const struct device_list *devices_of(const struct gpu_backend *backend);
/* The device that is meant: `device` is auto, an index, a UUID or a PCI address; `backend` is auto or
 * a name. Unsupported: there is no such thing on this host; unknown: there are others. In both cases
 * `why` says what was looked for and found. A device that CUDA has is chosen without a look at
 * OpenCL's. */
enum device_answer devices_choose(const char *device, const char *backend,
                                  const struct gpu_device **chosen, char *why, size_t size);
/* Its index; it stands in a list of the functions above. */
size_t devices_index(const struct gpu_device *device);
/* Whether it has this compute capability, by CUDA or as another backend's entry of such a card; it
 * stands in a list of the functions above. */
bool devices_has_capability(const struct gpu_device *device, int major, int minor);
/* --list-devices; the exit code. */
int devices_print(void);

#endif
