/* The rows of the workloads between the host and a device, and between devices. */
#include "gpu_workloads.h"
#include "launches.h"
#include "peers.h"
#include "rows.h"
#include "transfers.h"

static const char *const automatic[] = {"auto", NULL};
static const char *const host_memories[] = {"pinned", "pageable", NULL};
static const char *const directions[] = {"write", "read", "both", NULL};
static const char *const modes[] = {"round_trip", "back_to_back", NULL};

/* clang-format off */
#define PARAM_SIZE                                                                                 \
    {.name = "size_bytes",                                                                         \
     .type = PARAM_COUNT,                                                                          \
     .unit = "byte",                                                                               \
     .initial = "auto",                                                                            \
     .min = 4,                                                                                     \
     .max = 1e15,                                                                                  \
     .choices = automatic,                                                                         \
     .roles = ROLE_AXIS,                                                                           \
     .help = "Bytes of one copy, a multiple of 4; auto: 512 MiB, or less if there is no room."}
/* clang-format on */

static const struct param transfer_params[] = {
    {.name = "host_memory",
     .type = PARAM_CHOICE,
     .initial = "pinned",
     .choices = host_memories,
     .roles = ROLE_TAG,
     .help = "pinned: page-locked memory, which the device accesses directly; pageable: ordinary "
             "memory, which the driver copies inside its call, so the host's clock times it."},
    PARAM_SIZE,
    ROWS_PARAMS,
    {.name = NULL},
};

static const struct param peer_params[] = {
    {.name = "peer_device",
     .type = PARAM_TEXT,
     .initial = "auto",
     .resolved = "auto",
     .facts = {"peer_device_uuid"},
     .help = "Index, UUID or PCI address of the other device; auto: the next device in gpu-bench "
             "--list-devices with the same driver."},
    {.name = "direction",
     .type = PARAM_CHOICE,
     .initial = "write",
     .choices = directions,
     .roles = ROLE_TAG,
     .help = "write: to the other device; read: from the other device; both: in both directions at "
             "once. The selected device performs all copies."},
    PARAM_SIZE,
    ROWS_PARAMS,
    {.name = NULL},
};

static const struct param launch_params[] = {
    {.name = "mode",
     .type = PARAM_CHOICE,
     .initial = "round_trip",
     .choices = modes,
     .roles = ROLE_TAG,
     .help = "round_trip: from the launch call until the host knows that the kernel has ended; "
             "back_to_back: the time of 256 launches in a row, divided by 256."},
    ROWS_PARAMS,
    {.name = NULL},
};

static const struct metric transfer_metrics[] = {GPU_METRICS("byte/s", HIGHER_IS_BETTER),
                                                 {.name = NULL}};
static const struct metric bidirectional_metrics[] = {
    {"host_to_device_bytes_per_second", "byte/s", HIGHER_IS_BETTER,
     "Rate to the device only, while both directions run."},
    {"device_to_host_bytes_per_second", "byte/s", HIGHER_IS_BETTER,
     "Rate to the host only, while both directions run."},
    GPU_METRICS("byte/s", HIGHER_IS_BETTER),
    {.name = NULL},
};
static const struct metric peer_metrics[] = {
    {"write_bytes_per_second", "byte/s", HIGHER_IS_BETTER, "Rate to the other device only."},
    {"read_bytes_per_second", "byte/s", HIGHER_IS_BETTER, "Rate from the other device only."},
    GPU_METRICS("byte/s", HIGHER_IS_BETTER),
    {.name = NULL},
};
static const struct metric launch_metrics[] = {
    {"launch_call_s", "s", LOWER_IS_BETTER,
     "Median time of the driver's launch call; with back_to_back, mean over a batch."},
    GPU_SENSOR_METRICS,
    {.name = NULL},
};

/* Most of it for 512 MiB of the host, pinned or not; of peer_to_peer, which never ran, a guess. */
#define TRANSFER_SETUP_S 1.4

#define RATE(text)                                                                                 \
    .rate = {.name = "bytes_per_second",                                                           \
             .unit = "byte/s",                                                                     \
             .description =                                                                        \
                 text " divided by the time that the copies took, on the device's clock or, with " \
                      "pageable memory, the host's: median over windows of at least 100 ms.",      \
             .combine = COMBINE_SUM,                                                               \
             .work = "byte"}

const struct workload host_to_device_workload = {
    .name = "host_to_device",
    .description = "The driver copies from the host's memory to the device's.",
    .params = transfer_params,
    .metrics = transfer_metrics,
    .own = &transfer_host_to_device.kind,
    .setup_s = TRANSFER_SETUP_S,
    RATE("Bytes copied"),
    ROWS_BULK,
};

const struct workload device_to_host_workload = {
    .name = "device_to_host",
    .description = "The driver copies from the device's memory to the host's.",
    .params = transfer_params,
    .metrics = transfer_metrics,
    .own = &transfer_device_to_host.kind,
    .setup_s = TRANSFER_SETUP_S,
    RATE("Bytes copied"),
    ROWS_BULK,
};

const struct workload bidirectional_workload = {
    .name = "bidirectional",
    .description = "The driver copies to the device and to the host at the same time.",
    .params = transfer_params,
    .metrics = bidirectional_metrics,
    .own = &transfer_bidirectional.kind,
    .setup_s = 2.2,
    RATE("Bytes copied in both directions together,"),
    ROWS_BULK,
};

const struct workload peer_to_peer_workload = {
    .name = "peer_to_peer",
    .description = "The driver copies from one device's memory to another's, without the host.",
    .params = peer_params,
    .metrics = peer_metrics,
    .own = &peer_kind,
    .setup_s = TRANSFER_SETUP_S,
    RATE("Bytes copied"),
    ROWS_BULK,
};

const struct workload launch_latency_workload = {
    .name = "launch_latency",
    .description = "Launches an empty kernel.",
    .params = launch_params,
    .metrics = launch_metrics,
    .own = &launch_kind,
    .setup_s = ROWS_SETUP_S,
    .rate = {.name = "launch_time_s",
             .unit = "s",
             .description = "Median time of one launch, on the host's clock.",
             .combine = COMBINE_MEDIAN,
             .time = true},
    ROWS_SHARED,
    .prepare = launches_prepare,
    .loop = launches_loop,
    .verify = launches_verify,
    .finish = launches_finish,
};
