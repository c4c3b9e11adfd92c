/* Copies between the host and a device, and between two devices, by the driver. */
#ifndef GPU_BENCH_TRANSFERS_H
#define GPU_BENCH_TRANSFERS_H

#include "gpu.h"

struct transfer_kind {
    struct gpu_kind kind; /* what the table has; first, so that it leads back here */
    bool to_device, to_host;
};

extern const struct transfer_kind transfer_host_to_device, transfer_device_to_host,
    transfer_bidirectional;

#endif
