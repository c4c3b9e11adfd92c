#include "facts.h"

#include <inttypes.h>
#include <stdio.h>

static void count_fact(struct run *run, const char *name, uint64_t count)
{
    char text[32] = "";
    if (count)
        snprintf(text, sizeof text, "%" PRIu64, count);
    run_fact(run, name, text);
}

static const char *type_name(enum gpu_type type)
{
    return type == GPU_IS_GPU ? "gpu" : type == GPU_IS_CPU ? "cpu" : "other";
}

void facts_of_device(struct run *run, const struct gpu_device *device)
{
    char capability[24] = "";
    if (device->cc_major)
        snprintf(capability, sizeof capability, "%d.%d", device->cc_major, device->cc_minor);
    run_fact(run, "device_name", device->name);
    run_fact(run, "device_type", type_name(device->type));
    run_fact(run, "device_uuid", device->uuid);
    run_fact(run, "pci", device->pci);
    run_fact(run, "vendor", device->vendor);
    run_fact(run, "driver", device->driver);
    run_fact(run, "compute_capability", capability);
    count_fact(run, "compute_units", device->compute_units);
    count_fact(run, "l2_bytes", device->l2_bytes);
    count_fact(run, "memory_bytes", device->memory_bytes);
    if (device->type != GPU_IS_GPU)
        run_warning(run, "not_a_gpu",
                    "%s is not a GPU: the trial shows that the workload works, and its figure says "
                    "nothing about a GPU",
                    device->name);
}

void facts_of_kernel(struct run *run, const struct gpu_kernel *kernel)
{
    char text[sizeof kernel->name + sizeof kernel->build + 2];
    snprintf(text, sizeof text, "%s, %s", kernel->name, kernel->build);
    run_fact(run, "kernel", text);
    if (kernel->by_the_driver && kernel->gpu->device.cc_major)
        run_warning(run, "ptx",
                    "the driver compiled %s from PTX for this device: its instructions are not "
                    "those that were checked, a build with kernels for it is",
                    kernel->name);
}
