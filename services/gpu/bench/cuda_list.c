#define _GNU_SOURCE
#include "cuda_list.h"

#include "cuda_error.h"
#include "nvml.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The oldest CUDA that the embedded machine code is for. Its compiler is of CUDA 12, and code of one
 * major version runs on every driver of that version: CUDA Compatibility guide, "minor version
 * compatibility", which names driver 525 for CUDA 12. */
enum { CUDA_VERSION_LEAST = 12000 };

/* ---- the report of the search --------------------------------------------------------------- */

static void __attribute__((format(printf, 2, 3))) add(char looked[GPU_LOOKED_MAX],
                                                      const char *format, ...)
{
    size_t length = strlen(looked);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(looked + length, GPU_LOOKED_MAX - length, format, arguments);
    va_end(arguments);
}

/* Containers and job schedulers set it, and then it hides cards. */
static void add_visible(char looked[GPU_LOOKED_MAX])
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible)
        add(looked, "; CUDA_VISIBLE_DEVICES=\"%.64s\"", visible);
}

/* ---- one device ----------------------------------------------------------------------------- */

/* Calls whose failure leaves the device out; the first one is kept. */
struct query {
    const struct cuda_api *api;
    cuda_device device;
    const char *call;
    int code;
};

static bool ok(struct query *query, const char *call, int code)
{
    if (code != CUDA_SUCCESS && query->code == CUDA_SUCCESS) {
        query->call = call;
        query->code = code;
    }
    return code == CUDA_SUCCESS;
}

/* 0 where this driver does not know the attribute. */
static unsigned attribute(struct query *query, enum cuda_device_attribute which)
{
    int value = 0;
    int code = query->api->cuDeviceGetAttribute(&value, (int)which, query->device);
    if (code == CUDA_ERROR_INVALID_VALUE || !ok(query, "cuDeviceGetAttribute", code))
        return 0;
    return value > 0 ? (unsigned)value : 0;
}

static void write_uuid(const struct cuda_uuid *uuid, const char *prefix, char *text, size_t size)
{
    const unsigned char *b = uuid->bytes;
    snprintf(text, size, "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             prefix, b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11],
             b[12], b[13], b[14], b[15]);
}

/* Of a part of a card (MIG) the newer call gives the part's own, the older one the card's. */
static void query_uuid(struct query *query, struct gpu_device *device)
{
    const struct cuda_api *api = query->api;
    struct cuda_uuid card, own;
    bool has_card = api->cuDeviceGetUuid &&
                    ok(query, "cuDeviceGetUuid", api->cuDeviceGetUuid(&card, query->device));
    bool has_own = api->cuDeviceGetUuid_v2 &&
                   ok(query, "cuDeviceGetUuid_v2", api->cuDeviceGetUuid_v2(&own, query->device));
    bool part = has_card && has_own && memcmp(&own, &card, sizeof own) != 0;
    if (has_card || has_own)
        write_uuid(has_own ? &own : &card, part ? "MIG" : "GPU", device->uuid, sizeof device->uuid);
}

static void query_pci(struct query *query, struct gpu_device *device)
{
    int code = query->api->cuDeviceGetPCIBusId(device->pci, (int)sizeof device->pci, query->device);
    if (!ok(query, "cuDeviceGetPCIBusId", code))
        device->pci[0] = '\0';
    for (char *at = device->pci; *at; at++)
        *at = (char)tolower((unsigned char)*at);
}

static void query_sizes(struct query *query, struct gpu_device *device)
{
    size_t bytes = 0;
    ok(query, "cuDeviceTotalMem_v2", query->api->cuDeviceTotalMem_v2(&bytes, query->device));
    device->memory_bytes = bytes;
    device->cc_major = (int)attribute(query, CUDA_DEVICE_COMPUTE_CAPABILITY_MAJOR);
    device->cc_minor = (int)attribute(query, CUDA_DEVICE_COMPUTE_CAPABILITY_MINOR);
    device->compute_units = attribute(query, CUDA_DEVICE_MULTIPROCESSORS);
    device->clock_hertz = attribute(query, CUDA_DEVICE_CLOCK_KILOHERTZ) * 1e3;
    device->memory_clock_hertz = attribute(query, CUDA_DEVICE_MEMORY_CLOCK_KILOHERTZ) * 1e3;
    device->bus_width_bits = attribute(query, CUDA_DEVICE_MEMORY_BUS_BITS);
    device->l2_bytes = attribute(query, CUDA_DEVICE_L2_BYTES);
    device->group_size_max = attribute(query, CUDA_DEVICE_GROUP_SIZE_MAX);
    device->shared_bytes = attribute(query, CUDA_DEVICE_SHARED_BYTES_MAX);
    device->ecc = attribute(query, CUDA_DEVICE_ECC_ENABLED) > 0;
    device->unified = attribute(query, CUDA_DEVICE_INTEGRATED) > 0;
}

static bool describe(const struct cuda_api *api, int ordinal, struct gpu_device *device,
                     char looked[GPU_LOOKED_MAX])
{
    struct query query = {.api = api};
    *device = (struct gpu_device){
        .ordinal = ordinal, .type = GPU_IS_GPU, .vendor = "NVIDIA", .fp64 = true, .fp16 = true};
    if (ok(&query, "cuDeviceGet", api->cuDeviceGet(&query.device, ordinal))) {
        int size = (int)sizeof device->name;
        ok(&query, "cuDeviceGetName", api->cuDeviceGetName(device->name, size, query.device));
        query_uuid(&query, device);
        query_pci(&query, device);
        query_sizes(&query, device);
    }
    if (query.code != CUDA_SUCCESS) {
        char line[320];
        cuda_error_line(api, query.call, query.code, line, sizeof line);
        add(looked, "; device %d is left out: %s", ordinal, line);
        return false;
    }
    if (device->cc_major && device->compute_units)
        return true;
    add(looked, "; device %d is left out: the driver does not report its %s", ordinal,
        device->cc_major ? "multiprocessors" : "compute capability");
    return false;
}

/* ---- all of them ---------------------------------------------------------------------------- */

/* The driver's own version; NVML is the only one to tell it, and is not always there. */
static void driver_version(int cuda_version, char *driver, size_t size)
{
    char why[256];
    if (!nvml_driver(driver, size, why, sizeof why))
        snprintf(driver, size, "CUDA %d.%d", cuda_version / 1000, cuda_version % 1000 / 10);
}

static bool begin(const struct cuda_api *api, int *version, int *count, char looked[GPU_LOOKED_MAX])
{
    const char *call = "cuInit";
    int code = api->cuInit(0);
    if (code == CUDA_SUCCESS) {
        call = "cuDriverGetVersion";
        code = api->cuDriverGetVersion(version);
    }
    if (code == CUDA_SUCCESS && *version < CUDA_VERSION_LEAST) {
        add(looked,
            "libcuda.so.1 is of CUDA %d.%d, too old for the program's kernels: install driver 525 "
            "(CUDA %d.%d) or newer",
            *version / 1000, *version % 1000 / 10, CUDA_VERSION_LEAST / 1000,
            CUDA_VERSION_LEAST % 1000 / 10);
        return false;
    }
    if (code == CUDA_SUCCESS) {
        call = "cuDeviceGetCount";
        code = api->cuDeviceGetCount(count);
    }
    if (code == CUDA_SUCCESS)
        return true;
    cuda_error_line(api, call, code, looked, GPU_LOOKED_MAX);
    add_visible(looked);
    return false;
}

void cuda_list(struct gpu_list *list, char looked[GPU_LOOKED_MAX])
{
    const char *why;
    char driver[sizeof list->devices->driver];
    int version = 0, count = 0;
    const struct cuda_api *api = cuda_api_load(&why);
    looked[0] = '\0';
    if (!api) {
        add(looked, "%s", why);
        return;
    }
    if (!begin(api, &version, &count, looked))
        return;
    driver_version(version, driver, sizeof driver);
    add(looked, "libcuda.so.1 (CUDA %d.%d) has %d %s", version / 1000, version % 1000 / 10, count,
        count == 1 ? "device" : "devices");
    add_visible(looked);
    for (int i = 0; i < count && list->count < GPU_DEVICES_MAX; i++) {
        struct gpu_device *device = &list->devices[list->count];
        if (!describe(api, i, device, looked))
            continue;
        snprintf(device->driver, sizeof device->driver, "%s", driver);
        list->count++;
    }
}
