#define _GNU_SOURCE
#include "nvml.h"

#include "shared_library.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct library_symbol symbols[] = {
#define NVML_SYMBOL(name, parameters) {#name, offsetof(struct nvml_api, name), false},
#define NVML_OPTIONAL_SYMBOL(name, parameters) {#name, offsetof(struct nvml_api, name), true},
    NVML_ENTRY_POINTS(NVML_SYMBOL) NVML_OPTIONAL_ENTRY_POINTS(NVML_OPTIONAL_SYMBOL)
#undef NVML_SYMBOL
#undef NVML_OPTIONAL_SYMBOL
        {"nvmlErrorString", offsetof(struct nvml_api, nvmlErrorString), true},
};

static const struct nvml_api *nvml_api_load(const char **why)
{
    static struct nvml_api api;
    static struct shared_library library = {.file = "libnvidia-ml.so.1"};
    bool loaded = shared_library_load(&library, symbols, sizeof symbols / sizeof *symbols, &api);
    *why = library.why;
    return loaded ? &api : NULL;
}

/* ---- what failed ---------------------------------------------------------------------------- */

/* What is worth more than NVML's own word for it. */
static const char *remedy(int result)
{
    switch (result) {
    case NVML_ERROR_NO_PERMISSION:
        return ": let this user or container read /dev/nvidiactl and the card's device file";
    case NVML_ERROR_DRIVER_NOT_LOADED:
        return ": load the kernel module (modprobe nvidia)";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        return ": the driver was updated since the kernel module was loaded, restart the host";
    default:
        return "";
    }
}

static void describe(const struct nvml_api *api, char *why, size_t size, const char *call,
                     int result)
{
    const char *text = api->nvmlErrorString ? api->nvmlErrorString(result) : NULL;
    snprintf(why, size, "%s: %s (%d)%s", call, text ? text : "no text", result, remedy(result));
}

enum { ABSENT = -1 }; /* the driver has no such call */

/* Whether the call gave a value. Notes the first call that fails. */
static bool succeeded(struct nvml *nvml, const char *call, int result)
{
    if (result == NVML_SUCCESS)
        return true;
    nvml->lost |= result == NVML_ERROR_GPU_IS_LOST;
    if (nvml->why[0])
        return false;
    if (result == ABSENT)
        snprintf(nvml->why, sizeof nvml->why, "libnvidia-ml.so.1 has no %s", call);
    else
        describe(nvml->api, nvml->why, sizeof nvml->why, call, result);
    return false;
}

#define READ(nvml, call, ...)                                                                      \
    succeeded(nvml, #call,                                                                         \
              (nvml)->api->call ? (nvml)->api->call((nvml)->handle, __VA_ARGS__) : ABSENT)

/* ---- the card ------------------------------------------------------------------------------- */

static const struct nvml_api *begin(char *why, size_t size)
{
    const char *missing;
    const struct nvml_api *api = nvml_api_load(&missing);
    why[0] = '\0';
    if (!api) {
        snprintf(why, size, "%s", missing);
        return NULL;
    }
    int result = api->nvmlInit_v2();
    if (result != NVML_SUCCESS) {
        describe(api, why, size, "nvmlInit_v2", result);
        return NULL;
    }
    return api;
}

bool nvml_driver(char *version, size_t version_size, char *why, size_t size)
{
    const struct nvml_api *api = begin(why, size);
    if (!api)
        return false;
    int result = api->nvmlSystemGetDriverVersion
                     ? api->nvmlSystemGetDriverVersion(version, (unsigned)version_size)
                     : ABSENT;
    if (result != NVML_SUCCESS)
        describe(api, why, size, "nvmlSystemGetDriverVersion", result);
    api->nvmlShutdown();
    return result == NVML_SUCCESS;
}

/* The order of NVML's indices is another than CUDA's, and CUDA_VISIBLE_DEVICES changes CUDA's: only
 * the place on the bus and the UUID name the same card to both. A part of a card (MIG) has its card's
 * place, and no sensors of its own. */
static bool find(struct nvml *nvml, const struct gpu_device *device, char *why, size_t size)
{
    int result = NVML_ERROR_NOT_FOUND;
    nvml->part = !strncmp(device->uuid, "MIG-", 4);
    if (device->pci[0])
        result = nvml->api->nvmlDeviceGetHandleByPciBusId_v2(device->pci, &nvml->handle);
    if (result != NVML_SUCCESS && device->uuid[0] && !nvml->part)
        result = nvml->api->nvmlDeviceGetHandleByUUID(device->uuid, &nvml->handle);
    if (result == NVML_SUCCESS)
        return true;
    char call[160];
    snprintf(call, sizeof call, "no card at PCI %s nor with the UUID %s",
             device->pci[0] ? device->pci : "(unknown)",
             device->uuid[0] ? device->uuid : "(unknown)");
    describe(nvml->api, why, size, call, result);
    return false;
}

/* Containers and some cards do without: no reason to do without the sensors. */
static void watch(struct nvml *nvml)
{
    const struct nvml_api *api = nvml->api;
    if (!api->nvmlEventSetCreate || !api->nvmlDeviceRegisterEvents || !api->nvmlEventSetWait_v2 ||
        !api->nvmlEventSetFree || api->nvmlEventSetCreate(&nvml->events) != NVML_SUCCESS) {
        nvml->events = NULL;
        return;
    }
    /* Cards without ECC refuse both kinds at once. */
    if (api->nvmlDeviceRegisterEvents(nvml->handle, NVML_EVENT_XID | NVML_EVENT_DOUBLE_BIT_ECC,
                                      nvml->events) == NVML_SUCCESS ||
        api->nvmlDeviceRegisterEvents(nvml->handle, NVML_EVENT_XID, nvml->events) == NVML_SUCCESS)
        return;
    api->nvmlEventSetFree(nvml->events);
    nvml->events = NULL;
}

bool nvml_open(struct nvml *nvml, const struct gpu_device *device, char *why, size_t size)
{
    *nvml = (struct nvml){.api = begin(why, size)};
    if (!nvml->api)
        return false;
    if (!find(nvml, device, why, size)) {
        nvml->api->nvmlShutdown();
        nvml->api = NULL;
        return false;
    }
    if (!nvml->api->nvmlSystemGetDriverVersion ||
        nvml->api->nvmlSystemGetDriverVersion(nvml->driver, sizeof nvml->driver) != NVML_SUCCESS)
        nvml->driver[0] = '\0';
    watch(nvml);
    return true;
}

void nvml_close(struct nvml *nvml)
{
    if (!nvml->api)
        return;
    if (nvml->events)
        nvml->api->nvmlEventSetFree(nvml->events);
    nvml->api->nvmlShutdown();
    nvml->api = NULL;
}

/* ---- what changes --------------------------------------------------------------------------- */

static double clock_hertz(struct nvml *nvml, int clock)
{
    unsigned megahertz;
    return READ(nvml, nvmlDeviceGetClockInfo, clock, &megahertz) ? megahertz * 1e6 : NAN;
}

/* Power now. nvmlDeviceGetPowerUsage reports the mean of the last second on Ampere and later, but
 * for GA100 (NVML API reference), so it is only called where there is no such field. */
static double power_watts(struct nvml *nvml)
{
    struct nvml_field field = {.id = NVML_FIELD_POWER_INSTANT};
    unsigned milliwatts;
    if (nvml->api->nvmlDeviceGetFieldValues &&
        nvml->api->nvmlDeviceGetFieldValues(nvml->handle, 1, &field) == NVML_SUCCESS &&
        field.result == NVML_SUCCESS && field.value_type == NVML_VALUE_UNSIGNED_INT)
        return field.value.as_unsigned * 1e-3;
    return READ(nvml, nvmlDeviceGetPowerUsage, &milliwatts) ? milliwatts * 1e-3 : NAN;
}

static bool throttle_reasons(struct nvml *nvml, uint64_t *reasons)
{
    unsigned long long bits;
    bool known = nvml->api->nvmlDeviceGetCurrentClocksEventReasons
                     ? READ(nvml, nvmlDeviceGetCurrentClocksEventReasons, &bits)
                     : READ(nvml, nvmlDeviceGetCurrentClocksThrottleReasons, &bits);
    *reasons = known ? bits : 0;
    return known;
}

struct nvml_reading nvml_read(struct nvml *nvml)
{
    unsigned celsius;
    unsigned long long millijoules;
    struct nvml_reading reading = {
        .clock_hertz = clock_hertz(nvml, NVML_CLOCK_SM),
        .memory_clock_hertz = clock_hertz(nvml, NVML_CLOCK_MEM),
        .power_watts = power_watts(nvml),
        .energy_joules = NAN,
        .temperature_celsius = NAN,
    };
    if (READ(nvml, nvmlDeviceGetTotalEnergyConsumption, &millijoules))
        reading.energy_joules = (double)millijoules * 1e-3;
    if (READ(nvml, nvmlDeviceGetTemperature, NVML_TEMPERATURE_GPU, &celsius))
        reading.temperature_celsius = celsius;
    reading.reasons_known = throttle_reasons(nvml, &reading.reasons);
    return reading;
}

bool nvml_next_event(struct nvml *nvml, struct nvml_event *event)
{
    return nvml->events && nvml->api->nvmlEventSetWait_v2(nvml->events, event, 0) == NVML_SUCCESS;
}

/* ---- what hardly does ----------------------------------------------------------------------- */

int64_t nvml_ecc_errors(struct nvml *nvml)
{
    unsigned long long errors;
    bool known = nvml->api->nvmlDeviceGetTotalEccErrors &&
                 nvml->api->nvmlDeviceGetTotalEccErrors(nvml->handle, NVML_MEMORY_ERROR_UNCORRECTED,
                                                        NVML_ECC_VOLATILE, &errors) == NVML_SUCCESS;
    return known ? (int64_t)errors : -1; /* cards without ECC refuse */
}

static unsigned number(struct nvml *nvml, int (*call)(nvml_handle, unsigned *))
{
    unsigned value;
    return call && call(nvml->handle, &value) == NVML_SUCCESS ? value : 0;
}

struct nvml_link nvml_link(struct nvml *nvml)
{
    const struct nvml_api *api = nvml->api;
    return (struct nvml_link){
        .generation = number(nvml, api->nvmlDeviceGetCurrPcieLinkGeneration),
        .lanes = number(nvml, api->nvmlDeviceGetCurrPcieLinkWidth),
        .generation_max = number(nvml, api->nvmlDeviceGetMaxPcieLinkGeneration),
        .lanes_max = number(nvml, api->nvmlDeviceGetMaxPcieLinkWidth),
    };
}
