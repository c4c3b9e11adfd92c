/* The part of NVML (libnvidia-ml.so.1) that this program reads, found at run time. Nothing is ever
 * set through it: clocks, power limits and modes of a card are its owner's.
 *
 * Types, values and entry points are those of the NVML API reference (docs.nvidia.com,
 * deploy/nvml-api) and were compared with NVIDIA/go-nvml's gen/nvml/nvml.h. */
#ifndef GPU_BENCH_NVML_H
#define GPU_BENCH_NVML_H

#include "device.h"

typedef struct nvmlDevice_st *nvml_handle;
typedef struct nvmlEventSet_st *nvml_event_set;

/* nvmlReturn_t: what this program tells apart. */
enum nvml_result {
    NVML_SUCCESS = 0,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
};

enum {
    NVML_CLOCK_SM = 1,
    NVML_CLOCK_MEM = 2, /* nvmlClockType_t */
    NVML_TEMPERATURE_GPU = 0,
    NVML_MEMORY_ERROR_UNCORRECTED = 1,
    NVML_ECC_VOLATILE = 0, /* since the driver was loaded */
    NVML_FIELD_POWER_INSTANT = 186,
    NVML_VALUE_UNSIGNED_INT = 1, /* nvmlValueType_t */
    NVML_EVENT_DOUBLE_BIT_ECC = 2,
    NVML_EVENT_XID = 8,
};

/* nvmlClocksEventReason…, formerly nvmlClocksThrottleReason… */
enum {
    NVML_REASON_IDLE = 0x1,
    NVML_REASON_APPLICATIONS_CLOCKS = 0x2,
    NVML_REASON_SW_POWER_CAP = 0x4,
    NVML_REASON_HW_SLOWDOWN = 0x8,
    NVML_REASON_SYNC_BOOST = 0x10,
    NVML_REASON_SW_THERMAL = 0x20,
    NVML_REASON_HW_THERMAL = 0x40,
    NVML_REASON_HW_POWER_BRAKE = 0x80,
    NVML_REASON_DISPLAY_CLOCKS = 0x100,
};

/* nvmlFieldValue_t: 40 bytes */
struct nvml_field {
    unsigned id, scope;
    long long timestamp_us, latency_us;
    unsigned value_type;
    int result;
    union {
        double as_double;
        unsigned as_unsigned;
        unsigned long long as_unsigned_long_long;
    } value;
};

/* nvmlEventData_t of nvmlEventSetWait_v2: 32 bytes */
struct nvml_event {
    nvml_handle device;
    unsigned long long type;
    unsigned long long data; /* the Xid's number */
    unsigned gpu_instance, compute_instance;
};

_Static_assert(sizeof(struct nvml_field) == 40, "as NVML lays it out");
_Static_assert(sizeof(struct nvml_event) == 32, "as NVML lays it out");

#define NVML_ENTRY_POINTS(ENTRY)                                                                   \
    ENTRY(nvmlInit_v2, (void))                                                                     \
    ENTRY(nvmlShutdown, (void))                                                                    \
    ENTRY(nvmlDeviceGetHandleByPciBusId_v2, (const char *pci, nvml_handle *device))                \
    ENTRY(nvmlDeviceGetHandleByUUID, (const char *uuid, nvml_handle *device))

/* Each is a sensor or a fact for itself, and null where the driver lacks it: an old one the energy or
 * the fields, a new one what is deprecated today. */
#define NVML_OPTIONAL_ENTRY_POINTS(ENTRY)                                                          \
    ENTRY(nvmlSystemGetDriverVersion, (char *version, unsigned size))                              \
    ENTRY(nvmlDeviceGetClockInfo, (nvml_handle device, int clock, unsigned *megahertz))            \
    ENTRY(nvmlDeviceGetTemperature, (nvml_handle device, int sensor, unsigned *celsius))           \
    ENTRY(nvmlDeviceGetPowerUsage, (nvml_handle device, unsigned *milliwatts))                     \
    ENTRY(nvmlDeviceGetFieldValues, (nvml_handle device, int count, struct nvml_field *fields))    \
    ENTRY(nvmlDeviceGetTotalEnergyConsumption,                                                     \
          (nvml_handle device, unsigned long long *millijoules))                                   \
    ENTRY(nvmlDeviceGetCurrentClocksEventReasons,                                                  \
          (nvml_handle device, unsigned long long *reasons))                                       \
    ENTRY(nvmlDeviceGetCurrentClocksThrottleReasons,                                               \
          (nvml_handle device, unsigned long long *reasons))                                       \
    ENTRY(nvmlDeviceGetCurrPcieLinkGeneration, (nvml_handle device, unsigned *generation))         \
    ENTRY(nvmlDeviceGetCurrPcieLinkWidth, (nvml_handle device, unsigned *lanes))                   \
    ENTRY(nvmlDeviceGetMaxPcieLinkGeneration, (nvml_handle device, unsigned *generation))          \
    ENTRY(nvmlDeviceGetMaxPcieLinkWidth, (nvml_handle device, unsigned *lanes))                    \
    ENTRY(nvmlDeviceGetTotalEccErrors,                                                             \
          (nvml_handle device, int kind, int counter, unsigned long long *errors))                 \
    ENTRY(nvmlEventSetCreate, (nvml_event_set * set))                                              \
    ENTRY(nvmlDeviceRegisterEvents,                                                                \
          (nvml_handle device, unsigned long long types, nvml_event_set set))                      \
    ENTRY(nvmlEventSetWait_v2, (nvml_event_set set, struct nvml_event * event, unsigned wait_ms))  \
    ENTRY(nvmlEventSetFree, (nvml_event_set set))

struct nvml_api {
#define NVML_MEMBER(name, parameters) int(*name) parameters;
    NVML_ENTRY_POINTS(NVML_MEMBER)
    NVML_OPTIONAL_ENTRY_POINTS(NVML_MEMBER)
#undef NVML_MEMBER
    /* Not a call with a result. */
    const char *(*nvmlErrorString)(int result);
};

/* A card's sensors. */
struct nvml {
    const struct nvml_api *api;
    nvml_handle handle;
    nvml_event_set events; /* NULL: this driver or card tells of none */
    bool part;             /* the device is a part (MIG) of the card that the sensors are of */
    bool lost;             /* NVML says that the card is gone */
    char driver[64];
    char why[200]; /* of the first sensor that failed; "": none has */
};

/* NaN and 0: no such sensor, or it failed this time. */
struct nvml_reading {
    double clock_hertz, memory_clock_hertz, power_watts, energy_joules, temperature_celsius;
    bool reasons_known;
    uint64_t reasons;
};

/* What the link is now and could be; 0: unknown. */
struct nvml_link {
    unsigned generation, lanes, generation_max, lanes_max;
};

/* false: *why says in one line what was looked for and found (`size` bytes). */
bool nvml_open(struct nvml *nvml, const struct gpu_device *device, char *why, size_t size);
void nvml_close(struct nvml *nvml);
/* The version of the driver alone; false: *why as above. */
bool nvml_driver(char *version, size_t version_size, char *why, size_t size);
struct nvml_reading nvml_read(struct nvml *nvml);
struct nvml_link nvml_link(struct nvml *nvml);
/* Uncorrected errors since the driver was loaded; -1: not known. */
int64_t nvml_ecc_errors(struct nvml *nvml);
/* Does not wait. false: nothing has happened. */
bool nvml_next_event(struct nvml *nvml, struct nvml_event *event);

#endif
