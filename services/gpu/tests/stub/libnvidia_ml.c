/* Stands in for libnvidia-ml.so.1; stub.h describes what it does. Sensors depend on the card and on
 * how often they were read, so that a reader of the wrong card or of stale values is found out. */
#define _GNU_SOURCE
#include "nvml.h"
#include "stub.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define ENTER                                                                                      \
    do {                                                                                           \
        int code_ = stub_call(__func__);                                                           \
        if (code_)                                                                                 \
            return code_;                                                                          \
    } while (0)
#define ENTER_SENSOR                                                                               \
    do {                                                                                           \
        ENTER;                                                                                     \
        if (stub_number("STUB_SILENT", 0))                                                         \
            return NVML_ERROR_NOT_SUPPORTED;                                                       \
    } while (0)

#define DECLARE(name, parameters) EXPORT int name parameters;
NVML_ENTRY_POINTS(DECLARE)
NVML_OPTIONAL_ENTRY_POINTS(DECLARE)
EXPORT const char *nvmlErrorString(int result);

/* A handle is the number of its card, plus one. */
static nvml_handle handle_of(int card)
{
    return (nvml_handle)(uintptr_t)(card + 1);
}

static unsigned card_of(nvml_handle device)
{
    return (unsigned)(uintptr_t)device - 1;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

const char *nvmlErrorString(int result)
{
    switch (result) {
    case NVML_ERROR_NOT_SUPPORTED:
        return "Not Supported";
    case NVML_ERROR_NOT_FOUND:
        return "Not Found";
    case NVML_ERROR_GPU_IS_LOST:
        return "GPU is lost";
    default:
        return "Some Error";
    }
}

int nvmlInit_v2(void)
{
    ENTER;
    stub_keep("nvml", 1);
    return NVML_SUCCESS;
}

int nvmlShutdown(void)
{
    ENTER;
    stub_keep("nvml", -1);
    return NVML_SUCCESS;
}

int nvmlSystemGetDriverVersion(char *version, unsigned size)
{
    ENTER;
    snprintf(version, size, "550.54.14");
    return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, nvml_handle *device)
{
    char own[32];
    ENTER;
    for (int card = 0; card < stub_number("STUB_CARDS", 1); card++) {
        stub_pci(card, own, sizeof own);
        if (strcasecmp(own, pci))
            continue;
        *device = handle_of(card);
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, nvml_handle *device)
{
    ENTER;
    unsigned card;
    if (sscanf(uuid, "GPU-000000%02x-", &card) != 1)
        return NVML_ERROR_NOT_FOUND;
    *device = handle_of((int)card);
    return NVML_SUCCESS;
}

int nvmlDeviceGetClockInfo(nvml_handle device, int clock, unsigned *megahertz)
{
    static atomic_uint times;
    ENTER_SENSOR;
    *megahertz = clock == NVML_CLOCK_MEM
                     ? 2000 + card_of(device)
                     : 1000 + 10 * card_of(device) + atomic_fetch_add(&times, 1) % 3;
    return NVML_SUCCESS;
}

int nvmlDeviceGetTemperature(nvml_handle device, int sensor, unsigned *celsius)
{
    ENTER_SENSOR;
    *celsius = 40 + card_of(device) + (unsigned)sensor;
    return NVML_SUCCESS;
}

/* The mean of the last second, which no caller should take for the power now. */
int nvmlDeviceGetPowerUsage(nvml_handle device, unsigned *milliwatts)
{
    ENTER_SENSOR;
    *milliwatts = 50000 + card_of(device);
    return NVML_SUCCESS;
}

int nvmlDeviceGetFieldValues(nvml_handle device, int count, struct nvml_field *fields)
{
    ENTER_SENSOR;
    for (int i = 0; i < count; i++) {
        fields[i].result = fields[i].id == 186 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
        fields[i].value_type = 1;
        fields[i].value.as_unsigned = 300000 + 1000 * card_of(device);
    }
    return NVML_SUCCESS;
}

int nvmlDeviceGetTotalEnergyConsumption(nvml_handle device, unsigned long long *millijoules)
{
    ENTER_SENSOR;
    *millijoules = (unsigned long long)(seconds() * (300000 + 1000 * card_of(device)));
    return NVML_SUCCESS;
}

int nvmlDeviceGetCurrentClocksEventReasons(nvml_handle device, unsigned long long *reasons)
{
    ENTER_SENSOR;
    (void)device;
    *reasons = (unsigned long long)stub_number("STUB_REASONS", 0);
    return NVML_SUCCESS;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(nvml_handle device, unsigned long long *reasons)
{
    ENTER_SENSOR;
    (void)device;
    *reasons = (unsigned long long)stub_number("STUB_REASONS", 0);
    return NVML_SUCCESS;
}

int nvmlDeviceGetCurrPcieLinkGeneration(nvml_handle device, unsigned *generation)
{
    ENTER_SENSOR;
    (void)device;
    *generation = 4;
    return NVML_SUCCESS;
}

int nvmlDeviceGetCurrPcieLinkWidth(nvml_handle device, unsigned *lanes)
{
    ENTER_SENSOR;
    (void)device;
    *lanes = 8;
    return NVML_SUCCESS;
}

int nvmlDeviceGetMaxPcieLinkGeneration(nvml_handle device, unsigned *generation)
{
    ENTER_SENSOR;
    (void)device;
    *generation = 5;
    return NVML_SUCCESS;
}

int nvmlDeviceGetMaxPcieLinkWidth(nvml_handle device, unsigned *lanes)
{
    ENTER_SENSOR;
    (void)device;
    *lanes = 16;
    return NVML_SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(nvml_handle device, int kind, int counter,
                                unsigned long long *errors)
{
    static atomic_long times;
    ENTER_SENSOR;
    (void)device, (void)counter;
    *errors =
        kind == 1
            ? 7 + (unsigned long long)(atomic_fetch_add(&times, 1) * stub_number("STUB_ECC", 0))
            : 1000;
    return NVML_SUCCESS;
}

/* ---- events --------------------------------------------------------------------------------- */

int nvmlEventSetCreate(nvml_event_set *set)
{
    ENTER;
    *set = malloc(1);
    stub_keep("event set", 1);
    return NVML_SUCCESS;
}

int nvmlDeviceRegisterEvents(nvml_handle device, unsigned long long types, nvml_event_set set)
{
    ENTER;
    (void)device, (void)set;
    return types & NVML_EVENT_XID ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

int nvmlEventSetWait_v2(nvml_event_set set, struct nvml_event *event, unsigned wait_ms)
{
    static atomic_long times;
    long nth = 0, number = 0;
    const char *xid = getenv("STUB_XID");
    ENTER;
    (void)set;
    if (wait_ms == 0 && xid && sscanf(xid, "%ld:%ld", &nth, &number) == 2 &&
        atomic_fetch_add(&times, 1) + 1 == nth) {
        *event = (struct nvml_event){.type = NVML_EVENT_XID, .data = (unsigned long long)number};
        return NVML_SUCCESS;
    }
    return NVML_ERROR_TIMEOUT;
}

int nvmlEventSetFree(nvml_event_set set)
{
    ENTER;
    free(set);
    stub_keep("event set", -1);
    return NVML_SUCCESS;
}
