/* The metrics that bulk workloads have beside the harness's and their own. */
#ifndef GPU_BENCH_FIGURES_H
#define GPU_BENCH_FIGURES_H

#include "job.h"

/* clang-format off */
/* For the tables. `unit`: of the rate. */
#define GPU_METRICS(unit_of_rate, better)                                                          \
    {"rate_best", unit_of_rate, better, "The best window."},                                       \
    {"rate_cv", "1", LOWER_IS_BETTER,                                                              \
     "Standard deviation over the windows / their mean."},                                         \
    {"windows", "1", HIGHER_IS_BETTER,                                                             \
     "Windows of at least 100 ms by the device's clock that the figure is the median of; one, of " \
     "all that was done, where the whole is shorter."},                                            \
    {"device_busy_ratio", "1", HIGHER_IS_BETTER,                                                   \
     "Time that the device was at work by its own clock / time of the host."},                     \
    {"core_clock_hertz", "Hz", HIGHER_IS_BETTER,                                                   \
     "Core clock while the kernels ran, from the device's counters of cycles and of nanoseconds "  \
     "read inside of each launch, median; else as NVML tells it."},                                \
    GPU_SENSOR_METRICS

/* … and of those that count operations of the cores. */
#define GPU_CYCLE_METRICS                                                                          \
    {"operations_per_cycle", "operation/cycle", HIGHER_IS_BETTER,                                  \
     "The figure / core_clock_hertz, of the whole device."}

/* What the card itself says; of every workload. */
#define GPU_SENSOR_METRICS                                                                         \
    {"nvml_clock_hertz", "Hz", HIGHER_IS_BETTER,                                                   \
     "Clock of the multiprocessors as NVML tells it, read every 20 ms, median."},                  \
    {"nvml_clock_hertz_min", "Hz", HIGHER_IS_BETTER, "The lowest of these readings."},             \
    {"memory_clock_hertz", "Hz", HIGHER_IS_BETTER, "Memory clock as NVML tells it, median."},      \
    {"power_watts", "W", LOWER_IS_BETTER, "Power of the card, mean of the readings."},             \
    {"energy_joules", "J", LOWER_IS_BETTER,                                                        \
     "Energy of the card in the timed region: its own counter, else power x time."},               \
    {"temperature_celsius", "°C", LOWER_IS_BETTER, "The highest reading."},                        \
    {"throttled_ratio", "1", LOWER_IS_BETTER,                                                      \
     "Share of the readings in which something held the clock down."},                             \
    {"pcie_generation", "1", HIGHER_IS_BETTER,                                                     \
     "Generation of PCI Express that the card's link had when the timed region ended, as NVML "    \
     "tells it: idle cards have a lower one."},                                                    \
    {"pcie_lanes", "1", HIGHER_IS_BETTER, "Lanes that the link had then."}
/* clang-format on */

/* All of them, from the windows, the clocks and the sensors. On thread 0, in finish(). */
void figures_report(struct gpu_job *job);
/* That of GPU_CYCLE_METRICS: for a kind's finish(). */
void figures_report_cycles(struct gpu_job *job);

#endif
